//! Selectors: no input may panic, be slow or use much memory, and a parsed selector
//! that is written out again matches the same values.
#![no_main]

use latewood_wire::selector::{Matcher, Test, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(matchers) = parse(text) else { return };
    assert!(matchers.iter().any(|matcher| !matcher.passes(b"")));
    for matcher in &matchers {
        assert!(!matcher.name.is_empty());
        // Patterns are tried on the other values.
        for other in &matchers {
            matcher.passes(&other.name);
        }
    }
    let exact = matchers.iter().filter_map(written);
    let exact: Vec<String> = exact.collect();
    if exact.is_empty() {
        return;
    }
    let again = format!("{{{},always!=\"\"}}", exact.join(","));
    if let Ok(again) = parse(&again) {
        assert_eq!(again.len(), exact.len() + 1);
    } else {
        // Duplicate metric names and too many matchers are refused.
        let metrics = matchers.iter().filter(|matcher| matcher.is_on_metric());
        assert!(
            metrics.count() > 1 || matchers.len() > 100 || again.len() > 60_000,
            "{again}"
        );
    }
});

/// An exact matcher as text.
fn written(matcher: &Matcher) -> Option<String> {
    let (operator, value) = match &matcher.test {
        Test::Equal(value) => ("=", value),
        Test::NotEqual(value) => ("!=", value),
        Test::Match(_) | Test::NotMatch(_) => return None,
    };
    let quote =
        |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect() };
    Some(format!(
        "\"{}\"{operator}\"{}\"",
        quote(&matcher.name),
        quote(value)
    ))
}
