//! What an explanation says of each node of a query.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::range;
use latewood_promql::Times;
use latewood_promql::engine::{EvalError, Query, Settings};
use latewood_promql::explain::{Explanation, Node, Shown};
use serde_json::{Value, json};

/// Two series of `x`, one of which ends early, three of `y`; a dead one of each.
const LINES: &str = "x{a=\"1\"} 0+1x10 \n x{a=\"2\"} 5 5 5 _x20 \n x{a=\"5\"} _x20 1 \n \
     y{a=\"1\",b=\"p\"} 0+2x10 \n y{a=\"3\",b=\"q\"} 0+2x10 \n y{a=\"4\",b=\"r\"} 0+2x10 \n \
     y{a=\"6\",b=\"s\"} _x20 1";

pub(crate) fn times(start_ms: i64, end_ms: i64) -> Times {
    Times {
        start_ms,
        end_ms,
        step_ms: MIN,
    }
}

fn explained(text: &str, times: Times) -> Explanation {
    let memory = Memory::load(MIN, LINES);
    let is_range = times.end_ms > times.start_ms;
    let query = Query::new(text).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    pool.unwrap().install(|| {
        let settings = Settings::default();
        query
            .explain(text, times, is_range, &settings, &memory)
            .unwrap()
    })
}

/// At minute 2 alone.
fn instant(text: &str) -> Explanation {
    explained(text, times(2 * MIN, 2 * MIN))
}

/// At minutes 0 to 10.
fn ranged(text: &str) -> Explanation {
    explained(text, times(0, 10 * MIN))
}

/// A line of each node: indented, its kind and name, the series and samples that it gave of those
/// that it knows, and the series and samples that it read.
fn lines(explanation: &Explanation) -> Vec<String> {
    let line = |node: &Node| {
        let indent = " ".repeat(node.depth);
        let head = format!("{indent}{} {}", node.kind, node.name);
        let Some(figures) = node.figures else {
            return head;
        };
        let read = match figures.series_read {
            0 => String::new(),
            series => format!(", read {series} {}", figures.samples_read),
        };
        format!(
            "{head}: {}/{} {}{read}",
            figures.series, figures.series_known, figures.samples
        )
    };
    explanation.nodes.iter().map(line).collect()
}

fn shown(series: &Shown) -> String {
    let pairs = series.labels.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(",")
}

/// How the sides of the first node match: series, matched ones, unmatched examples of both sides,
/// and pairs.
fn matching(explanation: &Explanation) -> (String, String, Vec<String>) {
    let matching = explanation.nodes[0].matching.as_ref().unwrap();
    let side = |side: &latewood_promql::explain::Side| {
        let unmatched: Vec<String> = side.unmatched.iter().map(shown).collect();
        assert_eq!(unmatched.len(), side.series - side.matched);
        format!("{}/{} {}", side.matched, side.series, unmatched.join(" "))
    };
    let pairs = matching.examples.iter();
    let pairs: Vec<String> = pairs
        .map(|pair| format!("{} {}", shown(&pair.left), shown(&pair.right)))
        .collect();
    assert_eq!(pairs.len() as u64, matching.pairs);
    (side(&matching.left), side(&matching.right), pairs)
}

#[test]
fn selectors_tell_what_they_read_and_gave() {
    // The sample of x{a="1"} and that of x{a="2"}, each with those before it in the lookback.
    assert_eq!(lines(&instant("x")), ["selector x: 2/3 2, read 3 6"]);
    // x{a="2"} is seen for five minutes behind its last sample.
    assert_eq!(lines(&ranged("x")), ["selector x: 2/3 18, read 3 14"]);
    assert_eq!(lines(&instant("none")), ["selector none: 0/0 0"]);
    let node = instant("x").nodes.remove(0);
    let figures = node.figures.unwrap();
    // Each series is as late as its number.
    assert_eq!(figures.late_read, 1 + 2);
    assert_eq!((figures.steps, figures.columns), (1, 3));
    assert!(figures.peak_bytes > 0);
}

