//! What RedisTimeSeries 1.12 answered, and where Latewood differs on purpose.

use crate::query_range::support::{query, rows};
use latewood_model::Sample;

const SERIES: &str = "5:1 12:2 13:4 40:8 47:16 95:32";

fn samples(text: &str) -> Vec<Sample> {
    let pair = |word: &str| {
        let (timestamp, value) = word.split_once(':').unwrap();
        Sample::new(timestamp.parse().unwrap(), value.parse().unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

/// Holds a command against its answer, `timestamp value...` a row.
fn check(series: &str, command: &str, answer: &str) {
    let (samples, query) = (samples(series), query(command));
    let width = query
        .aggregation
        .as_ref()
        .map_or(1, |a| a.aggregators.len());
    let words: Vec<&str> = answer.split_whitespace().collect();
    for batch in [1, 2, 8, 100] {
        let rows = rows(&query, &samples, batch);
        assert_eq!(rows.len(), words.len() / (width + 1), "{command}: {rows:?}");
        for ((timestamp, values), expected) in rows.iter().zip(words.chunks(width + 1)) {
            assert_eq!(timestamp.to_string(), expected[0], "{command}: {rows:?}");
            for (value, expected) in values.iter().zip(&expected[1..]) {
                let expected: f64 = expected.parse().unwrap();
                let near = (value - expected).abs() <= 1e-14 * expected.abs();
                let nan = value.is_nan() && expected.is_nan();
                assert!(near || nan || *value == expected, "{command}: {rows:?}");
            }
        }
    }
}

/// From the server: `command => answer`, all on [`SERIES`].
const SERVER: &[&str] = &[
    // Empty buckets: between samples of the span, not at its edges.
    "RANGE 0 200 AGGREGATION sum 10 EMPTY => 0 1 10 6 20 0 30 0 40 24 50 0 60 0 70 0 80 0 90 32",
    "RANGE 12 48 AGGREGATION sum 10 EMPTY => 10 6 20 0 30 0 40 24",
    "RANGE 20 60 AGGREGATION sum 10 EMPTY => 40 24",
    "RANGE 20 39 AGGREGATION sum 10 EMPTY =>",
    "RANGE 60 90 AGGREGATION sum 10 EMPTY =>",
    "RANGE 30 20 AGGREGATION sum 10 EMPTY =>",
    "RANGE 30 20 =>",
    "RANGE 12 48 AGGREGATION avg 10 EMPTY => 10 3 20 NaN 30 NaN 40 12",
    "RANGE 12 48 AGGREGATION min 10 EMPTY => 10 2 20 NaN 30 NaN 40 8",
    "RANGE 12 48 AGGREGATION range 10 EMPTY => 10 2 20 NaN 30 NaN 40 8",
    "RANGE 12 48 AGGREGATION count 10 EMPTY => 10 2 20 0 30 0 40 2",
    "RANGE 12 48 AGGREGATION std.p 10 EMPTY => 10 1 20 NaN 30 NaN 40 4",
    "RANGE 0 48 AGGREGATION std.s 10 => 0 0 10 1.4142135623730951 40 5.656854249492381",
    "RANGE 0 48 AGGREGATION var.s 10 EMPTY => 0 0 10 2 20 NaN 30 NaN 40 32",
    // COUNT counts rows, empty ones too, from where the answer begins.
    "RANGE 0 200 COUNT 3 AGGREGATION sum 10 EMPTY => 0 1 10 6 20 0",
    "REVRANGE 0 200 COUNT 3 AGGREGATION sum 10 EMPTY => 90 32 80 0 70 0",
    // FIRST, LAST and the previous value go by the direction of the query.
    "RANGE 0 200 AGGREGATION last 10 EMPTY => 0 1 10 4 20 4 30 4 40 16 50 16 60 16 70 16 80 16 90 32",
    "REVRANGE 0 200 AGGREGATION last 10 EMPTY => 90 32 80 32 70 32 60 32 50 32 40 8 30 8 20 8 10 2 0 1",
    "RANGE 12 48 AGGREGATION first 10 EMPTY => 10 2 20 NaN 30 NaN 40 8",
    "REVRANGE 12 48 AGGREGATION first 10 EMPTY => 40 16 30 NaN 20 NaN 10 4",
    "REVRANGE 0 200 AGGREGATION first 100 => 0 32",
    "REVRANGE 0 200 AGGREGATION last 100 => 0 1",
    "RANGE 0 200 FILTER_BY_VALUE 8 32 AGGREGATION last 10 EMPTY => 40 16 50 16 60 16 70 16 80 16 90 32",
    // Stamps; the bucket that begins below 0 counts as beginning at 0.
    "RANGE 0 200 AGGREGATION sum 7 BUCKETTIMESTAMP - => 0 1 7 6 35 8 42 16 91 32",
    "RANGE 0 200 AGGREGATION sum 7 BUCKETTIMESTAMP mid => 3 1 10 6 38 8 45 16 94 32",
    "RANGE 0 200 AGGREGATION sum 7 BUCKETTIMESTAMP + => 7 1 14 6 42 8 49 16 98 32",
    "RANGE 0 200 ALIGN 7 AGGREGATION sum 10 => 0 1 7 6 37 8 47 16 87 32",
    "RANGE 0 200 ALIGN 107 AGGREGATION sum 10 => 0 1 7 6 37 8 47 16 87 32",
    "RANGE 0 200 ALIGN 7 AGGREGATION sum 10 BUCKETTIMESTAMP mid => 5 1 12 6 42 8 52 16 92 32",
    "RANGE 0 200 ALIGN 7 AGGREGATION sum 10 BUCKETTIMESTAMP + => 10 1 17 6 47 8 57 16 97 32",
    "RANGE 0 200 ALIGN 7 AGGREGATION sum 11 BUCKETTIMESTAMP mid => 5 1 12 6 45 24 100 32",
    // Filters.
    "RANGE 20 60 FILTER_BY_TS 47 40 40 5 95 FILTER_BY_VALUE 0 9 => 40 8",
    "RANGE 0 200 FILTER_BY_VALUE 9 4 =>",
    "REVRANGE 10 200 FILTER_BY_TS 40 12 13 5 COUNT 2 => 40 8 13 4",
    // The line of TWA reaches to the samples just outside the span.
    "RANGE 0 200 AGGREGATION twa 10 => 0 1.3571428571428572 10 3.8343915343915347 40 13.35 90 31.166666666666668",
    "REVRANGE 0 200 AGGREGATION twa 10 => 90 31.166666666666668 40 13.35 10 3.8343915343915347 0 1.3571428571428572",
    "RANGE 0 48 AGGREGATION twa 10 => 0 1.3571428571428572 10 3.8343915343915347 40 12.520833333333332",
    "RANGE 45 48 AGGREGATION twa 10 => 40 15.293650793650793",
    "RANGE 11 12 AGGREGATION twa 10 => 10 1.9285714285714286",
    "RANGE 12 12 AGGREGATION twa 10 => 10 2",
    "RANGE 0 5 AGGREGATION twa 10 => 0 1",
    "RANGE 0 6 AGGREGATION twa 10 => 0 1.0714285714285714",
    "RANGE 0 200 ALIGN 7 AGGREGATION twa 10 => 0 1.1428571428571428 7 2.8399470899470898 37 10.733333333333333 47 17.666666666666664 87 30.666666666666668",
    // And with EMPTY also to where no sample is.
    "RANGE 20 60 AGGREGATION twa 10 => 40 13.35",
    "RANGE 20 60 AGGREGATION twa 10 EMPTY => 20 5.777777777777779 30 7.2592592592592595 40 13.35 50 18.666666666666664 60 20.333333333333332",
    "RANGE 60 90 AGGREGATION twa 10 EMPTY => 60 22 70 25.333333333333336 80 28.666666666666668 90 30.333333333333336",
    "RANGE 0 4 AGGREGATION twa 10 EMPTY =>",
    "RANGE 96 200 AGGREGATION twa 10 EMPTY =>",
    "RANGE 94 200 AGGREGATION twa 10 EMPTY => 90 31.833333333333332",
    "RANGE 22 35 AGGREGATION twa 10 =>",
    "RANGE 22 35 AGGREGATION twa 10 EMPTY => 20 5.925925925925926 30 6.888888888888889",
    "RANGE 22 25 AGGREGATION twa 10 EMPTY => 20 5.555555555555555",
    "RANGE 22 38 AGGREGATION twa 10 EMPTY BUCKETTIMESTAMP mid => 25 5.925925925925926 35 7.111111111111112",
    "REVRANGE 22 38 AGGREGATION twa 10 EMPTY => 30 7.111111111111112 20 5.925925925925926",
    "REVRANGE 22 38 COUNT 1 AGGREGATION twa 10 EMPTY => 30 7.111111111111112",
    "RANGE 22 38 COUNT 1 AGGREGATION twa 10 EMPTY => 20 5.925925925925926",
];

#[test]
fn the_server_answered_the_same() {
    for line in SERVER {
        let (command, answer) = line.split_once("=>").unwrap();
        check(SERIES, command, answer);
    }
}

#[test]
fn the_server_answered_the_same_at_the_end_of_time() {
    let series = "0:1 1:7 9223372036854775806:2 9223372036854775807:3";
    for line in [
        "RANGE - + AGGREGATION sum 1 => 0 1 1 7 9223372036854775806 2 9223372036854775807 3",
        "RANGE - + AGGREGATION sum 10 => 0 8 9223372036854775800 5",
        "RANGE - + AGGREGATION sum 10 BUCKETTIMESTAMP mid => 5 8 9223372036854775805 5",
        "RANGE - + AGGREGATION sum 4611686018427387904 => 0 8 4611686018427387904 5",
        "RANGE - + AGGREGATION sum 9223372036854775806 => 0 8 9223372036854775806 5",
        "RANGE - + AGGREGATION sum 9223372036854775807 => 0 10 9223372036854775807 3",
        "RANGE - + ALIGN 9223372036854775807 AGGREGATION sum 10 => 0 8 9223372036854775797 2 9223372036854775807 3",
    ] {
        let (command, answer) = line.split_once("=>").unwrap();
        check(series, command, answer);
    }
}

/// The server wraps stamps past the end of time to negative ones, and loses
/// buckets that begin below 0 and reach far.
#[test]
fn differs_stamps_stop_at_the_end_of_time() {
    let series = "0:1 1:7 9223372036854775806:2 9223372036854775807:3";
    for line in [
        "RANGE - + AGGREGATION sum 10 BUCKETTIMESTAMP + => 10 8 9223372036854775807 5",
        "RANGE - + ALIGN 5 AGGREGATION sum 9223372036854775807 => 0 8 5 5",
    ] {
        let (command, answer) = line.split_once("=>").unwrap();
        check(series, command, answer);
    }
}

/// The server answers 0 for the sum of 1, 1e100, 1, -1e100, 0.9999999999999999
/// for ten tenths, and variances that cancelled.
#[test]
fn differs_arithmetic_is_right() {
    let series = "20:1 21:1e100 22:1 23:-1e100 30:0.1 31:0.1 32:0.1 33:0.1 34:0.1 35:0.1 \
                  36:0.1 37:0.1 38:0.1 39:0.1 40:100000001 41:100000002 42:100000003";
    check(series, "RANGE 20 29 AGGREGATION sum,avg 10", "20 2 0.5");
    check(
        series,
        "RANGE 30 39 AGGREGATION sum,avg,std.p 10",
        "30 1 0.1 0",
    );
    check(series, "RANGE 40 49 AGGREGATION var.s 10", "40 1");
    // Eight of them make one number and what it lost; the halves cancel.
    let halves = "0:1e16 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:-1e16 9:0 10:0 11:0 12:0 13:0 14:0 15:0";
    check(halves, "RANGE 0 99 AGGREGATION sum 100", "0 7");
    check(
        series,
        "RANGE 40 49 AGGREGATION var.p 10",
        "40 0.6666666666666666",
    );
    let large = "0:1.7e308 1:1.7e308 2:-1.7e308";
    check(
        large,
        "RANGE 0 9 AGGREGATION sum,avg 10",
        "0 1.7e308 5.666666666666667e307",
    );
    check(
        large,
        "RANGE 0 1 AGGREGATION avg,twa 10",
        "0 1.7e308 1.7e308",
    );
}

/// The server applies the filters after it has found the samples to draw the
/// line through, and answers 5.5E18 or lines past the last sample. Here the
/// line goes through the samples that pass.
#[test]
fn differs_twa_of_filtered_samples() {
    check(
        SERIES,
        "RANGE 0 200 FILTER_BY_VALUE 8 32 AGGREGATION twa 100 EMPTY",
        "0 22.472727272727273",
    );
    check(
        SERIES,
        "RANGE 13 41 FILTER_BY_VALUE 3 9 AGGREGATION twa 100",
        "0 6",
    );
    check(
        SERIES,
        "RANGE 20 60 FILTER_BY_VALUE 8 8 AGGREGATION twa 10 EMPTY",
        "40 8",
    );
    check(
        SERIES,
        "RANGE 20 60 FILTER_BY_TS 13 40 95 AGGREGATION twa 100",
        "0 9.441077441077441",
    );
}

/// From the description of the newer servers; 1.12 has no NaN, no COUNTNAN,
/// no COUNTALL and one aggregator only.
#[test]
fn nan_samples_count_only_as_such() {
    let series = "0:1 1:NaN 2:5 10:NaN 11:NaN 30:2";
    check(
        series,
        "RANGE 0 99 AGGREGATION count,countnan,countall,sum,min,last 10 EMPTY",
        "0 2 1 3 6 1 5 10 0 2 2 0 NaN 5 20 0 0 0 0 NaN 5 30 1 0 1 2 2 2",
    );
    check(
        series,
        "RANGE 0 9 AGGREGATION avg,first,twa,range,var.p 10",
        "0 3 1 4.263888888888889 4 4",
    );
    // The line of TWA passes over NaN, in a bucket of nothing else too.
    check(
        series,
        "RANGE 0 99 AGGREGATION twa,countall 10",
        "0 4.257142857142857 3 10 3.6071428571428572 2 30 2 1",
    );
    check(series, "RANGE 0 20 FILTER_BY_VALUE -inf inf", "0 1 2 5");
}

/// From the description of the newer servers, as above.
#[test]
fn a_bucket_of_nothing_but_nan_is_a_row_if_empty_ones_are() {
    let series = "1:5 11:NaN 21:7";
    for line in [
        "RANGE 0 99 AGGREGATION last 10 => 0 5 20 7",
        "RANGE 0 99 AGGREGATION sum 10 => 0 5 20 7",
        "REVRANGE 0 99 AGGREGATION avg,count 10 => 20 7 1 0 5 1",
        "RANGE 0 99 AGGREGATION twa 10 => 0 5.45 20 6.95",
        "RANGE 0 99 COUNT 2 AGGREGATION first 10 => 0 5 20 7",
        // With EMPTY it is one, also at the ends.
        "RANGE 0 99 AGGREGATION last,sum,min 10 EMPTY => 0 5 5 5 10 5 0 NaN 20 7 7 7",
        "RANGE 11 99 AGGREGATION sum 10 EMPTY => 10 0 20 7",
        "RANGE 0 20 AGGREGATION sum 10 EMPTY => 0 5 10 0",
        "RANGE 11 20 AGGREGATION sum 10 EMPTY => 10 0",
        // What counts NaN makes a row of it, with no value that is not there.
        "RANGE 0 99 AGGREGATION countnan 10 => 10 1",
        "RANGE 0 99 AGGREGATION countall,last,min 10 => 0 1 5 5 10 1 NaN NaN 20 1 7 7",
    ] {
        let (command, answer) = line.split_once("=>").unwrap();
        check(series, command, answer);
    }
    let long = "0:NaN 1:NaN 2:NaN 3:NaN 4:NaN 5:NaN 6:NaN 7:NaN 8:NaN 9:NaN 10:1";
    check(long, "RANGE 0 99 AGGREGATION sum 10", "10 1");
}
