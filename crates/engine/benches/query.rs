//! Nanoseconds per sample of range queries over batches in memory.
//!
//! `cargo bench -p latewood-engine --bench query`: the median of 9 runs each,
//! batches of 512 samples copied from memory, as a decoded frame would be.

use latewood_engine::Result;
use latewood_engine::query::{
    Aggregation, BatchStats, BucketStamp, Neighbours, RangeQuery, Sink, Source, run,
};
use latewood_model::Aggregator;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

const SAMPLES: usize = 4 << 20;
const BATCH: usize = 512;
const STEP_MS: i64 = 1000;
const RUNS: usize = 9;

struct Series {
    timestamps: Vec<i64>,
    values: Vec<f64>,
    stats: Vec<BatchStats>,
}

struct Replay<'a> {
    series: &'a Series,
    next: usize,
    reverse: bool,
    with_stats: bool,
}

impl Replay<'_> {
    fn upcoming(&self) -> Option<usize> {
        let batches = self.series.stats.len();
        let index = (self.next < batches).then_some(self.next)?;
        Some(if self.reverse {
            batches - 1 - index
        } else {
            index
        })
    }
}

impl Source for Replay<'_> {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        timestamps.clear();
        values.clear();
        let Some(index) = self.upcoming() else {
            return Ok(false);
        };
        let range = index * BATCH..(index + 1) * BATCH;
        timestamps.extend_from_slice(&self.series.timestamps[range.clone()]);
        values.extend_from_slice(&self.series.values[range]);
        self.next += 1;
        Ok(true)
    }

    fn peek_stats(&mut self) -> Option<BatchStats> {
        self.upcoming()
            .filter(|_| self.with_stats)
            .map(|index| self.series.stats[index])
    }

    fn skip(&mut self) {
        self.next += 1;
    }
}

struct Discard(usize);

impl Sink for Discard {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        black_box(values);
        self.0 += timestamps.len();
        ControlFlow::Continue(())
    }
}

fn series() -> Series {
    let timestamps: Vec<i64> = (0..SAMPLES as i64).map(|i| i * STEP_MS).collect();
    let values: Vec<f64> = (0..SAMPLES)
        .map(|i| ((i * 7919) % 10_007) as f64 / 100.0)
        .collect();
    let batches = timestamps.chunks(BATCH).zip(values.chunks(BATCH));
    let stats = batches
        .map(|(timestamps, values)| BatchStats {
            first: timestamps[0],
            last: timestamps[BATCH - 1],
            count: BATCH as u64,
            nan_count: 0,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            sum: values.iter().sum(),
            lost: 0.0,
            is_whole: None,
        })
        .collect();
    Series {
        timestamps,
        values,
        stats,
    }
}

/// The median time of a query over all samples, in nanoseconds a sample.
fn measure(series: &Series, query: &RangeQuery, with_stats: bool) -> (f64, usize) {
    let mut rows = 0;
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut source = Replay {
                series,
                next: 0,
                reverse: query.reverse,
                with_stats,
            };
            let mut sink = Discard(0);
            let start = Instant::now();
            run(query, Neighbours::default(), &mut source, &mut sink).expect("the query is valid");
            rows = sink.0;
            start.elapsed().as_secs_f64() * 1e9 / SAMPLES as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[RUNS / 2], rows)
}

/// Prints one row of the report.
fn report(series: &Series, name: &str, per_bucket: i64, query: &RangeQuery, with_stats: bool) {
    let (ns, rows) = measure(series, query, with_stats);
    println!(
        "| {name} | {per_bucket} | {rows} | {ns:.3} | {:.0} |",
        1e3 / ns
    );
}

/// A query of the raw samples.
fn raw(filter_by_value: Option<(f64, f64)>, reverse: bool) -> RangeQuery {
    RangeQuery {
        to: i64::MAX,
        filter_by_value,
        reverse,
        ..RangeQuery::default()
    }
}

/// A query in buckets of `per_bucket` samples.
fn aggregate(aggregators: &[Aggregator], per_bucket: i64, reverse: bool) -> RangeQuery {
    RangeQuery {
        aggregation: Some(Aggregation {
            aggregators: aggregators.to_vec(),
            bucket_ms: per_bucket * STEP_MS,
            align: 0,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..raw(None, reverse)
    }
}

fn main() {
    let series = series();
    println!("| query | samples a bucket | rows | ns a sample | M samples/s |");
    println!("|---|---|---|---|---|");
    let report = |name: &str, per_bucket: i64, query: &RangeQuery, with_stats| {
        report(&series, name, per_bucket, query, with_stats);
    };
    report("raw", 0, &raw(None, false), false);
    report("raw, by value", 0, &raw(Some((10.0, 90.0)), false), false);
    report("raw, reversed", 0, &raw(None, true), false);
    for aggregator in Aggregator::ALL {
        report(
            aggregator.name(),
            3600,
            &aggregate(&[aggregator], 3600, false),
            false,
        );
    }
    let five = [
        Aggregator::Min,
        Aggregator::Max,
        Aggregator::Sum,
        Aggregator::Avg,
        Aggregator::Count,
    ];
    for per_bucket in [1, 5, 60, 3600] {
        report(
            "min,max,sum,avg,count",
            per_bucket,
            &aggregate(&five, per_bucket, false),
            false,
        );
    }
    report("avg", 6, &aggregate(&[Aggregator::Avg], 6, false), false);
    report(
        "avg, reversed",
        6,
        &aggregate(&[Aggregator::Avg], 6, true),
        false,
    );
    report(
        "min,max,sum,avg,count, reversed",
        3600,
        &aggregate(&five, 3600, true),
        false,
    );
    report(
        "min,max,sum,avg,count by statistics",
        5120,
        &aggregate(&five, 5120, false),
        true,
    );
}
