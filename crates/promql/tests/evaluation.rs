//! What expressions give, point by point of the language. Times in series are minutes.

mod support;

use latewood_promql::engine::{Error, EvalError, Query, Settings};
use latewood_promql::number::plain;
use support::Memory;
use support::table::{check, check_range, instant, notes, range};

const MIN: i64 = 60_000;

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
fn arithmetic_is_that_of_floats() {
    check(
        &Memory::default(),
        0,
        &[
            ("-5 % 3", "-2"),
            ("5 % -3", "2"),
            ("2 ^ 3 ^ 2", "512"),
            ("-2 ^ 2", "-4"),
            ("1 / 0", "+Inf"),
            ("0 / 0", "NaN"),
            ("1 atan2 0", "1.5707963267948966"),
            ("1 == bool 1", "1"),
            ("vector(1) + 1", "{} 2"),
            ("\"text\"", "text"),
        ],
    );
}

#[test]
fn comparisons_filter_and_keep_the_value_of_the_vector() {
    let memory = Memory::load(
        MIN,
        "x{a=\"1\"} 1 \n x{a=\"2\"} 2 \n y{a=\"1\"} 3 \n y{a=\"2\"} 2",
    );
    check(
        &memory,
        0,
        &[
            ("x > 1", "x{a=\"2\"} 2"),
            ("1 < x", "x{a=\"2\"} 2"),
            ("x > bool 1", "{a=\"1\"} 0; {a=\"2\"} 1"),
            ("x < y", "x{a=\"1\"} 1"),
            ("x == bool y", "{a=\"1\"} 0; {a=\"2\"} 1"),
            ("x + 1", "{a=\"1\"} 2; {a=\"2\"} 3"),
            ("x == on(a) y", "{a=\"2\"} 2"),
        ],
    );
    let note = "PromQL info: incompatible sample types encountered for binary operator \"</\": \
                float </ float @0";
    assert_eq!(notes(&memory, "x </ y", 0), [note]);
    assert_eq!(notes(&memory, "x </ 2", 0), [note]);
}

#[test]
fn names_stay_where_the_quantity_does() {
    let memory = Memory::load(MIN, "x{__type__=\"gauge\",__unit__=\"s\",a=\"1\"} 1 2");
    let kept = "x{__type__=\"gauge\", __unit__=\"s\", a=\"1\"}";
    check(
        &memory,
        MIN,
        &[
            ("last_over_time(x[5m])", &*format!("{kept} 2")),
            ("first_over_time(x[5m])", &*format!("{kept} 1")),
            ("max_over_time(x[5m])", "{a=\"1\"} 2"),
            ("+x", &*format!("{kept} 2")),
            ("-x", "{a=\"1\"} -2"),
            ("x > 0", &*format!("{kept} 2")),
            ("x * 2", "{a=\"1\"} 4"),
            ("sum without (none) (x)", "{a=\"1\"} 2"),
            ("sum by (__type__) (x)", "{__type__=\"gauge\"} 2"),
            ("topk(1, x)", &*format!("{kept} 2")),
        ],
    );
}

#[test]
fn delayed_removal_keeps_names_until_the_end() {
    let memory = Memory::load(MIN, "x_total{a=\"1\"} 1 2 \n y_total{a=\"1\"} 1 3");
    let at = |query: &str, delays_name_removal| {
        let settings = Settings {
            delays_name_removal,
            ..Settings::default()
        };
        instant(&memory, query, MIN, &settings)
    };
    let query = "sum by (__name__) (increase({a=\"1\"}[1m]) or -{a=\"1\"})";
    let twice = ["error: vector cannot contain metrics with the same labelset"];
    assert_eq!(at(query, false), twice);
    // The names go at the end: nothing else is left.
    assert_eq!(at(query, true), twice);
    let query = "label_replace(-{a=\"1\"}, \"b\", \"$1\", \"__name__\", \"(.*)\")";
    assert_eq!(
        at(query, true),
        ["{a=\"1\", b=\"x_total\"} -2", "{a=\"1\", b=\"y_total\"} -3"]
    );
    assert_eq!(at(query, false), twice);
}

