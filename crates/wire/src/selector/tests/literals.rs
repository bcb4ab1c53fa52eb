//! Expressions that are lists of literals, beside the same expressions compiled.

use super::super::literals::literals;
use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// The literals of an expression, in order.
fn listed(expression: &str) -> Option<Vec<String>> {
    let pattern = Patterns::default().compile(expression).expect(expression);
    let text = |one: &[u8]| String::from_utf8(one.to_vec()).unwrap();
    pattern
        .literals()
        .map(|all| all.iter().map(|one| text(one)).collect())
}

#[test]
fn alternations_are_lists() {
    for (expression, wanted) in [
        ("b|a|b", &["a", "b"][..]),
        ("", &[""]),
        ("a|", &["", "a"]),
        ("a?", &["", "a"]),
        (r"a\.b|a\+c", &["a+c", "a.b"]),
        ("(a|bc)", &["a", "bc"]),
        ("(?:a|bc)|(?P<n>d)", &["a", "bc", "d"]),
        ("^(?:a|bc)$", &["a", "bc"]),
        ("^ab|cd$", &["ab", "cd"]),
        (r"web-(a|b|cd)\.eu", &["web-a.eu", "web-b.eu", "web-cd.eu"]),
        ("web-[1-3]", &["web-1", "web-2", "web-3"]),
        ("(?i)ab", &["AB", "Ab", "aB", "ab"]),
        ("é|\n", &["\n", "é"]),
        (r"a\P{any}|b", &["b"]),
        (r"\P{any}", &[]),
    ] {
        assert_eq!(
            listed(expression).expect(expression),
            wanted,
            "{expression}"
        );
    }
}

#[test]
fn others_are_compiled() {
    for expression in [
        "a.*", "a.b", "a+", "a{2,3}", r"\bab", "a^b", "(?m)^a", "(a|b$)c", r"\pL", "[^a]",
    ] {
        assert_eq!(listed(expression), None, "{expression}");
    }
}

#[test]
fn twenty_thousand_names_are_accepted() {
    let name = |at| format!(r"web-frontend-{at:05}\.eu-west-1\.example\.com:9100");
    let names: Vec<String> = (0..20_000).map(name).collect();
    let mut patterns = Patterns::default();
    let whole = patterns.compile(&names.join("|")).expect("it is accepted");
    let parts: Vec<String> = (0..20_000).map(|at| format!("{at:05}")).collect();
    let group = format!(
        r"web-frontend-({})\.eu-west-1\.example\.com:9100",
        parts.join("|")
    );
    let group = patterns.compile(&group).expect("it is accepted");
    for pattern in [whole, group] {
        let known = pattern.literals().expect("it is a list");
        assert_eq!(known.len(), 20_000);
        assert!(pattern.matches(b"web-frontend-19999.eu-west-1.example.com:9100"));
        assert!(!pattern.matches(b"web-frontend-20000.eu-west-1.example.com:9100"));
    }
}

#[test]
fn expressions_that_stand_for_many_literals_are_compiled() {
    // The first have a thousand literals, the others a million or more.
    assert_eq!(listed("(a|b)(c|d)").map(|all| all.len()), Some(4));
    assert_eq!(listed(&"(a|b)".repeat(10)).map(|all| all.len()), Some(1024));
    let nothing = r"[a-z][a-z][a-z]\P{any}|";
    for expression in [
        "(a|b)".repeat(20),
        "(a|)".repeat(20),
        "[a-z]".repeat(5),
        format!("{}$", "(?:a?)".repeat(40)),
        nothing.repeat(1000) + "a",
    ] {
        assert_eq!(literals(&expression), None, "{expression}");
    }
    // They are accepted all the same, and match.
    let pattern = Patterns::default().compile(&"(a|b)".repeat(20));
    let pattern = pattern.expect("it is accepted");
    assert!(pattern.matches(&b"ab".repeat(10)) && !pattern.matches(&b"ac".repeat(10)));
}

#[test]
fn lists_take_from_what_a_request_may_take() {
    let mut patterns = Patterns::default();
    let names = |at| {
        let names: Vec<String> = (0..10_000).map(|name| format!("{at}-{name:05}")).collect();
        names.join("|")
    };
    let count = (0..1000)
        .take_while(|at| patterns.compile(&names(*at)).is_ok())
        .count();
    assert!((20..42).contains(&count), "{count}");
    assert_eq!(
        patterns.compile(&names(count)).unwrap_err(),
        SelectorError::LargePatterns
    );
    // These come down to few literals after much work.
    let work = |at| format!(r"{}{at}", "(a|a|)".repeat(7));
    let mut patterns = Patterns::default();
    let works = (0..).take_while(|at| patterns.compile(&work(*at)).is_ok());
    assert!((100..2000).contains(&works.count()));
    let long = "a|".repeat(PATTERN_BYTES_MAX / 2);
    assert!(Patterns::default().compile(&long).is_ok());
    let error = Patterns::default().compile(&(long + "a")).unwrap_err();
    assert!(error.to_string().ends_with("too large"), "{error}");
}

#[test]
fn lists_are_equal_where_they_match_the_same() {
    let pattern = |text| Patterns::default().compile(text).unwrap();
    assert_eq!(pattern("a|b"), pattern("(?:b|a)"));
    assert_ne!(pattern("a|b"), pattern("a|b|c"));
    assert_ne!(pattern("a.*"), pattern("a.*b"));
}

/// Expressions of few characters, so that values often match.
fn expressions() -> impl Strategy<Value = String> {
    const ATOMS: [&str; 14] = [
        "a", "b", "ab", "é", r"\.", "", "[ab]", "[a-c]", ".", "^", "$", "(?i)a", "\n", r"\x62",
    ];
    select(&ATOMS[..])
        .prop_map(str::to_owned)
        .prop_recursive(4, 24, 4, |inner| {
            let some = prop::collection::vec(inner.clone(), 1..4);
            let group = select(&["(", "(?:", "(?i:", "(?s-i:", "(?m:"][..]);
            let repeat = select(&["?", "??", "*", "{2}", "{0,2}", "{1,2}"][..]);
            prop_oneof![
                3 => some.clone().prop_map(|parts| parts.join("|")),
                3 => some.prop_map(|parts| parts.concat()),
                3 => (group, inner.clone()).prop_map(|(open, inner)| format!("{open}{inner})")),
                1 => (inner, repeat).prop_map(|(inner, repeat)| format!("(?:{inner}){repeat}")),
            ]
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lists_match_what_the_compiled_expression_does(
        expression in expressions(),
        values in prop::collection::vec("[abAc.é\n]{0,5}", 20),
    ) {
        let compiled = Regex::new(&format!("^(?s:{expression})$")).expect(&expression);
        let pattern = Patterns::default().compile(&expression).expect(&expression);
        for value in &values {
            let wanted = compiled.is_match(value.as_bytes());
            prop_assert_eq!(pattern.matches(value.as_bytes()), wanted, "{:?}", value);
        }
        for literal in pattern.literals().unwrap_or_default() {
            prop_assert!(compiled.is_match(literal), "{:?}", literal);
        }
    }
}
