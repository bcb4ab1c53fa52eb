//! PromQL: no input may panic, overflow the stack, be slow or use much memory, and an expression
//! that is printed parses to the same.
#![cfg_attr(fuzzing, no_main)]

use latewood_promql::{Times, parse, parse_selector, prepare, pretty, to_json};
use libfuzzer_sys::fuzz_target;

const TIMES: Times = Times {
    start_ms: 1_000_000,
    end_ms: 2_000_500,
    step_ms: 10_000,
};

fuzz_target!(|text: &str| {
    let _ = parse_selector(text);
    let expr = match parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            assert!(error.span.start <= text.len());
            return;
        }
    };
    let span = expr.span();
    assert!(span.start < span.end && span.end <= text.len());
    to_json(&expr);
    let printed = expr.to_string();
    for again in [&printed, &pretty(&expr)] {
        match parse(again) {
            Ok(again) => assert!(is_odd(text, &printed) || again.to_string() == printed),
            Err(error) => assert!(is_odd(text, &printed), "{printed}: {error}"),
        }
    }
    let _ = prepare(expr, TIMES);
});

/// Whether Prometheus too may print what does not parse to the same: empty braces are left out,
/// durations under a millisecond are 0, times are rounded to three digits, and an offset behind two
/// signs goes on where one behind one sign ends.
fn is_odd(text: &str, printed: &str) -> bool {
    ["info(", "[0s", ":0s", " @ "]
        .iter()
        .any(|odd| printed.contains(odd))
        || text.to_ascii_lowercase().contains("offset")
}
