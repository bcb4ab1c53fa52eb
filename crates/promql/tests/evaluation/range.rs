//! Ranges, subqueries and their functions.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, notes};

#[test]
fn ranges_leave_out_their_start_and_stale_marks() {
    let memory = Memory::load(MIN, "x 1 2 stale 4 5 6");
    check(
        &memory,
        5 * MIN,
        &[
            ("x[2m]", "x 5@240000 6@300000"),
            ("x[4m]", "x 4@180000 5@240000 6@300000"),
            ("count_over_time(x[5m])", "{} 4"),
            ("x[3m] offset 1m", "x 4@180000 5@240000"),
            ("x[1ms]", "x 6@300000"),
            ("present_over_time(x[1m] offset 3m)", ""),
        ],
    );
}

#[test]
fn subqueries_step_on_multiples_from_zero() {
    let memory = Memory::load(MIN, "x 0+1x100");
    check(
        &memory,
        5 * MIN + 10_000,
        &[
            // 3m10s itself is no multiple; the first is 3m20s.
            (
                "x[2m:20s]",
                "x 3@200000 3@220000 4@240000 4@260000 4@280000 5@300000",
            ),
            ("x[1m50s:1m]", "x 4@240000 5@300000"),
            ("x[2m:]", "x 4@240000 5@300000"),
            ("max_over_time(x[3m:1m] offset 2m)", "{} 3"),
            ("max_over_time(x[3m:1m] @ 540)", "{} 9"),
            ("max_over_time((x @ 60)[3m:1m])", "{} 1"),
            ("sum_over_time(vector(time())[3m:1m])", "{} 720"),
        ],
    );
    // A start on a multiple is left out.
    check(&memory, 5 * MIN, &[("x[2m:1m]", "x 4@240000 5@300000")]);
    check(
        &memory,
        -90_000,
        &[("vector(time())[1m:30s]", "{} -120@-120000 -90@-90000")],
    );
}

/// Series at the same times share their windows; calls do not share what they make of these.
#[test]
fn calls_over_the_same_windows_are_told_apart() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let text = names.map(|name| {
        let series = |host| format!("{name}_total{{host=\"{host}\"}} 0+60x20");
        [series(1), series(2), series(3)].join(" \n ")
    });
    let memory = Memory::load(MIN, &text.join(" \n "));
    let rates = names.map(|name| format!("rate({name}_total[4m])"));
    let values = |value: &str| [value; 9].join(" ");
    let each = |value: &str| {
        let hosts = ["1", "2", "3"].map(|host| format!("{{host=\"{host}\"}} {}", values(value)));
        hosts.join("; ")
    };
    for (query, expected) in [
        (
            format!("{} + increase(a_total[4m])", rates.join(" + ")),
            each("246"),
        ),
        (
            "increase(a_total[4m]) + rate(a_total[4m])".to_owned(),
            each("241"),
        ),
        (
            "sum(increase(a_total[4m])) / sum(rate(a_total[4m]))".to_owned(),
            format!("{{}} {}", values("240")),
        ),
        (
            "sum(rate(a_total[4m])) / sum(increase(a_total[4m])) * 240".to_owned(),
            format!("{{}} {}", values("1")),
        ),
        (
            "delta(a_total[4m]) - rate(a_total[4m]) * 239".to_owned(),
            each("1"),
        ),
    ] {
        let query = format!("round({query}, 0.01)");
        check_range(&memory, (5 * MIN, 13 * MIN, MIN), &[(&query, &expected)]);
    }
}

#[test]
fn rates_extrapolate_to_near_borders() {
    let memory = Memory::load(MIN, "c_total 10+60x4 \n z_total 0+60x4 \n one_total 5");
    check(
        &memory,
        4 * MIN,
        &[
            // Three samples two minutes apart, a minute to the start.
            ("increase(c_total[3m])", "{} 180"),
            ("rate(c_total[3m])", "{} 1"),
            // 190 s to the start are too far: half of the distance of samples.
            ("delta(c_total[7m])", "{} 270"),
            // A counter is not extended below zero.
            ("increase(z_total[7m])", "{} 240"),
            ("increase(c_total[1m])", ""),
            ("increase(one_total[10m])", ""),
        ],
    );
}

