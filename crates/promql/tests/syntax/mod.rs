//! The syntax: what parses, what does not and why, positions, printing, preparation.
//!
//! All expected texts are answers of Prometheus 3.16 itself.

mod errors;
mod layout;
mod limits;
mod prepared;
mod random;
mod size;
mod valid;

use errors::ERRORS;
use latewood_promql::{parse, parse_selector};
use valid::VALID;

/// Where Prometheus prints what does not parse to the same: empty braces are left out, and behind
/// two signs an offset goes on that behind one would not.
fn prints_something_else(printed: &str) -> bool {
    printed.ends_with("info(foo, )")
}

#[test]
fn expressions_are_printed_as_prometheus_prints_them() {
    for (text, wanted) in VALID {
        let wanted = if wanted.is_empty() { text } else { wanted };
        let expr = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expr.to_string(), *wanted, "{text}");
        if !prints_something_else(wanted) {
            let again = parse(wanted).unwrap_or_else(|error| panic!("{wanted}: {error}"));
            assert_eq!(again.to_string(), *wanted);
        }
    }
}

#[test]
fn errors_are_those_of_prometheus() {
    for (text, wanted) in ERRORS {
        match parse(text) {
            Ok(expr) => panic!("{text} is parsed as {expr}"),
            Err(error) => assert_eq!(error.to_string(), *wanted, "{text}"),
        }
    }
}

#[test]
fn selectors_of_requests_have_no_modifiers() {
    for (text, wanted) in [
        ("foo", Ok(1)),
        ("on.a{b=\"c\"}", Ok(2)),
        ("{__name__=~\"a.*\",b!=\"\"}", Ok(2)),
        // What it matches is judged by the reader.
        ("{}", Ok(0)),
        ("foo[5m]", Err("1:4: parse error: unexpected \"[\"")),
        (
            "foo offset 5m",
            Err("1:5: parse error: unexpected <offset>"),
        ),
        ("rate(foo)", Err("1:5: parse error: unexpected \"(\"")),
        ("1", Err("1:1: parse error: unexpected number \"1\"")),
        (
            "",
            Err("unknown position: parse error: unexpected end of input"),
        ),
        (
            "{a=\"b\"",
            Err("1:7: parse error: unexpected end of input inside braces"),
        ),
    ] {
        let parsed = parse_selector(text).map(|matchers| matchers.len());
        let parsed = parsed.map_err(|error| error.to_string());
        assert_eq!(parsed, wanted.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn texts_that_are_not_utf8_are_refused_last() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    let wanted = "1:14: parse error: text must be valid UTF-8";
    assert_eq!(error("label_join(x,\"\\xff\",\"a\")"), wanted);
    // A label that is none is an error of the evaluation.
    assert!(parse("count_values(\"\\xff\", foo)").is_ok());
    let both = "count_values(\"\\xff\", label_join(x, \"\\xfe\", \"a\"))";
    assert_eq!(error(both), wanted.replace("14", "36"));
    let wanted = "1:7: parse error: unexpected identifier \"foo\"";
    assert_eq!(error("\"\\xff\"foo"), wanted);
}
