//! Binary operations.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, notes};

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
