//! The ends of every range: time, buckets, rows, and who reads how much.

use crate::query_range::support::{Collect, Memory, neighbours, query, rows, rows_from};
use latewood_engine::query::{BucketStamp, Neighbours, RangeQuery, Sink, Source, run};
use latewood_engine::{Error, ErrorKind, Result};
use latewood_model::{Aggregator, Sample};
use std::cell::Cell;
use std::ops::ControlFlow;

/// A sample a millisecond.
fn regular(len: i64) -> Vec<Sample> {
    (0..len).map(|t| Sample::new(t, (t % 7) as f64)).collect()
}

fn collect(enough: usize) -> Collect {
    Collect {
        rows: Vec::new(),
        enough,
    }
}

#[test]
fn no_timestamp_or_bucket_overflows() {
    let times = [
        i64::MIN,
        i64::MIN + 1,
        -9,
        -1,
        0,
        1,
        9,
        i64::MAX - 1,
        i64::MAX,
    ];
    let samples: Vec<Sample> = times.iter().map(|&t| Sample::new(t, 1.0)).collect();
    let names = Aggregator::ALL.map(Aggregator::name).join(",");
    for (reverse, empty) in [(false, false), (true, false), (false, true), (true, true)] {
        for bucket in [1, 2, 10, 1 << 62, i64::MAX - 1, i64::MAX] {
            for align in times {
                for stamp in [BucketStamp::Start, BucketStamp::Mid, BucketStamp::End] {
                    let command = format!("RANGE - + ALIGN {align} AGGREGATION {names} {bucket}");
                    let mut query = query(&command);
                    (query.from, query.reverse) = (i64::MIN, reverse);
                    let aggregation = query.aggregation.as_mut().unwrap();
                    (aggregation.empty, aggregation.stamp) = (empty, stamp);
                    let mut source = Memory::new(&samples, 2, reverse);
                    let mut sink = collect(3000);
                    run(&query, Neighbours::default(), &mut source, &mut sink).unwrap();
                    let ascending = sink.rows.is_sorted_by_key(|row| row.0);
                    let descending = sink.rows.iter().rev().is_sorted_by_key(|row| row.0);
                    assert!(if reverse { descending } else { ascending }, "{query:?}");
                    let all: f64 = sink.rows.iter().map(|row| row.1[14]).sum();
                    assert!(empty || all == samples.len() as f64, "{query:?}");
                }
            }
        }
    }
}

#[test]
fn a_sink_that_has_enough_ends_a_million_billion_rows() {
    let samples = [Sample::new(0, 1.0), Sample::new(1_000_000_000_000_000, 2.0)];
    let query = query("RANGE - + AGGREGATION last 1 EMPTY");
    let mut sink = collect(10_000);
    let mut source = Memory::new(&samples, 2, false);
    run(&query, Neighbours::default(), &mut source, &mut sink).unwrap();
    assert!((10_000..20_000).contains(&sink.rows.len()));
    let counted = query_with_count(&query, 5);
    assert_eq!(rows(&counted, &samples, 2).len(), 5);
}

fn query_with_count(query: &RangeQuery, count: u64) -> RangeQuery {
    RangeQuery {
        count: Some(count),
        ..query.clone()
    }
}

#[test]
fn the_newest_rows_do_not_read_the_oldest_samples() {
    let samples = regular(10_000);
    for (command, batches) in [
        ("REVRANGE - + COUNT 3", 1),
        ("REVRANGE - + COUNT 3 AGGREGATION twa 10 EMPTY", 1),
        ("REVRANGE - + COUNT 1 AGGREGATION first,last,avg 100", 2),
        ("RANGE - + COUNT 3", 1),
        ("RANGE 0 99 AGGREGATION twa 1000", 2),
        ("RANGE - + FILTER_BY_TS 5 150", 3),
    ] {
        let query = query(command);
        let mut source = Memory::new(&samples, 100, query.reverse);
        assert!(!rows_from(&query, &samples, &mut source).is_empty());
        assert!(source.decoded <= batches, "{command}: {}", source.decoded);
    }
}

#[test]
fn statistics_stand_for_the_samples_of_a_batch() {
    let samples = regular(10_000);
    for (command, decoded) in [
        (
            "RANGE - + AGGREGATION min,max,sum,avg,count,range,countnan,countall 1000",
            0,
        ),
        ("REVRANGE - + AGGREGATION sum 1000", 0),
        // Batches over a boundary, or the end of the span, are decoded.
        ("RANGE 50 9949 AGGREGATION sum 1000", 2),
        ("RANGE - + ALIGN 50 AGGREGATION sum 1000", 10),
        // A filter that keeps or drops batches whole needs no samples either.
        ("RANGE - + FILTER_BY_VALUE 0 6 AGGREGATION sum 1000", 0),
        ("RANGE - + FILTER_BY_VALUE 7 9", 0),
        ("RANGE - + FILTER_BY_VALUE 0 5 AGGREGATION sum 1000", 100),
        ("RANGE - + FILTER_BY_TS 150 5050 AGGREGATION sum 1000", 2),
        ("RANGE - + AGGREGATION sum,last 1000", 100),
        ("RANGE - + AGGREGATION std.p 1000", 100),
    ] {
        let query = query(command);
        let mut source = Memory::new(&samples, 100, query.reverse);
        source.with_stats = true;
        let with_stats = rows_from(&query, &samples, &mut source);
        assert_eq!(source.decoded, decoded, "{command}");
        assert_eq!(with_stats, rows(&query, &samples, 100), "{command}");
    }
}

