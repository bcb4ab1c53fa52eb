//! Remote read requests: no input may panic, be slow or use much memory.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::prometheus::read::{QUERIES_MAX, Request};
use latewood_wire::selector::MATCHERS_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    let Ok(request) = Request::read(message, latewood_promql::compile_pattern) else {
        return;
    };
    assert!(request.queries.len() <= QUERIES_MAX);
    for query in &request.queries {
        assert!(query.matchers.len() <= MATCHERS_MAX);
        for matcher in &query.matchers {
            matcher.passes(&matcher.name);
        }
    }
});
