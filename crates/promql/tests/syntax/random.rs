//! Random texts of the words of the language: nothing panics, and what is printed parses again.

use super::valid::VALID;
use latewood_promql::{parse, parse_selector, pretty, to_json};
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "foo",
    "a:b",
    "é",
    "1",
    "5m",
    "0x1f",
    "1e3",
    "NaN",
    "\"a\"",
    "`b`",
    "sum",
    "topk",
    "by",
    "on",
    "without",
    "ignoring",
    "group_left",
    "fill",
    "bool",
    "offset",
    "@",
    "start",
    "end",
    "step",
    "range",
    "min_of",
    "anchored",
    "smoothed",
    "rate",
    "info",
    "time",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "==",
    "!=",
    "=~",
    "!~",
    "<",
    ">",
    "</",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "and",
    "or",
    "unless",
    "atan2",
    "#c\n",
    " ",
    "$",
    "\"",
    "\\",
    "(a)",
    "[5m]",
    "{a=\"b\"}",
    "()",
];

proptest! {
    #[test]
    fn words_in_any_order_do_no_harm(words in prop::collection::vec(prop::sample::select(WORDS), 0..12)) {
        check(&words.join(" "));
        check(&words.concat());
    }

    #[test]
    fn changed_expressions_do_no_harm(
        (text, _) in prop::sample::select(VALID),
        word in prop::sample::select(WORDS),
        from in any::<prop::sample::Index>(),
        length in 0_usize..4,
    ) {
        let letters: Vec<char> = text.chars().collect();
        let from = from.index(letters.len() + 1);
        let behind = (from + length).min(letters.len());
        let start: String = letters[..from].iter().collect();
        let end: String = letters[behind..].iter().collect();
        check(&format!("{start}{word}{end}"));
    }
}

fn check(text: &str) {
    let _ = parse_selector(text);
    let expr = match parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            assert!(error.span.start <= text.len(), "{text}: {error}");
            return;
        }
    };
    let span = expr.span();
    assert!(span.start < span.end && span.end <= text.len(), "{text}");
    to_json(&expr);
    // Prometheus leaves empty braces out, and an offset behind two signs goes on.
    let printed = expr.to_string();
    let is_odd = printed.contains("info(") || text.contains("offset");
    match parse(&printed) {
        Ok(again) => assert!(is_odd || again.to_string() == printed, "{printed}"),
        Err(error) => assert!(is_odd, "{printed}: {error}"),
    }
    match parse(&pretty(&expr)) {
        Ok(again) => assert!(is_odd || again.to_string() == printed, "{printed}"),
        Err(error) => assert!(is_odd, "{printed}: {error}"),
    }
}
