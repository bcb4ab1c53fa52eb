//! Which names stay, and series that become the same.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, instant};
use latewood_promql::engine::Settings;

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