#[test]
fn calls_and_aggregations_have_parts() {
    assert_eq!(
        lines(&ranged("sum by (a) (rate(y[2m])) * 2")),
        [
            "binary *: 3/3 30",
            " aggregation sum: 3/3 30",
            "  function rate: 3/4 30",
            "   range_selector y: 3/4 33, read 4 33",
            " number : 1/1 11",
        ]
    );
    assert_eq!(
        lines(&instant("topk(1, y)")),
        [
            "aggregation topk: 1/1 1",
            " number : 1/1 1",
            " selector y: 3/4 3, read 4 9",
        ]
    );
    // A range at the root.
    assert_eq!(
        lines(&instant("x[2m]")),
        ["range_selector x: 2/3 4, read 3 4"]
    );
    assert_eq!(lines(&instant("\"text\"")), ["string "]);
    // It reads its argument itself.
    let explanation = instant("timestamp(x)");
    assert_eq!(
        lines(&explanation),
        ["function timestamp: 2/3 2, read 3 6", " selector x"]
    );
    assert_eq!(
        explanation.nodes[1].notes,
        ["read by the function whose argument it is"]
    );
}

#[test]
fn subqueries_have_steps_of_their_own() {
    let explanation = ranged("max_over_time((x + 1)[3m:1m])");
    assert_eq!(
        lines(&explanation),
        [
            "function max_over_time: 2/3 20",
            // From two minutes before the first step on.
            " subquery : 2/3 18",
            "  binary +: 2/3 18",
            "   selector x: 2/3 18, read 3 14",
            "   number : 1/1 13",
        ]
    );
    let steps = explanation.nodes.iter();
    let steps: Vec<usize> = steps.map(|node| node.figures.unwrap().steps).collect();
    assert_eq!(steps, [11, 13, 13, 13, 13]);
    let root = instant("(x > 0)[2m:1m]");
    assert_eq!(
        lines(&root),
        [
            "subquery : 2/3 4",
            " binary >: 2/3 4",
            "  selector x: 2/3 4, read 3 6",
            "  number : 1/1 2",
        ]
    );
}

#[test]
fn joins_tell_what_matches_and_what_does_not() {
    let (left, right, pairs) = matching(&ranged("x * on(a) y"));
    assert_eq!(left, "1/2 __name__=x,a=2");
    assert_eq!(right, "1/3 __name__=y,a=3,b=q __name__=y,a=4,b=r");
    assert_eq!(pairs, ["__name__=x,a=1 __name__=y,a=1,b=p"]);
    // Many to one: the right side is the many one.
    let (left, right, pairs) = matching(&instant("x * on(a) group_right(b) y"));
    assert_eq!(
        (&*left, &*right),
        (
            "1/2 __name__=x,a=2",
            "1/3 __name__=y,a=3,b=q __name__=y,a=4,b=r"
        )
    );
    assert_eq!(pairs, ["__name__=x,a=1 __name__=y,a=1,b=p"]);
    let (left, right, pairs) = matching(&instant("y / ignoring(b) x"));
    assert_eq!((&left[..3], &right[..3], pairs.len()), ("1/3", "1/2", 1));
    // Nothing matches at all.
    let (left, right, pairs) = matching(&instant("x / y"));
    assert_eq!((&left[..3], &right[..3], pairs.len()), ("0/2", "0/3", 0));
    // A side with a fill.
    let (left, right, _) = matching(&instant("x + on(a) fill_right(0) y"));
    assert_eq!((&left[..3], &right[..3]), ("1/2", "1/3"));
    // Several of one side.
    let (left, right, pairs) = matching(&instant("y + on() group_left() sum(x)"));
    assert_eq!((&*left, &*right, pairs.len()), ("3/3 ", "1/1 ", 3));
    assert!(instant("x + 1").nodes[0].matching.is_none());
}

#[test]
fn set_operators_tell_what_matches() {
    for query in ["x and on(a) y", "x unless on(a) y", "x or on(a) y"] {
        let explanation = ranged(query);
        let (left, right, pairs) = matching(&explanation);
        assert_eq!(left, "1/2 __name__=x,a=2", "{query}");
        assert_eq!(
            right, "1/3 __name__=y,a=3,b=q __name__=y,a=4,b=r",
            "{query}"
        );
        assert_eq!(pairs, ["__name__=x,a=1 __name__=y,a=1,b=p"], "{query}");
    }
    assert_eq!(lines(&ranged("x and on(a) y"))[0], "binary and: 1/1 11");
    assert_eq!(
        lines(&ranged("x unless on(a) y"))[0],
        "binary unless: 1/3 7"
    );
    assert_eq!(lines(&ranged("x or on(a) y"))[0], "binary or: 4/7 40");
}