#[test]
fn equal_labels_are_an_error_only_at_the_same_step() {
    let memory = Memory::load(
        6 * MIN,
        "x{a=\"1\"} 1 2 _ _ \n y{a=\"1\"} _ _ 3 4 \n z{a=\"1\"} _ 5 _ 6 \n u{a=\"1\"} 7 _ _ _",
    );
    check_range(
        &memory,
        (0, 18 * MIN, 6 * MIN),
        &[
            ("-{__name__=~\"x|y\"}", "{a=\"1\"} -1 -2 -3 -4"),
            ("{__name__=~\"x|y\"} * 2", "{a=\"1\"} 2 4 6 8"),
            (
                "max_over_time({__name__=~\"x|y\"}[1m])",
                "{a=\"1\"} 1 2 3 4",
            ),
            ("x or y", "x{a=\"1\"} 1 2 _ _; y{a=\"1\"} _ _ 3 4"),
            (
                "-{__name__=~\"x|z\"}",
                "error: vector cannot contain metrics with the same labelset",
            ),
            // Also where no result needs the column.
            (
                "y + on(none) -{__name__=~\"x|z\"}",
                "error: vector cannot contain metrics with the same labelset",
            ),
            ("{__name__=~\"x|y\"} + on(a) z", "{a=\"1\"} _ 7 _ 10"),
            ("z + on(a) {__name__=~\"x|y\"}", "{a=\"1\"} _ 7 _ 10"),
        ],
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
        ],
    );
}

#[test]
fn groups_match_with_included_labels() {
    let memory = Memory::load(
        MIN,
        "m{a=\"1\",v=\"x\"} 1 \n m{a=\"1\",v=\"y\"} 2 \n o{a=\"1\",c=\"red\"} 10 \n \
         o{a=\"2\",c=\"blue\"} 20",
    );
    check(
        &memory,
        0,
        &[
            (
                "m * on(a) group_left(c) o",
                "{a=\"1\", c=\"red\", v=\"x\"} 10; {a=\"1\", c=\"red\", v=\"y\"} 20",
            ),
            (
                "o * on(a) group_right m",
                "{a=\"1\", v=\"x\"} 10; {a=\"1\", v=\"y\"} 20",
            ),
            (
                "m * on(a) group_left(v) o",
                "error: multiple matches for labels: grouping labels must ensure unique matches",
            ),
            (
                "m * on(a) o",
                "error: multiple matches for labels: many-to-one matching must be explicit \
                 (group_left/group_right)",
            ),
            (
                "o * on(a) m",
                "error: found duplicate series for the match group {a=\"1\"} on the right \
                 hand-side of the operation: [{__name__=\"m\", a=\"1\", v=\"x\"}, \
                 {__name__=\"m\", a=\"1\", v=\"y\"}];many-to-many matching not allowed: matching \
                 labels must be unique on one side",
            ),
            (
                "m * on(a) group_right o",
                "error: found duplicate series for the match group {a=\"1\"} on the left \
                 hand-side of the operation: [{__name__=\"m\", a=\"1\", v=\"x\"}, \
                 {__name__=\"m\", a=\"1\", v=\"y\"}];many-to-many matching not allowed: matching \
                 labels must be unique on one side",
            ),
            // Nothing on the other side: nothing is ambiguous.
            ("none * on(a) m", ""),
        ],
    );
}

#[test]
fn fills_stand_for_missing_samples() {
    let memory = Memory::load(
        6 * MIN,
        "l{a=\"1\"} 1 _ 3 \n l{a=\"2\"} 5 5 5 \n r{a=\"1\"} 10 20 _",
    );
    check_range(
        &memory,
        (0, 12 * MIN, 6 * MIN),
        &[
            ("l + r", "{a=\"1\"} 11 _ _"),
            ("l + fill_right(0) r", "{a=\"1\"} 11 _ 3; {a=\"2\"} 5 5 5"),
            ("l + fill_left(0) r", "{a=\"1\"} 11 20 _"),
            ("l + fill(0) r", "{a=\"1\"} 11 20 3; {a=\"2\"} 5 5 5"),
            (
                "r - on(a) group_right fill(0) l",
                "{a=\"1\"} 9 20 -3; {a=\"2\"} -5 -5 -5",
            ),
        ],
    );
    check(
        &memory,
        6 * MIN,
        &[("l + fill(0) r", "{a=\"2\"} 5; {a=\"1\"} 20")],
    );
}

