//! Selectors as a reader writes them, and what each of them lets pass.

use super::*;

/// The matchers as text, each `name op value`.
fn shown(text: &str) -> Vec<String> {
    let matchers = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let show = |matcher: &Matcher| {
        let (operator, value) = match &matcher.test {
            Test::Equal(value) => ("=", lossy(value)),
            Test::NotEqual(value) => ("!=", lossy(value)),
            Test::Match(pattern) => ("=~", pattern.regex.as_str().to_owned()),
            Test::NotMatch(pattern) => ("!~", pattern.regex.as_str().to_owned()),
        };
        format!("{} {operator} {value}", lossy(&matcher.name))
    };
    matchers.iter().map(show).collect()
}

fn error(text: &str) -> String {
    match parse(text) {
        Ok(matchers) => panic!("{text}: {matchers:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn metric_and_matchers_in_every_form() {
    assert_eq!(shown("up"), ["__name__ = up"]);
    assert_eq!(
        shown(r#" http_requests{job="a",code!~"5..", } "#),
        ["__name__ = http_requests", "job = a", "code !~ ^(?s:5..)$"]
    );
    assert_eq!(
        shown(r#"{ job =~ 'a|b' , x != "" }"#)[0],
        "job =~ ^(?s:a|b)$"
    );
    assert_eq!(
        shown(r#"{"my metric","my label"="x"}"#),
        ["__name__ = my metric", "my label = x"]
    );
    assert_eq!(
        shown(r#"sys.cpu-user{host.name="web/1"}"#),
        ["__name__ = sys.cpu-user", "host.name = web/1"]
    );
    assert_eq!(shown("{__name__=~`a\\d+`}"), ["__name__ =~ ^(?s:a\\d+)$"]);
    assert_eq!(shown("température{}"), ["__name__ = température"]);
    assert_eq!(shown("sensor:3:11"), ["__name__ = sensor:3:11"]);
}

#[test]
fn escapes_are_those_of_go() {
    let text = r#"{a="\a\b\f\n\r\t\v\\\"\x41\101\u00e4\U0001F600'"}"#;
    assert_eq!(
        shown(text),
        ["a = \u{7}\u{8}\u{c}\n\r\t\u{b}\\\"AAä\u{1f600}'"]
    );
    assert_eq!(shown(r"{a='\'x'}"), ["a = 'x"]);
    assert_eq!(shown(r#"{a=`\n"`}"#), [r#"a = \n""#]);
    for bad in [
        r#"\'"#,
        r#"\q"#,
        r#"\x4"#,
        r#"\400"#,
        r#"\ud800"#,
        r#"\U00110000"#,
    ] {
        let text = format!("{{a=\"{bad}\"}}");
        assert_eq!(error(&text), "at byte 4: unknown escape", "{text}");
    }
    let raw = parse(r#"{a="\xff"}"#).unwrap();
    assert!(raw[0].passes(b"\xff"));
    assert_eq!(error(r#"{a=~"\xff"}"#), "at byte 4: unknown escape");
}

#[test]
fn what_is_no_selector_is_told_with_its_place() {
    for (text, wanted) in [
        (
            "rate(up[5m])",
            "at byte 4: expected { or end of input (quote other names: {\"like this\"})",
        ),
        (
            "up{job=\"a\"} offset 5m",
            "at byte 12: expected end of input",
        ),
        ("(up)", "at byte 0: expected a metric name or {"),
        ("up{job}", "at byte 6: expected one of = != =~ !~"),
        ("up{job!\"a\"}", "at byte 7: expected = or ~"),
        ("up{job=a}", "at byte 7: expected a quoted value"),
        ("up{=\"a\"}", "at byte 3: expected a label name"),
        ("up{a=\"a\" b=\"b\"}", "at byte 9: expected , or }"),
        ("up{a=\"a\"", "at byte 8: expected , or }"),
        ("up{a=\"a", "at byte 5: unterminated string"),
        ("up{a=\"a\\", "at byte 5: unterminated string"),
        ("up{__name__=\"down\"}", "duplicate metric name"),
        ("{\"up\",__name__=~\"down\"}", "duplicate metric name"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
}

#[test]
fn what_every_series_would_pass_is_refused() {
    for text in [
        "",
        "{}",
        "{a=\"\"}",
        "{a=~\".*\"}",
        "{a!=\"b\",c!~\"d\"}",
        "{a=~\"|b\"}",
    ] {
        assert!(error(text).starts_with("at least one matcher"), "{text}");
    }
    for text in [
        "{a!=\"\"}",
        "{a=~\".+\"}",
        "{a!~\".*\"}",
        "{a=~\".*\",b=\"c\"}",
    ] {
        shown(text);
    }
}

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
fn limits_end_what_is_too_long() {
    let long = format!("{{a=\"{}\"}}", "x".repeat(SELECTOR_BYTES_MAX));
    assert_eq!(parse(&long).unwrap_err(), SelectorError::TooLong);
    let many = format!("{{{}}}", "a=~\"b\",".repeat(PATTERNS_MAX + 1));
    assert_eq!(parse(&many).unwrap_err(), SelectorError::TooManyPatterns);
    let many = format!("{{{}}}", "a=\"b\",".repeat(MATCHERS_MAX + 1));
    assert_eq!(parse(&many).unwrap_err(), SelectorError::TooMany);
    assert_eq!(
        parse(&many.replacen("a=\"b\",", "", 1)).unwrap().len(),
        MATCHERS_MAX
    );
}

#[test]
fn a_missing_label_is_the_empty_value() {
    let passes = |text: &str, value: &str| {
        let matchers = parse(&format!("{{x=\"y\",a{text}}}")).unwrap();
        matchers[1].passes(value.as_bytes())
    };
    assert!(passes("=\"\"", "") && !passes("!=\"\"", ""));
    assert!(passes("=~\"b?\"", "") && !passes("!~\"b?\"", "") && passes("!~\"b\"", ""));
}

#[test]
fn a_pattern_knows_how_it_was_written() {
    let pattern = Patterns::default().compile("a.*").expect("it is valid");
    assert_eq!(pattern.text(), "a.*");
    let pattern = pattern.written("(?s)a.*");
    assert_eq!(pattern.text(), "(?s)a.*");
    assert!(pattern.matches(b"ab"));
}
