//! Regular expressions of matchers, and what they may take.

use super::*;

#[test]
fn expressions_are_anchored_whatever_they_hold() {
    let compile = |pattern: &str| Patterns::default().compile(pattern);
    let passes = |pattern: &str, value: &str| compile(pattern).unwrap().matches(value.as_bytes());
    assert!(passes("a|b", "a") && passes("a|b", "b") && !passes("a|b", "ab"));
    assert!(passes("a|ab", "ab") && !passes("b", "abc") && passes("a.c", "a\nc"));
    assert!(passes("(?i)ABC", "abc") && passes("", "") && !passes("", "a"));
    assert!(!passes("^a$", "a\n") && passes("^a$", "a"));
    let why = |pattern: &str| compile(pattern).unwrap_err().to_string();
    assert_eq!(
        why("a)|(b"),
        "the regular expression \"a)|(b\": error: unopened group"
    );
    assert!(why("(?=x)").contains("look-around"), "{}", why("(?=x)"));
    assert!(
        why("\\pL{999}{999}").ends_with("too large"),
        "{}",
        why("\\pL{999}{999}")
    );
}

#[test]
fn regular_expressions_of_a_request_share_what_they_may_take() {
    let mut patterns = Patterns::default();
    // The largest there may be, and the smallest.
    let (large, small) = ("\\pL{12}", "a.*b");
    let larges = std::iter::repeat_with(|| patterns.compile(large)).take_while(Result::is_ok);
    assert_eq!(larges.count(), 8);
    assert_eq!(
        patterns.compile(small).unwrap_err(),
        SelectorError::LargePatterns
    );
    let mut patterns = Patterns::default();
    assert!((0..PATTERNS_MAX).all(|_| patterns.compile(small).is_ok()));
    assert_eq!(
        patterns.compile(small).unwrap_err(),
        SelectorError::TooManyPatterns
    );
}

#[test]
fn a_missing_label_is_the_empty_value() {
    let pattern = |text| Patterns::default().compile(text).unwrap();
    let passes = |test: Test, value: &str| Matcher::new(b"a", test).passes(value.as_bytes());
    let empty = || Box::from(&b""[..]);
    assert!(passes(Test::Equal(empty()), "") && !passes(Test::NotEqual(empty()), ""));
    assert!(passes(Test::Match(pattern("b?")), ""));
    assert!(!passes(Test::NotMatch(pattern("b?")), ""));
    assert!(passes(Test::NotMatch(pattern("b")), ""));
}

#[test]
fn a_pattern_knows_how_it_was_written() {
    let pattern = Patterns::default().compile("a.*").expect("it is valid");
    assert_eq!(pattern.text(), "a.*");
    let pattern = pattern.written("(?s)a.*");
    assert_eq!(pattern.text(), "(?s)a.*");
    assert!(pattern.matches(b"ab"));
}