#[test]
fn set_operators_judge_each_step() {
    let memory = Memory::load(
        6 * MIN,
        "l{a=\"1\"} 1 2 3 \n l{a=\"2\"} 4 4 4 \n r{a=\"1\"} _ 8 _ \n r{a=\"3\"} 9 9 9",
    );
    check_range(
        &memory,
        (0, 12 * MIN, 6 * MIN),
        &[
            ("l and r", "l{a=\"1\"} _ 2 _"),
            ("l unless r", "l{a=\"1\"} 1 _ 3; l{a=\"2\"} 4 4 4"),
            (
                "r or l",
                "l{a=\"1\"} 1 _ 3; l{a=\"2\"} 4 4 4; r{a=\"1\"} _ 8 _; r{a=\"3\"} 9 9 9",
            ),
            ("l and on() vector(1)", "l{a=\"1\"} 1 2 3; l{a=\"2\"} 4 4 4"),
            ("l or on() vector(1)", "l{a=\"1\"} 1 2 3; l{a=\"2\"} 4 4 4"),
            ("absent_over_time(r{a=\"1\"}[1m])", "{a=\"1\"} 1 _ 1"),
            (
                "absent_over_time(none{a=\"1\",a=\"2\",b=~\"c\",d=\"e\"}[1m])",
                "{d=\"e\"} 1 1 1",
            ),
            ("absent_over_time(l[1m])", ""),
        ],
    );
    check(
        &memory,
        0,
        &[("r or l", "r{a=\"3\"} 9; l{a=\"1\"} 1; l{a=\"2\"} 4")],
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

#[test]
fn damage_and_limits_fail_a_query() {
    let lines = "x{a=\"1\"} 0+1x100 \n x{a=\"2\"} 0+1x100";
    let run = |change: fn(&mut Memory, &mut Settings), query: &str| {
        let mut memory = Memory::load(MIN, lines);
        let mut settings = Settings::default();
        change(&mut memory, &mut settings);
        range(&memory, query, (0, 100 * MIN, MIN), &settings)
    };
    assert_eq!(
        run(|memory, _| memory.damaged = Some(1), "sum(rate(x[5m]))"),
        ["error: expanding series: block 7 is damaged"]
    );
    assert_eq!(
        run(|memory, _| memory.reads_max = 1, "sum(x)"),
        ["error: query was canceled in expression evaluation"]
    );
    assert_eq!(
        run(|_, settings| settings.memory_bytes_max = 1000, "sum(x)"),
        ["error: query needs more than 1000 bytes of memory; narrow the selectors or the range"]
    );
    let samples = "error: query processing would load too many samples into memory in query \
                   execution";
    assert_eq!(
        run(|_, settings| settings.samples_max = 100, "sum(x)"),
        [samples]
    );
    assert_eq!(
        run(|_, settings| settings.samples_max = 150, "x"),
        [samples]
    );
    assert_eq!(
        run(
            |_, settings| settings.samples_max = 150,
            "sum_over_time(x[100y:1s])"
        ),
        [samples]
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let lines: String = (0..300)
        .map(|at| format!("x{{a=\"{at}\",b=\"{}\"}} {at}.1+0.3x50\n", at % 7))
        .collect();
    let memory = Memory::load(MIN, &lines);
    let run = |threads: usize, query: &str| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| range(&memory, query, (0, 60 * MIN, MIN), &Settings::default()))
    };
    for query in [
        "sum by (b) (x)",
        "avg(x)",
        "topk by (b) (2, x)",
        "quantile(0.3, x)",
        "x * 2",
    ] {
        let single = run(1, query);
        assert!(!single.is_empty() && single == run(4, query), "{query}");
    }
}

#[test]
fn what_a_sink_says_ends_the_query() {
    let memory = Memory::load(MIN, "x{a=\"1\"} 1 \n x{a=\"2\"} 1");
    let times = latewood_promql::Times {
        start_ms: 0,
        end_ms: MIN,
        step_ms: MIN,
    };
    let mut handed = 0;
    let query = Query::new("x").unwrap();
    let result = query.range(times, &Settings::default(), &memory, &mut |_, _| {
        handed += 1;
        Err(EvalError::Query("enough".to_owned()))
    });
    assert!(matches!(result, Err(Error::Eval(EvalError::Query(text))) if text == "enough"));
    assert_eq!(handed, 1);
}
