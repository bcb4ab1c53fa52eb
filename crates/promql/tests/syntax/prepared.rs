//! Expressions as a query from 1000 s to 2000.5 s with a step of 10 s evaluates them.

use latewood_promql::tree::Expr;
use latewood_promql::{Times, parse, prepare};

const TIMES: Times = Times {
    start_ms: 1_000_000,
    end_ms: 2_000_500,
    step_ms: 10_000,
};

/// The expression with `<>` around what is invariant.
fn marked(expr: &Expr) -> String {
    let whole = expr.to_string();
    let with = |inner: &Expr| whole.replacen(&inner.to_string(), &marked(inner), 1);
    match expr {
        Expr::Invariant(inner) => format!("<{}>", marked(inner)),
        Expr::Paren(inner, _) => with(inner),
        Expr::Unary(unary) => with(&unary.expr),
        Expr::Subquery(subquery) => with(&subquery.expr),
        Expr::Aggregate(aggregate) => with(&aggregate.expr),
        Expr::Binary(binary) => {
            let (left, right) = (marked(&binary.left), marked(&binary.right));
            format!("{left} {} {right}", binary.op.name())
        }
        Expr::Call(call) => {
            let args: Vec<String> = call.args.iter().map(marked).collect();
            format!("{}({})", call.function.name, args.join(", "))
        }
        _ => whole,
    }
}

fn prepared(text: &str, times: Times) -> Result<String, String> {
    let expr = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let expr = prepare(expr, times).map_err(|error| error.to_string())?;
    Ok(marked(&expr))
}

#[test]
fn invariant_parts_are_wrapped_as_high_as_possible() {
    for (text, wanted) in [
        ("foo", "foo"),
        ("1", "1"),
        ("1 + 2", "<1 + 2>"),
        ("foo @ 5", "<foo @ 5.000>"),
        ("foo + bar @ 5", "foo + <bar @ 5.000>"),
        ("foo + 2 * 3", "foo + <2 * 3>"),
        ("sum(foo @ 5)", "<sum(foo @ 5.000)>"),
        ("sum((foo)) + (bar)", "sum(foo) + (bar)"),
        ("rate(foo[5m] @ 5)", "<rate(foo[5m] @ 5.000)>"),
        ("foo[5m] @ 5", "foo[5m] @ 5.000"),
        ("rate(foo[5m]) * pi()", "rate(foo[5m]) * <pi()>"),
        ("-(foo @ 5) + foo", "<-(foo @ 5.000)> + foo"),
        ("timestamp(foo @ 5)", "<timestamp(foo @ 5.000)>"),
        ("timestamp(abs(foo @ 5))", "timestamp(<abs(foo @ 5.000)>)"),
        (
            "predict_linear(foo[5m] @ 5, 1)",
            "predict_linear(foo[5m] @ 5.000, 1)",
        ),
        ("time() + hour()", "time() + hour()"),
        ("hour(vector(1))", "hour(<vector(1)>)"),
        (
            "sum_over_time(foo[5m:1m] @ 5)",
            "<sum_over_time(foo[5m:1m] @ 5.000)>",
        ),
        (
            "sum_over_time(foo @ 5[5m:1m])",
            "sum_over_time(<foo @ 5.000>[5m:1m])",
        ),
        ("info(foo @ 5)", "<info(foo @ 5.000)>"),
        (
            "info(foo @ 5 or bar @ 6)",
            "info(<foo @ 5.000 or bar @ 6.000>)",
        ),
        ("info(foo @ 5, {a=\"b\"})", "<info(foo @ 5.000, {a=\"b\"})>"),
    ] {
        assert_eq!(prepared(text, TIMES).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn times_of_the_query_become_numbers() {
    for (text, wanted) in [
        ("start()", "1000"),
        ("end() + foo", "2000.5 + foo"),
        ("range() - step()", "<1000.5 - 10>"),
        ("foo @ start()", "<foo @ 1000.000>"),
        ("foo[5m:] @ end()", "foo[5m:] @ 2000.500"),
        ("foo[step()] offset -step()", "foo[10s] offset -10s"),
        ("foo[range() / 3]", "foo[5m33s500ms]"),
        ("foo[5m % 3m + 2 ^ 3]", "foo[2m8s]"),
        ("foo[min_of(5m, step()):max_of(1, 2)]", "foo[10s:2s]"),
        ("foo offset (5m - 10m)", "foo offset -5m"),
    ] {
        assert_eq!(prepared(text, TIMES).as_deref(), Ok(wanted), "{text}");
    }
    let instant = Times {
        end_ms: TIMES.start_ms,
        ..TIMES
    };
    assert_eq!(prepared("step() + foo", instant).as_deref(), Ok("0 + foo"));
}

#[test]
fn durations_are_checked() {
    for (text, wanted) in [
        ("foo[5m - 10m]", "4:12: duration must be greater than 0"),
        (
            "foo[5m:step() - 10s]",
            "7:19: duration must be greater than 0",
        ),
        ("foo[1 / (step() - 10)]", "4:20: division by zero"),
        ("foo[1 % (step() - 10)]", "4:20: modulo by zero"),
        ("foo[10 ^ 400 ]", "4:12: duration is NaN or infinite"),
        ("foo offset (1000 ^ 5)", "12:20: duration is out of range"),
    ] {
        assert_eq!(prepared(text, TIMES), Err(wanted.to_owned()), "{text}");
    }
}
