//! Aggregations of series that come and go give what they give of all series together.

use crate::evaluation::MIN;
use crate::evaluation::memory::{Memory, labels};
use crate::evaluation::table::{instant, notes, range};
use latewood_promql::engine::{Pool, Settings};
use latewood_promql::source::Samples;
use std::sync::Arc;

fn memory() -> Memory {
    Memory::load(
        MIN,
        r#"
        x{a="1",b="1"} 1+1x9
        x{a="1",b="2"} 2 4 6 _ _ _ _ _ _ 1
        x{a="1",b="3"} _x20 5
        x{a="2",b="1"} 7 stale 7
        x{a="2",b="2"} 0.5+0.25x9
        x{a="3"} _x20 9
        x{b="4"} 100
        y{a="1",b="1"} 3
        y{a="1",b="5"} 4
        "#,
    )
}

fn memory_of(change: impl FnOnce(&mut Memory)) -> Memory {
    let mut memory = memory();
    change(&mut memory);
    memory
}

/// What is aggregated: some of it can be taken some after others.
const INPUTS: [&str; 28] = [
    "x",
    "x offset 1m",
    "x @ 120",
    "(-x)",
    "x * 2 + 1",
    "1 - x",
    "x > 4",
    "abs(x)",
    "rate(x[5m])",
    "last_over_time(x[1h])",
    "quantile_over_time(0.5, x[5m])",
    "clamp_max(x, 3)",
    "timestamp(x)",
    "x and y",
    "{__name__=~\"x|y\"}",
    "absent(nothing)",
    "absent_over_time(x[1m])",
    "x / on (a, b) y",
    "sum by (a) (x)",
    "rate(x[5m:1m])",
    "label_replace(x, \"a\", \"$1\", \"b\", \"(.*)\")",
    "x * scalar(y{b=\"1\"})",
    "x * scalar(max_over_time(y{b=\"1\"}[1h]))",
    "nothing",
    "sort(x)",
    "x smoothed",
    "rate(x[5m] anchored)",
    "max_over_time(x[1m]) > 2",
];
/// How: aggregators with their parameters.
const OPERATORS: [(&str, &str); 11] = [
    ("sum", ""),
    ("avg", ""),
    ("count", ""),
    ("group", ""),
    ("min", ""),
    ("max", ""),
    ("stddev", ""),
    ("stdvar", ""),
    ("topk", "2, "),
    ("quantile", "0.5, "),
    ("count_values", "\"v\", "),
];
const GROUPINGS: [&str; 5] = ["", "by (a)", "by (b, none)", "by (__name__)", "without (a)"];

/// Compares what a query gives of all series with what it gives of some after others; the number of
/// turns that were taken.
fn check(query: &str) -> usize {
    let (whole, settings) = (memory(), Settings::default());
    let once = |memory: &Memory| {
        let mut lines = instant(memory, query, 3 * MIN, &settings);
        lines.sort();
        lines
    };
    let steps = |memory: &Memory| range(memory, query, (0, 12 * MIN, MIN), &settings);
    let (wanted_once, wanted) = (once(&whole), steps(&whole));
    let mut taken = 0;
    for turn in [1, 2, 5] {
        let some = memory_of(|memory| memory.turn = turn);
        assert_eq!(once(&some), wanted_once, "{query}, {turn} at a time");
        assert_eq!(steps(&some), wanted, "{query}, {turn} at a time");
        taken += some.turns();
    }
    taken
}

#[test]
fn turns_change_nothing() {
    let mut taken = 0;
    for (operator, param) in OPERATORS {
        for by in GROUPINGS {
            let queries = INPUTS.map(|input| format!("{operator} {by} ({param}{input})"));
            taken += queries.iter().map(|query| check(query)).sum::<usize>();
        }
    }
    assert!(taken > 5_000, "{taken} turns");
    let whole = memory();
    let some = memory_of(|memory| memory.turn = 2);
    for query in ["sum(rate(x[5m]))", "sum(quantile_over_time(2, x[5m]))"] {
        assert_eq!(
            notes(&some, query, 3 * MIN),
            notes(&whole, query, 3 * MIN),
            "{query}"
        );
    }
}

#[test]
fn what_a_turn_holds_comes_back() {
    let (mut memory, count) = (Memory::default(), 20_000);
    for at in 0..count {
        let samples = Samples {
            timestamps: vec![0],
            values: vec![1.0],
        };
        memory.add(labels(&format!("x{{a=\"{at:05}\",b=\"1\"}}")), samples);
    }
    let pool = Arc::new(Pool::new(4 << 20));
    let settings = Settings {
        memory_bytes_max: 1 << 20,
        pool: Some(Arc::clone(&pool)),
        ..Settings::default()
    };
    let refused =
        |lines: &[String]| lines[0].starts_with("error: query needs more than 1048576 bytes");
    assert!(refused(&instant(&memory, "count(abs(x))", 0, &settings)));
    memory.turn = 100;
    assert_eq!(
        instant(&memory, "count(abs(x))", 0, &settings),
        ["{} 20000"]
    );
    assert_eq!(
        instant(&memory, "sum by (b) (last_over_time(x[1m]))", 0, &settings),
        ["{b=\"1\"} 20000"]
    );
    // Groups are held.
    assert!(refused(&instant(&memory, "count by (a) (x)", 0, &settings)));
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn an_error_in_a_turn_is_that_of_the_query() {
    let some = memory_of(|memory| (memory.turn, memory.damaged) = (2, Some(1)));
    assert_eq!(
        instant(&some, "sum(x)", 0, &Settings::default()),
        ["error: expanding series: block 7 is damaged"]
    );
    let some = memory_of(|memory| (memory.turn, memory.reads_max) = (2, 2));
    assert_eq!(
        instant(&some, "sum(x)", 0, &Settings::default()),
        ["error: query was canceled in expression evaluation"]
    );
}