#[test]
fn what_only_shows_matches_is_not_counted() {
    let explanation = instant("x * on(a) y");
    // Of each side one series is needed.
    assert_eq!(
        lines(&explanation),
        [
            "binary *: 1/1 1",
            " selector x: 1/3 1, read 3 3",
            " selector y: 1/4 1, read 4 3",
        ]
    );
    let note = "3 of 4 series were not evaluated: no result needs them";
    assert_eq!(explanation.nodes[2].notes, [note]);
    assert_eq!(explanation.stats.samples_read, 6);
    // Whether they are damaged is not found out either.
    let mut memory = Memory::load(MIN, LINES);
    memory.damaged = Some(1);
    let text = "x * on(a) y";
    let query = Query::new(text).unwrap();
    let at = times(2 * MIN, 2 * MIN);
    let explanation = query.explain(text, at, false, &Settings::default(), &memory);
    assert_eq!(explanation.unwrap().stats.samples_read, 6);
}

#[test]
fn an_explanation_reads_what_the_query_reads() {
    for text in [
        "x",
        "x * on(a) y",
        "x or on(a) y",
        "sum(x) / on() group_right() y",
        "rate(x[5m] @ 120) > 0",
        "max_over_time(sum(y)[5m:1m])",
        "quantile(0.5, y) + on() fill(1) none",
        "count_values(\"v\", x)",
    ] {
        let memory = Memory::load(MIN, LINES);
        let query = Query::new(text).unwrap();
        let settings = Settings::default();
        let times = times(0, 10 * MIN);
        let outcome = query.range(times, &settings, &memory, &mut |_, _| Ok(()));
        let outcome = outcome.unwrap();
        let explanation = ranged(text);
        let (plain, recorded) = (outcome.stats, explanation.stats);
        assert_eq!(
            (
                plain.series_read,
                plain.samples_read,
                plain.series,
                plain.samples
            ),
            (
                recorded.series_read,
                recorded.samples_read,
                recorded.series,
                recorded.samples
            ),
            "{text}"
        );
        // The figures of the nodes add up.
        let figures = explanation.nodes.iter().filter_map(|node| node.figures);
        let sum = figures.fold((0, 0), |sum, figures| {
            (sum.0 + figures.series_read, sum.1 + figures.samples_read)
        });
        assert_eq!(sum, (plain.series_read, plain.samples_read), "{text}");
        let root = explanation.nodes[0].figures.unwrap();
        // What is evaluated once stands at every step.
        let samples = root.samples * (11 / root.steps as u64);
        let expected = (plain.series, plain.samples as u64);
        assert_eq!((root.series, samples), expected, "{text}");
        let own: u64 = explanation
            .nodes
            .iter()
            .filter_map(|node| node.figures)
            .map(|figures| figures.own_ns)
            .sum();
        assert_eq!(explanation.nodes[0].total_ns, own, "{text}");
    }
}

#[test]
fn what_is_the_same_at_every_step_is_evaluated_once() {
    let explanation = ranged("x / on() group_left() sum(y @ 120)");
    let sum = &explanation.nodes[2];
    assert_eq!((&*sum.text, sum.kind), ("sum(y @ 120.000)", "aggregation"));
    assert_eq!(sum.notes[0], "evaluated once: it is the same at every step");
    assert_eq!(sum.figures.unwrap().steps, 1);
    assert!(explanation.nodes[0].notes.is_empty());
    // At a single step everything is.
    assert!(instant("sum(y @ 120)").nodes[0].notes.is_empty());
}

