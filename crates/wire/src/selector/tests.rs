//! Regular expressions of matchers, and what they may take.

mod literals;

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
    let (large, small) = (
        |at| format!("\\pL{{12}}{at}"),
        |at: usize| format!("a.*b{at}"),
    );
    let larges = (0..).take_while(|at| patterns.compile(&large(*at)).is_ok());
    assert_eq!(larges.count(), 8);
    assert_eq!(
        patterns.compile(&small(0)).unwrap_err(),
        SelectorError::LargePatterns
    );
    let mut patterns = Patterns::default();
    assert!((0..PATTERNS_MAX).all(|at| patterns.compile(&small(at)).is_ok()));
    assert_eq!(
        patterns.compile(&small(PATTERNS_MAX)).unwrap_err(),
        SelectorError::TooManyPatterns
    );
    assert!(patterns.compile("a|b").is_ok());
}

#[test]
fn the_same_expression_takes_its_place_once() {
    let mut patterns = Patterns::default();
    let first = patterns.compile("a.*").unwrap();
    for _ in 0..10 * PATTERNS_MAX {
        let again = patterns.compile("a.*").unwrap();
        assert!(again == first && again.matches(b"ab") && !again.matches(b"b"));
    }
    let others = (0..).take_while(|at| patterns.compile(&format!("a.*{at}")).is_ok());
    assert_eq!(others.count(), PATTERNS_MAX - 1);
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
