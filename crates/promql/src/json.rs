//! Trees as JSON, as the API's `parse_query` shows them.

use crate::number::plain;
use crate::source::Matcher;
use crate::source::parts;
use crate::tree::{
    Aggregate, At, Binary, Call, Duration, Expr, Length, Matching, Range, Selector, Smoothing,
    Subquery, Type,
};
use serde_json::{Value, json};

/// The tree of an expression.
pub fn to_json(expr: &Expr) -> Value {
    match expr {
        Expr::Number(number) => json!({"type": "numberLiteral", "val": plain(number.value)}),
        Expr::Text(text) => json!({"type": "stringLiteral", "val": text.value}),
        Expr::Paren(inner, _) => json!({"type": "parenExpr", "expr": to_json(inner)}),
        Expr::Unary(unary) => json!({
            "type": "unaryExpr",
            "op": if unary.negates { "-" } else { "+" },
            "expr": to_json(&unary.expr),
        }),
        Expr::Binary(binary) => binary_json(binary),
        Expr::Aggregate(aggregate) => aggregate_json(aggregate),
        Expr::Call(call) => call_json(call),
        Expr::Selector(selector) => {
            let mut out = selector_json(selector);
            out["type"] = "vectorSelector".into();
            out
        }
        Expr::Range(range) => range_json(range),
        Expr::Subquery(subquery) => subquery_json(subquery),
        Expr::Duration(duration) => duration_json(duration),
        Expr::Invariant(inner) => to_json(inner),
    }
}

fn aggregate_json(aggregate: &Aggregate) -> Value {
    json!({
        "type": "aggregation",
        "op": aggregate.op.name(),
        "expr": to_json(&aggregate.expr),
        "param": aggregate.param.as_ref().map(to_json),
        "grouping": aggregate.grouping,
        "without": aggregate.is_without,
    })
}

fn binary_json(binary: &Binary) -> Value {
    json!({
        "type": "binaryExpr",
        "op": binary.op.name(),
        "lhs": to_json(&binary.left),
        "rhs": to_json(&binary.right),
        "matching": binary.matching.as_ref().map(matching_json),
        "bool": binary.returns_bool,
    })
}

fn matching_json(matching: &Matching) -> Value {
    json!({
        "card": matching.cardinality.name(),
        "labels": matching.labels,
        "on": matching.is_on,
        "include": matching.include,
        "fillValues": {"lhs": matching.fill_left, "rhs": matching.fill_right},
    })
}

fn call_json(call: &Call) -> Value {
    let function = call.function;
    let types: Vec<&str> = function.args.iter().copied().map(Type::name).collect();
    let args: Vec<Value> = call.args.iter().map(to_json).collect();
    json!({
        "type": "call",
        "func": {
            "name": function.name,
            "argTypes": types,
            "variadic": function.variadic,
            "returnType": function.returns.name(),
        },
        "args": args,
    })
}

fn selector_json(selector: &Selector) -> Value {
    let matchers: Vec<Value> = selector.matchers.iter().map(matcher_json).collect();
    let (timestamp, start_or_end) = at_json(selector.at);
    json!({
        "name": selector.name,
        "offset": millis(&selector.offset),
        "offsetExpr": length_json(&selector.offset),
        "matchers": matchers,
        "timestamp": timestamp,
        "startOrEnd": start_or_end,
        "anchored": selector.smoothing == Smoothing::Anchored,
        "smoothed": selector.smoothing == Smoothing::Smoothed,
    })
}

fn matcher_json(matcher: &Matcher) -> Value {
    let (op, value) = parts(matcher);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    json!({"name": text(&matcher.name), "value": text(value), "type": op})
}

fn range_json(range: &Range) -> Value {
    let mut out = selector_json(&range.selector);
    out["type"] = "matrixSelector".into();
    out["range"] = millis(&range.range).into();
    out["rangeExpr"] = length_json(&range.range);
    out
}

fn subquery_json(subquery: &Subquery) -> Value {
    let (timestamp, start_or_end) = at_json(subquery.at);
    json!({
        "type": "subquery",
        "expr": to_json(&subquery.expr),
        "range": millis(&subquery.range),
        "rangeExpr": length_json(&subquery.range),
        "offset": millis(&subquery.offset),
        "offsetExpr": length_json(&subquery.offset),
        "step": subquery.step.as_ref().map_or(0, millis),
        "stepExpr": subquery.step.as_ref().map(length_json),
        "timestamp": timestamp,
        "startOrEnd": start_or_end,
    })
}

fn at_json(at: Option<At>) -> (Option<i64>, Option<&'static str>) {
    match at {
        None => (None, None),
        Some(At::Time(millis)) => (Some(millis), None),
        Some(At::Start) => (None, Some("start")),
        Some(At::End) => (None, Some("end")),
    }
}

/// Milliseconds; 0 where `prepare` computes them.
fn millis(length: &Length) -> i64 {
    match length {
        Length::Known(millis) => *millis,
        Length::Expr(_) => 0,
    }
}

fn length_json(length: &Length) -> Value {
    match length {
        Length::Known(_) => Value::Null,
        Length::Expr(duration) => duration_json(duration),
    }
}

fn duration_json(duration: &Duration) -> Value {
    let side = |side: &Option<Expr>| match side {
        None => Value::Null,
        Some(Expr::Number(number)) => {
            let mut out = json!({"type": "numberLiteral", "val": plain(number.value)});
            out["duration"] = number.is_duration.into();
            out
        }
        Some(expr) => to_json(expr),
    };
    json!({
        "type": "durationExpr",
        "op": duration.op.name(),
        "lhs": side(&duration.left),
        "rhs": side(&duration.right),
        "wrapped": duration.is_wrapped,
    })
}
