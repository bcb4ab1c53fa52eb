//! Positions of nodes, expressions over several lines, and the tree as JSON.

use latewood_promql::tree::Expr;
use latewood_promql::{parse, pretty, to_json};
use serde_json::json;

fn expr(text: &str) -> Expr {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn positions_are_those_of_prometheus() {
    for (text, wanted) in [
        ("  foo  ", (2, 5)),
        ("foo{a=\"b\"} ", (0, 10)),
        ("foo offset 5m + 1", (0, 17)),
        ("foo offset 5m ", (0, 13)),
        ("foo @ start() ", (0, 13)),
        ("foo[5m] offset 1m", (0, 17)),
        // Modifiers that end in no bracket or number.
        ("foo anchored", (0, 3)),
        ("foo[5m] smoothed", (0, 7)),
        ("sum(foo) by (a) ", (0, 15)),
        ("sum (foo) ", (0, 9)),
        (" - 1", (1, 4)),
        (" - foo", (1, 6)),
        ("(1) ", (0, 3)),
        ("rate(foo[5m]) ", (0, 13)),
        ("foo[5m:1m] @ 5 ", (0, 14)),
    ] {
        let span = expr(text).span();
        assert_eq!((span.start, span.end), wanted, "{text}");
    }
    let inner = |text: &str| match expr(text) {
        Expr::Paren(inner, _) => (inner.span().start, inner.span().end),
        other => panic!("{other} is not in parentheses"),
    };
    // The token behind a duration in parentheses was read, and moves the end.
    assert_eq!(inner("(foo offset (1m) )"), (1, 18));
    assert_eq!(inner("(foo offset 1m )"), (1, 14));
    assert_eq!(inner("(sum(foo) )"), (1, 9));
    // As Prometheus, which looks back over blanks only.
    assert_eq!(inner("(sum(foo) # c\n )"), (1, 16));
}

#[test]
fn long_expressions_are_split() {
    let name = "a_metric_with_a_long_name_that_fills_more_than_half_of_a_line_with_letters";
    for (text, wanted) in [
        (
            "sum(rate(foo[5m]))".to_owned(),
            "sum(rate(foo[5m]))".to_owned(),
        ),
        (
            format!("{name} + on (a) {name}"),
            format!("  {name}\n+ on (a)\n  {name}"),
        ),
        (
            format!("topk(5, abs({name} - {name}))"),
            format!("topk(\n  5,\n  abs(\n      {name}\n    -\n      {name}\n  )\n)"),
        ),
        (
            format!("-({name} > bool {name})[1h:5m]"),
            format!("-(\n    {name}\n  > bool\n    {name}\n)[1h:5m]"),
        ),
        (
            format!("clamp({name}, 1, {name}{name})"),
            format!("clamp(\n  {name},\n  1,\n  {name}{name}\n)"),
        ),
    ] {
        match parse(&text) {
            Ok(expr) => assert_eq!(pretty(&expr), wanted),
            // Types do not matter to the layout.
            Err(error) => assert!(error.text.contains("type"), "{error}"),
        }
    }
}

#[test]
fn trees_are_shown_as_the_api_shows_them() {
    let wanted = json!({
        "type": "binaryExpr", "op": "/", "bool": false,
        "matching": {
            "card": "many-to-one", "labels": ["a"], "on": true, "include": ["b"],
            "fillValues": {"lhs": null, "rhs": 0.0},
        },
        "lhs": {
            "type": "aggregation", "op": "topk", "grouping": [], "without": false,
            "param": {"type": "numberLiteral", "val": "5"},
            "expr": {
                "type": "vectorSelector", "name": "foo", "offset": 60000, "offsetExpr": null,
                "matchers": [{"name": "__name__", "value": "foo", "type": "="}],
                "timestamp": 5000, "startOrEnd": null, "anchored": false, "smoothed": false,
            },
        },
        "rhs": {
            "type": "call",
            "func": {
                "name": "rate", "argTypes": ["matrix"], "variadic": 0, "returnType": "vector",
            },
            "args": [{
                "type": "matrixSelector", "name": "", "range": 0, "offset": 0, "offsetExpr": null,
                "rangeExpr": {
                    "type": "durationExpr", "op": "*", "wrapped": false,
                    "lhs": {"type": "durationExpr", "op": "step", "lhs": null, "rhs": null,
                            "wrapped": false},
                    "rhs": {"type": "numberLiteral", "val": "2", "duration": false},
                },
                "matchers": [{"name": "a", "value": "b.*", "type": "!~"}],
                "timestamp": null, "startOrEnd": "end", "anchored": true, "smoothed": false,
            }],
        },
    });
    let text = "topk(5, foo offset 1m @ 5) / on(a) group_left(b) fill_right(0) \
                rate({a!~\"b.*\"}[step() * 2] anchored @ end())";
    // The empty string passes, so a second matcher selects.
    let text = text.replace("b.*\"}", "b.*\",c=\"d\"}");
    let mut shown = to_json(&expr(&text));
    let matchers = &mut shown["rhs"]["args"][0]["matchers"];
    let removed = matchers.as_array_mut().map(|all| all.pop());
    assert_eq!(
        removed,
        Some(Some(json!({"name": "c", "value": "d", "type": "="})))
    );
    assert_eq!(shown, wanted);
}
