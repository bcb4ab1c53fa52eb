//! Times and lengths at the ends of 64 bits: answers or errors, never a panic.

use crate::evaluation::memory::{Memory, labels};
use crate::evaluation::table::{check, instant, range};
use latewood_promql::engine::{Query, Settings};
use latewood_promql::source::Samples;

/// Times at and near the ends, and those between.
const TIMES: [i64; 9] = [
    i64::MIN,
    i64::MIN + 1,
    i64::MIN + 2,
    -1,
    0,
    1,
    i64::MAX / 2,
    i64::MAX - 1,
    i64::MAX,
];

fn memory() -> Memory {
    let mut memory = Memory::default();
    for name in ["x_total{le=\"1\"}", "x_total{le=\"+Inf\"}", "target_info"] {
        let values = [1.0, 4.0, 2.0, 8.0, 3.0, 9.0, 5.0, 7.0, 6.0];
        let samples = Samples {
            timestamps: TIMES.to_vec(),
            values: values.to_vec(),
        };
        memory.add(labels(name), samples);
    }
    memory
}

/// Ranges, subqueries and instants with the longest lengths there are.
fn queries() -> Vec<String> {
    let calls = [
        "rate(R)",
        "increase(R)",
        "delta(R)",
        "irate(R)",
        "idelta(R)",
        "resets(R)",
        "changes(R)",
        "deriv(R)",
        "predict_linear(R, 1e18)",
        "integral(R)",
        "double_exponential_smoothing(R, 0.5, 0.5)",
        "quantile_over_time(0.5, R)",
        "sum_over_time(R)",
        "max_over_time(R)",
        "stddev_over_time(R)",
        "absent_over_time(R)",
        "ts_of_last_over_time(R)",
    ];
    let lasts = ["rate(R)", "increase(R)", "delta(R)"];
    let borders = ["resets(R)", "changes(R)"];
    let offsets = [
        "",
        " offset 292y",
        " offset -292y",
        " @ 9e15",
        " @ -9e15 offset 292y",
    ];
    let mut queries = Vec::new();
    for offset in offsets {
        for length in ["1ms", "292y"] {
            let of = |call: &str, range: String| call.replace('R', &range);
            queries.extend(calls.map(|call| of(call, format!("x_total[{length}]{offset}"))));
            queries.extend(calls.map(|call| of(call, format!("x_total[{length}:290y]{offset}"))));
            for (calls, kind) in [
                (&lasts[..], "smoothed"),
                (&lasts, "anchored"),
                (&borders, "anchored"),
            ] {
                let calls = calls.iter();
                queries.extend(calls.map(|c| of(c, format!("x_total[{length}] {kind}{offset}"))));
            }
        }
        for call in [
            "V",
            "timestamp(V)",
            "V smoothed",
            "info(V)",
            "histogram_quantile(0.5, V)",
        ] {
            queries.push(call.replace('V', &format!("x_total{offset}")));
        }
    }
    let of_time = [
        "time()", "hour()", "year()", "range()", "step()", "start()", "end()",
    ];
    queries.extend(of_time.map(str::to_owned));
    queries.push("timestamp(vector(1))".to_owned());
    queries.push("last_over_time(x_total[range() + 1ms])".to_owned());
    queries
        .push("max_over_time(max_over_time(x_total[292y:200y])[292y:250y] offset 292y)".to_owned());
    queries
}

#[test]
fn no_time_is_too_early_or_too_late() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.unwrap().install(evaluate_all);
}

fn evaluate_all() {
    let memory = memory();
    for lookback_ms in [1, i64::MAX] {
        let settings = Settings {
            lookback_ms,
            samples_max: 1000,
            ..Settings::default()
        };
        for query in queries() {
            Query::new(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
            for at_ms in TIMES {
                instant(&memory, &query, at_ms, &settings);
            }
            for (start_ms, end_ms) in [(0, i64::MAX), (i64::MIN, 0), (i64::MIN, i64::MAX)] {
                let step_ms = i64::try_from(end_ms.abs_diff(start_ms) / 3).unwrap();
                range(&memory, &query, (start_ms, end_ms, step_ms), &settings);
                range(&memory, &query, (start_ms, end_ms, i64::MAX), &settings);
            }
        }
    }
}

#[test]
fn answers_at_the_ends_are_those_of_times_between() {
    let memory = memory();
    for (at_ms, table) in [
        (
            i64::MAX,
            [
                ("x_total{le=\"1\"}", "x_total{le=\"1\"} 6"),
                ("delta(x_total{le=\"1\"}[3ms])", "{le=\"1\"} -1.5"),
                ("rate(target_info[2ms])", "{} 6000"),
                ("round(deriv(target_info[2ms]))", "{} -1000"),
                ("count_over_time(target_info[292y])", "{} 2"),
            ],
        ),
        (
            i64::MIN + 2,
            [
                ("x_total{le=\"1\"}", "x_total{le=\"1\"} 2"),
                ("delta(x_total{le=\"1\"}[2ms])", "{le=\"1\"} -4"),
                ("rate(target_info[2ms])", "{} 2000"),
                ("round(deriv(target_info[2ms]))", "{} -2000"),
                ("count_over_time(target_info[292y])", "{} 2"),
            ],
        ),
    ] {
        check(&memory, at_ms, &table);
    }
    // A grid of all times: too many steps are an error, few are not lost.
    let settings = Settings::default();
    let steps = range(&memory, "time()", (i64::MIN, i64::MAX, i64::MAX), &settings);
    assert_eq!(steps, ["{} -9223372036854776 -0.001 9223372036854776"]);
    let error =
        "error: query processing would load too many samples into memory in query execution";
    let query = "count_over_time(vector(1)[292y:1ms] @ -1)";
    assert_eq!(instant(&memory, query, 0, &settings), [error]);
}
