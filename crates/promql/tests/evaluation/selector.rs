//! Instant selectors, offsets and times.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, instant};
use latewood_promql::engine::Settings;

#[test]
fn selectors_take_the_newest_sample_of_the_lookback() {
    let memory = Memory::load(MIN, "x 1 _x9 2 stale _ 3");
    // The sample at 0 is exactly five minutes old at 5m.
    check(&memory, 5 * MIN - 1, &[("x", "x 1")]);
    check(&memory, 5 * MIN, &[("x", "")]);
    check_range(
        &memory,
        (9 * MIN, 13 * MIN, MIN),
        &[("x", "x _ 2 _ _ 3"), ("timestamp(x)", "{} _ 600 _ _ 780")],
    );
    let settings = Settings {
        lookback_ms: 10 * MIN,
        ..Settings::default()
    };
    assert_eq!(instant(&memory, "x", 9 * MIN, &settings), ["x 1"]);
}

#[test]
fn offset_and_at_combine() {
    let memory = Memory::load(MIN, "x 0+1x20");
    check_range(
        &memory,
        (10 * MIN, 12 * MIN, MIN),
        &[
            ("x offset 2m", "x 8 9 10"),
            ("x offset -2m", "x 12 13 14"),
            ("x @ 300", "x 5 5 5"),
            ("x @ 300 offset 1m", "x 4 4 4"),
            ("x offset 1m @ end()", "x 11 11 11"),
            ("sum_over_time(x[2m] @ start())", "{} 19 19 19"),
            ("x - x @ start()", "{} 0 1 2"),
            ("timestamp(x @ 300)", "{} 300 300 300"),
            ("predict_linear(x[5m] @ 300, 60)", "{} 11 12 13"),
            ("max_over_time(x[2m:1m] @ start() offset 1m)", "{} 9 9 9"),
        ],
    );
}

#[test]
fn steps_end_at_or_before_the_end() {
    let memory = Memory::load(MIN, "x 0+1x20");
    check_range(&memory, (0, 119_999, MIN), &[("x", "x 0 1")]);
    check_range(
        &memory,
        (0, 2 * MIN, MIN),
        &[("x", "x 0 1 2"), ("1", "{} 1 1 1")],
    );
    check_range(
        &memory,
        (0, MIN, MIN),
        &[
            (
                "x[5m]",
                "error: invalid expression type \"range vector\" for range query, must be Scalar \
                 or instant Vector",
            ),
            (
                "\"a\"",
                "error: invalid expression type \"string\" for range query, must be Scalar or \
                 instant Vector",
            ),
        ],
    );
}

#[test]
fn times_below_zero_have_no_samples() {
    let memory = Memory::load(MIN, "x 1 2");
    check(
        &memory,
        -MIN,
        &[("x", ""), ("x offset -1m", "x 1"), ("time()", "-60")],
    );
    check_range(&memory, (-MIN, MIN, MIN), &[("x", "x _ 1 2")]);
}
