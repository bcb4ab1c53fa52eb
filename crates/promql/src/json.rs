//! Trees as JSON, as the API's `parse_query` shows them.

use crate::number::plain;
use crate::source::{Matcher, parts};
use crate::tree::{
    Aggregate, At, Binary, Call, Duration, Expr, Length, Matching, Range, Selector, Smoothing,
    Subquery, Type,
};
use serde_json::Value;

/// An object of fields. Values are moved: a copy at each level would take quadratic time.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.into_iter().collect())
}

/// The tree of an expression.
pub fn to_json(expr: &Expr) -> Value {
    match expr {
        Expr::Number(number) => object([
            ("type", "numberLiteral".into()),
            ("val", plain(number.value).into()),
        ]),
        Expr::Text(text) => object([
            ("type", "stringLiteral".into()),
            ("val", text.value.clone().into()),
        ]),
        Expr::Paren(inner, _) => object([("type", "parenExpr".into()), ("expr", to_json(inner))]),
        Expr::Unary(unary) => object([
            ("type", "unaryExpr".into()),
            ("op", (if unary.negates { "-" } else { "+" }).into()),
            ("expr", to_json(&unary.expr)),
        ]),
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
    object([
        ("type", "aggregation".into()),
        ("op", aggregate.op.name().into()),
        ("expr", to_json(&aggregate.expr)),
        ("param", aggregate.param.as_ref().map(to_json).into()),
        ("grouping", aggregate.grouping.clone().into()),
        ("without", aggregate.is_without.into()),
    ])
}

fn binary_json(binary: &Binary) -> Value {
    object([
        ("type", "binaryExpr".into()),
        ("op", binary.op.name().into()),
        ("lhs", to_json(&binary.left)),
        ("rhs", to_json(&binary.right)),
        (
            "matching",
            binary.matching.as_ref().map(matching_json).into(),
        ),
        ("bool", binary.returns_bool.into()),
    ])
}

fn matching_json(matching: &Matching) -> Value {
    object([
        ("card", matching.cardinality.name().into()),
        ("labels", matching.labels.clone().into()),
        ("on", matching.is_on.into()),
        ("include", matching.include.clone().into()),
        (
            "fillValues",
            object([
                ("lhs", matching.fill_left.into()),
                ("rhs", matching.fill_right.into()),
            ]),
        ),
    ])
}

fn call_json(call: &Call) -> Value {
    let function = call.function;
    let types: Vec<&str> = function.args.iter().copied().map(Type::name).collect();
    let args: Vec<Value> = call.args.iter().map(to_json).collect();
    object([
        ("type", "call".into()),
        (
            "func",
            object([
                ("name", function.name.into()),
                ("argTypes", types.into()),
                ("variadic", function.variadic.into()),
                ("returnType", function.returns.name().into()),
            ]),
        ),
        ("args", args.into()),
    ])
}

fn selector_json(selector: &Selector) -> Value {
    let matchers: Vec<Value> = selector.matchers.iter().map(matcher_json).collect();
    let (timestamp, start_or_end) = at_json(selector.at);
    object([
        ("name", selector.name.clone().into()),
        ("offset", millis(&selector.offset).into()),
        ("offsetExpr", length_json(&selector.offset)),
        ("matchers", matchers.into()),
        ("timestamp", timestamp.into()),
        ("startOrEnd", start_or_end.into()),
        (
            "anchored",
            (selector.smoothing == Smoothing::Anchored).into(),
        ),
        (
            "smoothed",
            (selector.smoothing == Smoothing::Smoothed).into(),
        ),
    ])
}

fn matcher_json(matcher: &Matcher) -> Value {
    let (op, value) = parts(matcher);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    object([
        ("name", text(&matcher.name).into()),
        ("value", text(value).into()),
        ("type", op.into()),
    ])
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
    object([
        ("type", "subquery".into()),
        ("expr", to_json(&subquery.expr)),
        ("range", millis(&subquery.range).into()),
        ("rangeExpr", length_json(&subquery.range)),
        ("offset", millis(&subquery.offset).into()),
        ("offsetExpr", length_json(&subquery.offset)),
        ("step", subquery.step.as_ref().map_or(0, millis).into()),
        ("stepExpr", subquery.step.as_ref().map(length_json).into()),
        ("timestamp", timestamp.into()),
        ("startOrEnd", start_or_end.into()),
    ])
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
            let mut out = object([
                ("type", "numberLiteral".into()),
                ("val", plain(number.value).into()),
            ]);
            out["duration"] = number.is_duration.into();
            out
        }
        Some(expr) => to_json(expr),
    };
    object([
        ("type", "durationExpr".into()),
        ("op", duration.op.name().into()),
        ("lhs", side(&duration.left)),
        ("rhs", side(&duration.right)),
        ("wrapped", duration.is_wrapped.into()),
    ])
}