#[test]
fn a_fall_is_a_reset() {
    let memory = Memory::load(MIN, "c_total 10 20 5 8 3 \n g 1 NaN NaN 2 2");
    check(
        &memory,
        4 * MIN,
        &[
            ("resets(c_total[5m])", "{} 2"),
            ("changes(c_total[5m])", "{} 4"),
            ("changes(g[5m])", "{} 2"),
            ("irate(c_total[5m])", "{} 0.05"),
            ("idelta(c_total[5m])", "{} -5"),
            // 3 - 10 + 20 + 8 in 240 s, and a minute before.
            ("increase(c_total[5m])", "{} 26.25"),
            ("increase(c_total[3m] anchored)", "{} 11"),
            ("resets(c_total[3m] anchored)", "{} 2"),
            ("resets(c_total[3m])", "{} 1"),
        ],
    );
}

#[test]
fn anchored_and_smoothed_windows_have_values_at_their_borders() {
    let memory = Memory::load(MIN, "x 0 60 120 180 240");
    check(
        &memory,
        3 * MIN + 30_000,
        &[
            ("delta(x[2m] smoothed)", "{} 120"),
            ("rate(x[2m] smoothed)", "{} 1"),
            ("delta(x[2m] anchored)", "{} 120"),
            ("x smoothed", "x 210"),
            ("x[1m] smoothed", "x 150@150000 180@180000 210@210000"),
            ("x[1m] anchored", "x 120@150000 180@180000 180@210000"),
            (
                "sum_over_time(x[2m] anchored)",
                "error: anchored modifier can only be used with: changes, delta, increase, rate, \
                 resets - not with sum_over_time",
            ),
            (
                "changes(x[2m] smoothed)",
                "error: smoothed modifier can only be used with: delta, increase, rate - not with \
                 changes",
            ),
        ],
    );
}

#[test]
fn rates_of_gauges_are_noted_once_a_metric() {
    let memory = Memory::load(MIN, "g{a=\"1\"} 1 2 3 \n g{a=\"2\"} 1 2 3 \n c_total 1 2 3");
    let note = "PromQL info: metric might not be a counter, name does not end in \
                _total/_sum/_count/_bucket: \"g\"";
    let at = 2 * MIN;
    assert_eq!(notes(&memory, "rate(g[5m])", at), [format!("{note} @5")]);
    assert_eq!(
        notes(&memory, "rate(c_total[5m]) or irate(g[5m])", at),
        [""; 0]
    );
    // Also where nothing needs the series.
    let query = "c_total and on(none) increase(g[5m])";
    assert_eq!(notes(&memory, query, at).len(), 1);
    assert_eq!(
        notes(&memory, "topk(0, rate(g[5m]))", at),
        [format!("{note} @13")]
    );
    // Prometheus has lost the place of a subquery.
    assert_eq!(
        notes(&memory, "sum(rate(g[5m:1m]))", at),
        [format!("{note} @0")]
    );
}

#[test]
fn lines_and_smoothing_follow_samples() {
    let memory = Memory::load(MIN, "x 0 60 120 180 \n s 1 1 1");
    check(
        &memory,
        3 * MIN,
        &[
            ("deriv(x[5m])", "{} 1"),
            ("predict_linear(x[5m], 60)", "{} 240"),
            ("deriv(s[5m])", "{} 0"),
            ("double_exponential_smoothing(x[5m], 0.5, 0.5)", "{} 180"),
            (
                "double_exponential_smoothing(x[5m], 1, 0.5)",
                "error: invalid smoothing factor. Expected: 0 < sf < 1, got: 1.000000",
            ),
            (
                "double_exponential_smoothing(x[5m], 0.5, 0)",
                "error: invalid trend factor. Expected: 0 < tf < 1, got: 0.000000",
            ),
            ("integral(x[5m])", "{} 16200"),
            ("integral(x[5m], 0)", "{} 10800"),
            ("integral(x[5m], 1)", "{} 21600"),
        ],
    );
    assert_eq!(
        notes(&memory, "integral(x[5m], 7)", 3 * MIN),
        ["PromQL warning: strategy should be 0, 1, or 2 (default), using 2, got 7 @16"]
    );
}
