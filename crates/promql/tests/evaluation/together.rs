//! What a source knows of samples together gives what the samples give one by one, bit for bit.

use crate::evaluation::MIN;
use crate::evaluation::memory::{Memory, labels};
use crate::evaluation::table::{instant, range};
use latewood_promql::engine::{Query, Settings};
use latewood_promql::source::{STALE_BITS, Samples};
use proptest::prelude::*;

const FUNCTIONS: [&str; 9] = [
    "count_over_time",
    "present_over_time",
    "absent_over_time",
    "sum_over_time",
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "last_over_time",
    "stddev_over_time",
];

/// Values of gauges, most of them whole, and what is neither a number nor positive.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        40 => (-3..100_i32).prop_map(f64::from),
        4 => (-50..50_i32).prop_map(|parts| f64::from(parts) / 10.0),
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::from_bits(STALE_BITS), f64::INFINITY, 1e300, -1e300, 9e15, 2e12,
        ]),
    ]
}

fn memory(values: &[f64], frame: usize) -> Memory {
    let mut memory = Memory::default();
    memory.frame = frame;
    let timestamps = (0..values.len() as i64).map(|at| at * MIN).collect();
    let values = values.to_vec();
    memory.add(labels("x{a=\"1\"}"), Samples { timestamps, values });
    memory
}

proptest! {
    #[test]
    fn windows_give_what_their_samples_give(
        values in prop_oneof![
            prop::collection::vec(value(), 1..60),
            prop::collection::vec((0..9_i32).prop_map(f64::from), 1..60),
            prop::collection::vec(prop::sample::select(vec![0.0, -0.0, -1.0]), 1..20),
        ],
        frame in 1..20_usize,
        (at, minutes) in (0..70_i64, 1..70_i64),
    ) {
        let (plain, framed) = (memory(&values, 0), memory(&values, frame));
        let settings = Settings::default();
        for function in FUNCTIONS {
            let query = format!("{function}(x[{minutes}m])");
            let ask = |of: &Memory| instant(of, &query, at * MIN, &settings);
            prop_assert_eq!(ask(&framed), ask(&plain), "{}", query);
            let read = |of: &Memory| {
                let query = Query::new(&query).unwrap();
                query.instant(at * MIN, &settings, of).unwrap().stats.samples_read
            };
            prop_assert_eq!(read(&framed), read(&plain), "{}", query);
            let ask = |of: &Memory| range(of, &query, (0, 60 * MIN, at.max(1) * MIN), &settings);
            prop_assert_eq!(ask(&framed), ask(&plain), "{}", query);
        }
    }
}

#[test]
fn samples_known_together_are_not_read() {
    // Reading would fail.
    let mut framed = memory(&[3.0; 40], 10);
    framed.damaged = Some(0);
    let settings = Settings::default();
    for (function, value) in [("sum", "120"), ("avg", "3"), ("max", "3"), ("count", "40")] {
        let query = format!("{function}_over_time(x[1h])");
        let given = instant(&framed, &query, 39 * MIN, &settings);
        assert_eq!(given, [format!("{{a=\"1\"}} {value}")]);
        let part = format!("{function}_over_time(x[15m])");
        let given = instant(&framed, &part, 38 * MIN, &settings);
        assert_eq!(given, ["error: expanding series: block 7 is damaged"]);
    }
}