#[test]
fn nodes_stand_where_the_text_has_them() {
    let text = "sum by (a) ((x))  + on(a)  max_over_time(y[1h])";
    let explanation = ranged(text);
    let places: Vec<(&str, Option<usize>, Vec<usize>)> = explanation
        .nodes
        .iter()
        .map(|node| {
            (
                &text[node.span.start..node.span.end],
                node.parent,
                node.children.clone(),
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            (text, None, vec![1, 3]),
            ("sum by (a) ((x))", Some(0), vec![2]),
            ("x", Some(1), vec![]),
            ("max_over_time(y[1h])", Some(0), vec![4]),
            ("y[1h]", Some(3), vec![]),
        ]
    );
    let rate = ranged("rate(x[5m])");
    let notes: Vec<_> = rate.annotations.iter().map(|note| note.at).collect();
    assert_eq!(notes, [(5, 10)]);
}

#[test]
fn errors_are_those_of_the_query() {
    let memory = Memory::load(MIN, LINES);
    for text in ["x + on() y", "sum(x) </ 1m", "histogram_count(x)", "x[5m]"] {
        let expected = range(&memory, text, (0, 10 * MIN, MIN), &Settings::default());
        let query = Query::new(text).unwrap();
        let settings = Settings::default();
        let result = query.explain(text, times(0, 10 * MIN), true, &settings, &memory);
        match result {
            Err(error) => assert_eq!(expected, [format!("error: {error}")]),
            Ok(_) => assert!(!expected.iter().any(|line| line.starts_with("error"))),
        }
    }
    // It ends when it must.
    let mut memory = Memory::load(MIN, LINES);
    memory.checks_max = 1;
    let query = Query::new("x").unwrap();
    let result = query.explain("x", times(0, MIN), true, &Settings::default(), &memory);
    let error = result.unwrap_err();
    let is_interrupt = matches!(
        error,
        latewood_promql::engine::Error::Eval(EvalError::Interrupt(_))
    );
    assert!(is_interrupt, "{error}");
}

/// The JSON without what depends on the machine.
fn stable(mut node: Value) -> Value {
    for name in ["ownMs", "totalMs", "peakBytes"] {
        assert!(node[name].is_number(), "{name}");
        node.as_object_mut().unwrap().remove(name);
    }
    node
}

#[test]
fn nodes_are_json() {
    let explanation = instant("x * on(a) group_left(b) y");
    let nodes = explanation.nodes.iter().enumerate();
    let nodes: Vec<Value> = nodes.map(|(id, node)| stable(node.to_json(id))).collect();
    let series = |labels: Value| json!({"labels": labels, "labelsOmitted": 0});
    let unmatched = [("3", "q"), ("4", "r")];
    let unmatched = unmatched.map(|(a, b)| series(json!({"__name__": "y", "a": a, "b": b})));
    let left = json!({
        "series": 2, "matched": 1, "unmatched": 1,
        "examples": [series(json!({"__name__": "x", "a": "2"}))],
    });
    let right = json!({"series": 3, "matched": 1, "unmatched": 2, "examples": unmatched});
    let pair = json!({
        "left": series(json!({"__name__": "x", "a": "1"})),
        "right": series(json!({"__name__": "y", "a": "1", "b": "p"})),
    });
    let matching = json!({
        "card": "many-to-one", "on": true, "labels": ["a"], "include": ["b"],
        "fillLeft": null, "fillRight": null, "pairs": 1, "examplesOmitted": false,
        "left": left, "right": right, "examples": [pair],
    });
    assert_eq!(
        nodes[0],
        json!({
            "id": 0, "parent": null, "depth": 0, "children": [1, 2], "childrenOmitted": 0,
            "kind": "binary", "name": "*", "text": "x * on (a) group_left (b) y",
            "start": 0, "end": 25, "type": "vector", "evaluated": true, "notes": [],
            "steps": 1, "series": 1, "samples": 1, "seriesKnown": 1, "seriesEvaluated": 1,
            "columns": 1, "seriesRead": 0, "samplesRead": 0, "lateSamplesMerged": 0,
            "matching": matching,
        })
    );
    assert_eq!(
        nodes[2],
        json!({
            "id": 2, "parent": 0, "depth": 1, "children": [], "childrenOmitted": 0,
            "kind": "selector", "name": "y", "text": "y", "start": 24, "end": 25,
            "type": "vector", "evaluated": true,
            "notes": ["3 of 4 series were not evaluated: no result needs them"],
            "steps": 1, "series": 1, "samples": 1, "seriesKnown": 4, "seriesEvaluated": 1,
            "columns": 1, "seriesRead": 4, "samplesRead": 3, "lateSamplesMerged": 3 + 4 + 5 + 6,
        })
    );
}
