//! Depth and length: no text overflows the stack of a thread.

use latewood_promql::{QUERY_BYTES_MAX, Times, parse, parse_selector, prepare, pretty, to_json};

/// A stack as small as that of any thread of the server.
const STACK_BYTES: usize = 2 << 20;
const TIMES: Times = Times {
    start_ms: 0,
    end_ms: 1000,
    step_ms: 100,
};

fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
    let thread = builder.spawn(run).expect("a thread starts");
    thread.join().expect("the stack suffices");
}

/// `open` and `close`, many times around an expression.
pub(crate) fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn deep_expressions_are_refused() {
    on_small_stack(|| {
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("-", "foo", ""),
            ("abs(", "foo", ")"),
            ("sum by (a) (", "foo", ")"),
            ("1^", "1", ""),
            ("a or (", "b", ")"),
            ("foo[", "1", ""),
            ("max_over_time(", "foo[1m]", "[1m:])"),
        ] {
            let error = parse(&nested(open, inner, close, 10_000)).unwrap_err();
            let is_depth = error.text == "more than 200 nested expressions";
            assert!(is_depth || open == "foo[", "{open}: {error}");
        }
        for (open, close) in [("(", ")"), ("-", ""), ("1^", ""), ("1m-(", ")")] {
            let duration = nested(open, "1m", close, 10_000);
            let error = parse(&format!("foo[{duration}]")).unwrap_err();
            assert_eq!(error.text, "more than 200 nested expressions", "{open}");
        }
    });
}

#[test]
fn long_chains_are_refused() {
    on_small_stack(|| {
        let error = parse(&nested("a + ", "a", "", 1000)).unwrap_err();
        assert_eq!(error.text, "more than 1000 levels of expressions");
        let error = parse(&format!("foo[{}]", nested("1m+", "1m", "", 10_000))).unwrap_err();
        assert_eq!(error.text, "more than 1000 levels of expressions");
        let error = parse(&nested("", "a", "[5m:1m]", 1001)).unwrap_err();
        assert_eq!(error.text, "more than 1000 levels of expressions");
    });
}

#[test]
fn the_deepest_expressions_are_usable() {
    on_small_stack(|| {
        for text in [
            nested("a + ", "a", "", 999),
            nested("(", "1", ")", 200),
            nested("abs(-", "foo @ 1", ")", 100),
            nested("sum(", "foo", ")", 200),
            nested("1^", "1", "", 200),
            format!("foo[{}]", nested("1m+", "1m", "", 900)),
        ] {
            let expr = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let printed = expr.to_string();
            assert_eq!(parse(&printed).map(|expr| expr.to_string()), Ok(printed));
            assert!(!pretty(&expr).is_empty());
            assert!(to_json(&expr).is_object());
            prepare(expr.clone(), TIMES).expect("it is valid");
        }
    });
}

#[test]
fn long_texts_are_parsed() {
    on_small_stack(|| {
        // Room for what stands around it.
        let fill = |part: &str| part.repeat((QUERY_BYTES_MAX - 32) / part.len());
        let args = format!("label_join(foo, \"a\"{})", fill(", \"b\""));
        let labels = format!("sum by ({}a) (foo)", fill("a,"));
        let blanks = format!("foo{}", fill(" # comment\n"));
        let name = fill("a");
        let value = format!("{{a=\"{}\"}}", fill("\\n"));
        let matchers = format!("{{{}}}", fill("a=\"b\","));
        for text in [args, labels, blanks, name, value, matchers] {
            let parsed = parse(&text);
            assert!(parsed.is_ok(), "{} {parsed:?}", &text[..30]);
        }
        for part in [
            "(",
            "[",
            "{",
            "\"",
            "a+",
            "a[",
            "1 ",
            "-",
            "foo{a=~\"b\"} or ",
            "1m-(",
        ] {
            assert!(parse(&fill(part)).is_err(), "{part}");
        }
    });
}

#[test]
fn regular_expressions_are_counted() {
    let many = |count: usize| -> String {
        let matchers = (0..count).map(|at| format!("a=~\"b.*{at}\","));
        format!("{{{}}}", matchers.collect::<String>())
    };
    assert!(parse(&many(64)).is_ok());
    let error = parse(&many(65)).unwrap_err();
    assert_eq!(error.text, "more than 64 regular expressions");
}

#[test]
fn longer_texts_are_refused() {
    let text = |bytes: usize| format!("{{a=\"{}\"}}", "b".repeat(bytes - 6));
    let longest = text(QUERY_BYTES_MAX);
    assert_eq!(longest.len(), QUERY_BYTES_MAX);
    assert!(parse(&longest).is_ok() && parse_selector(&longest).is_ok());
    let longer = text(QUERY_BYTES_MAX + 1);
    let why = "1:1: parse error: more than 262144 bytes of text";
    assert_eq!(parse(&longer).unwrap_err().to_string(), why);
    assert_eq!(parse_selector(&longer).unwrap_err().to_string(), why);
}

#[test]
fn the_same_regular_expression_counts_once() {
    let terms = vec!["temp{job=~\"a.*\",zone!~\"a.*\"}"; 500];
    assert!(parse(&terms.join(" + ")).is_ok());
}

#[test]
fn variables_of_dashboards_hold_many_values() {
    on_small_stack(|| {
        // As Grafana writes them: escaped for the expression, and again for the text.
        let host = |at| format!("web-frontend-{at:05}\\\\.eu-west-1\\\\.example\\\\.com:9100");
        let hosts: Vec<String> = (0..4000).map(host).collect();
        let wanted = "web-frontend-03999.eu-west-1.example.com:9100";
        for pattern in [hosts.join("|"), format!("({})", hosts.join("|"))] {
            let text = format!("{{instance=~\"{pattern}\"}}");
            assert!(text.len() > 200_000);
            let matchers = parse_selector(&text).expect("they are accepted");
            assert!(matchers[0].passes(wanted.as_bytes()));
            assert!(!matchers[0].passes(b"web-frontend-03999xeu-west-1.example.com:9100"));
            assert!(!matchers[0].passes(wanted.replace("03999", "04000").as_bytes()));
        }
        let terms = vec!["sum(temp{instance=~\"a|b\",job=~\"c\"})"; 900];
        assert!(parse(&terms.join(" + ")).is_ok());
    });
}

#[test]
fn nested_regular_expressions_fit_the_stack() {
    on_small_stack(|| {
        let pattern = nested("(", "a|b", "c)", 100);
        let text = nested("(", &format!("{{a=~\"{pattern}\"}}"), ")", 200);
        assert!(parse(&text).is_ok());
        let error = parse(&format!("{{a=~\"{}\"}}", nested("(", "a|b", "c)", 10_000))).unwrap_err();
        assert!(error.text.contains("error parsing regexp"), "{error}");
    });
}
