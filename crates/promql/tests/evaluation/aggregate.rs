//! Aggregations.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, notes};
use latewood_promql::number::plain;

#[test]
fn sums_are_compensated_and_means_do_not_overflow() {
    let memory = Memory::load(
        MIN,
        "x{a=\"1\"} 1e100 \n x{a=\"2\"} 1 \n x{a=\"3\"} -1e100 \n \
         y{a=\"1\"} 1.7e308 1.7e308 \n y{a=\"2\"} 1.7e308 1.7e308 \n \
         i{a=\"1\"} inf \n i{a=\"2\"} 1 \n n{a=\"1\"} inf -inf",
    );
    check(
        &memory,
        0,
        &[
            ("sum(x)", "{} 1"),
            ("sum(y)", "{} +Inf"),
            ("avg(y) == 1.7e308", &*format!("{{}} {}", plain(1.7e308))),
            ("sum(i)", "{} +Inf"),
            ("avg(i)", "{} +Inf"),
            ("stddev(i)", "{} NaN"),
            ("sum_over_time(vector(1)[3m:1m])", "{} 3"),
        ],
    );
    check(
        &memory,
        MIN,
        &[
            ("sum_over_time(y{a=\"1\"}[5m])", "{a=\"1\"} +Inf"),
            ("avg_over_time(y{a=\"1\"}[5m]) / 1.7e308", "{a=\"1\"} 1"),
            ("sum_over_time(n[5m])", "{a=\"1\"} NaN"),
        ],
    );
}

#[test]
fn quantiles_outside_of_their_bounds_are_infinite_with_a_warning() {
    let memory = Memory::load(MIN, "x{a=\"1\"} 1 3 \n x{a=\"2\"} 2 4");
    check(
        &memory,
        MIN,
        &[
            ("quantile(0.5, x)", "{} 3.5"),
            ("quantile(-1, x)", "{} -Inf"),
            ("quantile(2, x)", "{} +Inf"),
            ("quantile(NaN, x)", "{} NaN"),
            ("quantile_over_time(0.25, x{a=\"1\"}[5m])", "{a=\"1\"} 1.5"),
            ("stddev(x)", "{} 0.5"),
            ("stdvar_over_time(x{a=\"1\"}[5m])", "{a=\"1\"} 1"),
            ("mad_over_time(x{a=\"1\"}[5m])", "{a=\"1\"} 1"),
        ],
    );
    assert_eq!(
        notes(&memory, "quantile(1.5, x)", MIN),
        ["PromQL warning: quantile value should be between 0 and 1, got 1.5 @9"]
    );
    assert_eq!(
        notes(&memory, "quantile_over_time(-1, x[5m])", MIN),
        ["PromQL warning: quantile value should be between 0 and 1, got -1 @19"]
    );
}

#[test]
fn extremes_ignore_nan_unless_there_is_nothing_else() {
    let memory = Memory::load(
        MIN,
        "x{a=\"1\"} NaN 1 2 2 NaN \n x{a=\"2\"} NaN NaN NaN NaN NaN \n x{a=\"3\"} 5 5 5 5 5",
    );
    let at = 4 * MIN;
    check(
        &memory,
        at,
        &[
            ("max(x)", "{} 5"),
            ("min(x{a!=\"3\"})", "{} NaN"),
            (
                "max_over_time(x[5m])",
                "{a=\"1\"} 2; {a=\"2\"} NaN; {a=\"3\"} 5",
            ),
            (
                "min_over_time(x[3m])",
                "{a=\"1\"} 2; {a=\"2\"} NaN; {a=\"3\"} 5",
            ),
            ("ts_of_max_over_time(x{a=\"1\"}[5m])", "{a=\"1\"} 180"),
            ("ts_of_min_over_time(x{a=\"1\"}[5m])", "{a=\"1\"} 60"),
            ("ts_of_max_over_time(x{a=\"2\"}[5m])", "{a=\"2\"} 240"),
            ("topk(2, x)", "x{a=\"3\"} 5; x{a=\"1\"} NaN"),
            ("bottomk(1, x)", "x{a=\"3\"} 5"),
            (
                "count_values(\"v\", x{a=\"3\"} * 1e21)",
                "{v=\"5000000000000000000000\"} 1",
            ),
        ],
    );
}

#[test]
fn k_and_ratio_pick_step_by_step() {
    let memory = Memory::load(
        6 * MIN,
        "x{a=\"1\",b=\"1\"} 1 5 \n x{a=\"2\",b=\"1\"} 3 _ \n x{a=\"3\",b=\"2\"} 2 2",
    );
    check_range(
        &memory,
        (0, 6 * MIN, 6 * MIN),
        &[(
            "topk(1, x)",
            "x{a=\"1\", b=\"1\"} _ 5; x{a=\"2\", b=\"1\"} 3 _",
        )],
    );
    check(
        &memory,
        0,
        &[
            ("topk(2, x)", "x{a=\"2\", b=\"1\"} 3; x{a=\"3\", b=\"2\"} 2"),
            (
                "topk by (b) (1, x)",
                "x{a=\"2\", b=\"1\"} 3; x{a=\"3\", b=\"2\"} 2",
            ),
            ("bottomk(1.9, x)", "x{a=\"1\", b=\"1\"} 1"),
            ("topk(0, x)", ""),
            ("topk(-1, x)", ""),
            ("limitk(1, x)", "x{a=\"1\", b=\"1\"} 1"),
            ("topk(NaN, x)", "error: Parameter value is NaN"),
            ("topk(1e30, x)", "error: Scalar value 1e+30 overflows int64"),
            ("limit_ratio(NaN, x)", "error: Ratio value is NaN"),
            ("count(limit_ratio(0.5, x) or limit_ratio(-0.5, x))", "{} 3"),
            ("limit_ratio(0.5, x) and limit_ratio(-0.5, x)", ""),
        ],
    );
    assert_eq!(
        notes(&memory, "limit_ratio(1.5, x)", 0),
        ["PromQL warning: ratio value should be between -1 and 1, got 1.5, capping to 1 @12"]
    );
}

#[test]
fn groups_are_by_or_without_labels() {
    let memory = Memory::load(
        MIN,
        "x{a=\"1\",b=\"1\"} 1 \n x{a=\"1\",b=\"2\"} 2 \n x{a=\"2\"} 4 \n w{a=\"0\"} stale",
    );
    check(
        &memory,
        0,
        &[
            ("sum by (a) (x)", "{a=\"1\"} 3; {a=\"2\"} 4"),
            ("sum by () (x)", "{} 7"),
            (
                "sum without () (x)",
                "{a=\"1\", b=\"1\"} 1; {a=\"1\", b=\"2\"} 2; {a=\"2\"} 4",
            ),
            ("sum without (b) (x)", "{a=\"1\"} 3; {a=\"2\"} 4"),
            ("count by (b) (x)", "{b=\"1\"} 1; {b=\"2\"} 1; {} 1"),
            (
                "group by (a) ({__name__=~\"x|w\"})",
                "{a=\"1\"} 1; {a=\"2\"} 1",
            ),
            ("avg(x)", &*format!("{{}} {}", plain(7.0 / 3.0))),
            ("count_values by (a) (\"a\", x{b=\"1\"})", "{a=\"1\"} 1"),
            ("count_values(\"\", x)", "error: invalid label name \"\""),
            (
                "count_values(\"\\xff\", x)",
                "error: invalid label name \"\\xff\"",
            ),
        ],
    );
}