/// NaN in every millisecond, and how many batches of it were read.
struct Silence {
    next: i64,
    batches: i64,
}

impl Source for Silence {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        let end = self.next + 500;
        *timestamps = (self.next..end).collect();
        *values = vec![f64::NAN; 500];
        (self.next, self.batches) = (end, self.batches - 1);
        Ok(self.batches >= 0)
    }
}

/// Stops once more rows than its limit are announced.
struct Full {
    rows_max: u64,
    rows: Vec<i64>,
}

impl Sink for Full {
    fn rows(&mut self, timestamps: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
        self.rows.extend(timestamps);
        ControlFlow::Continue(())
    }

    fn announce(&mut self, count: u64, _: usize) -> ControlFlow<()> {
        if count > self.rows_max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn buckets_of_nan_that_wait_for_a_number_are_no_more_than_fit_in_a_reply() {
    for (command, batches_left, rows) in [
        ("RANGE - + AGGREGATION twa,countall 1", 3_979, 0),
        ("RANGE - + COUNT 2 AGGREGATION twa,countall 1", -1, 2),
        ("RANGE - + AGGREGATION twa 1", -1, 0),
    ] {
        let mut source = Silence {
            next: 0,
            batches: 4_000,
        };
        let mut sink = Full {
            rows_max: 10_000,
            rows: Vec::new(),
        };
        let query = query(command);
        run(&query, Neighbours::default(), &mut source, &mut sink).unwrap();
        let found = (source.batches, sink.rows.len());
        assert_eq!(found, (batches_left, rows), "{command}");
    }
}

/// Nobody wants its rows once it was asked `after` times.
struct Cancelled {
    after: Cell<u32>,
}

impl Sink for Cancelled {
    fn rows(&mut self, _: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.after.set(self.after.get().saturating_sub(1));
        self.after.get() == 0
    }
}

#[test]
fn a_cancelled_query_reads_no_further() {
    for command in ["RANGE - +", "RANGE - + AGGREGATION countall 1000000000"] {
        let mut source = Silence {
            next: 0,
            batches: 4_000,
        };
        let after = Cell::new(11);
        run(
            &query(command),
            Neighbours::default(),
            &mut source,
            &mut Cancelled { after },
        )
        .unwrap();
        assert_eq!(source.batches, 3_990, "{command}");
    }
}

#[test]
fn neighbours_are_asked_for_only_where_lines_are_drawn() {
    assert!(query("RANGE - + AGGREGATION sum,twa 10").needs_neighbours());
    assert!(!query("RANGE - + AGGREGATION sum,last 10").needs_neighbours());
    assert!(!query("RANGE - +").needs_neighbours());
}

#[test]
fn queries_out_of_range_are_refused_in_words() {
    let samples = regular(3);
    let mut no_aggregator = query("RANGE - + AGGREGATION sum 10");
    no_aggregator
        .aggregation
        .as_mut()
        .unwrap()
        .aggregators
        .clear();
    let mut many = query("RANGE - + AGGREGATION sum 10");
    many.aggregation.as_mut().unwrap().aggregators = vec![Aggregator::Sum; 17];
    let mut unsorted = query("RANGE - +");
    unsorted.filter_by_timestamps = Some(vec![2, 1]);
    let mut long = query("RANGE - +");
    long.filter_by_timestamps = Some((0..129).collect());
    let none_wide = query("RANGE - + AGGREGATION sum 0");
    for query in [no_aggregator, many, unsorted, long, none_wide] {
        let mut source = Memory::new(&samples, 2, false);
        let error = run(
            &query,
            neighbours(&query, &samples),
            &mut source,
            &mut collect(9),
        );
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid, "{query:?}");
    }
}

#[test]
fn an_error_of_the_source_is_the_error_of_the_query() {
    struct Broken;
    impl Source for Broken {
        fn next(&mut self, _: &mut Vec<i64>, _: &mut Vec<f64>) -> Result<bool> {
            Err(Error::new(ErrorKind::Corrupt, "a frame fails its checksum"))
        }
    }
    for command in ["RANGE - +", "REVRANGE - + AGGREGATION twa 10 EMPTY"] {
        let mut sink = collect(9);
        let error = run(
            &query(command),
            Neighbours::default(),
            &mut Broken,
            &mut sink,
        );
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(sink.rows.is_empty());
    }
}

#[test]
fn the_line_of_a_time_weighted_average_meets_its_samples_exactly() {
    let samples = [Sample::new(0, 1e15), Sample::new(10, 59.32)];
    for command in [
        "REVRANGE 10 20 AGGREGATION twa 1",
        "RANGE 10 20 AGGREGATION twa 1",
    ] {
        assert_eq!(
            rows(&query(command), &samples, 2),
            [(10, vec![59.32])],
            "{command}"
        );
    }
}
