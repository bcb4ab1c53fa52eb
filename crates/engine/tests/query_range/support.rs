//! A source in memory, a sink that collects, and a reader of TS.RANGE words.

use latewood_engine::Result;
use latewood_engine::query::{
    Aggregation, BatchStats, BucketStamp, Neighbours, RangeQuery, Sink, Source, run,
};
use latewood_model::{Aggregator, Compatibility, Sample};
use std::ops::ControlFlow;

/// Samples cut into batches, in the order a query wants them.
pub(crate) struct Memory {
    batches: Vec<Vec<Sample>>,
    next: usize,
    /// Whether batches tell their statistics.
    pub(crate) with_stats: bool,
    /// Batches that had to be decoded.
    pub(crate) decoded: usize,
}

impl Memory {
    pub(crate) fn new(samples: &[Sample], batch: usize, reverse: bool) -> Self {
        let mut batches: Vec<Vec<Sample>> = samples.chunks(batch).map(<[_]>::to_vec).collect();
        if reverse {
            batches.reverse();
        }
        Self {
            batches,
            next: 0,
            with_stats: false,
            decoded: 0,
        }
    }
}

impl Source for Memory {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        timestamps.clear();
        values.clear();
        let Some(batch) = self.batches.get(self.next) else {
            return Ok(false);
        };
        timestamps.extend(batch.iter().map(|sample| sample.timestamp));
        values.extend(batch.iter().map(|sample| sample.value));
        self.next += 1;
        self.decoded += 1;
        Ok(true)
    }

    fn peek_stats(&mut self) -> Option<BatchStats> {
        let batch = self.batches.get(self.next).filter(|_| self.with_stats)?;
        let numbers = || batch.iter().map(|s| s.value).filter(|v| !v.is_nan());
        Some(BatchStats {
            first: batch.first()?.timestamp,
            last: batch.last()?.timestamp,
            count: batch.len() as u64,
            nan_count: (batch.len() - numbers().count()) as u64,
            min: numbers().fold(f64::INFINITY, f64::min),
            max: numbers().fold(f64::NEG_INFINITY, f64::max),
            sum: numbers().sum(),
            lost: 0.0,
            is_whole: None,
        })
    }

    fn skip(&mut self) {
        self.next += 1;
    }
}

/// Collects rows and has enough at a limit.
pub(crate) struct Collect {
    pub(crate) rows: Vec<(i64, Vec<f64>)>,
    pub(crate) enough: usize,
}

impl Sink for Collect {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        assert_eq!(values.len(), timestamps.len() * width);
        let rows = timestamps.iter().zip(values.chunks(width));
        self.rows.extend(rows.map(|(t, row)| (*t, row.to_vec())));
        if self.rows.len() >= self.enough {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The numbers next to the query's span that pass its filters.
pub(crate) fn neighbours(query: &RangeQuery, samples: &[Sample]) -> Neighbours {
    let passes = |s: &&Sample| {
        let bounds = query.filter_by_value;
        let by_value = bounds.is_none_or(|(a, b)| a <= s.value && s.value <= b);
        let wanted = query.filter_by_timestamps.as_ref();
        let by_time = wanted.is_none_or(|wanted| wanted.contains(&s.timestamp));
        by_value && by_time && !s.value.is_nan()
    };
    let mut before = samples.iter().rev().filter(|s| s.timestamp < query.from);
    let mut after = samples.iter().filter(|s| s.timestamp > query.to);
    Neighbours {
        before: before.find(passes).copied(),
        after: after.find(passes).copied(),
    }
}

/// The rows of a query over samples cut into batches.
pub(crate) fn rows(query: &RangeQuery, samples: &[Sample], batch: usize) -> Vec<(i64, Vec<f64>)> {
    let mut source = Memory::new(samples, batch, query.reverse);
    rows_from(query, samples, &mut source)
}

pub(crate) fn rows_from(
    query: &RangeQuery,
    samples: &[Sample],
    source: &mut Memory,
) -> Vec<(i64, Vec<f64>)> {
    let mut sink = Collect {
        rows: Vec::new(),
        enough: usize::MAX,
    };
    run(query, neighbours(query, samples), source, &mut sink).unwrap();
    sink.rows
}

/// Reads `RANGE|REVRANGE from to options...` in the words of the commands, as of 1.12.
pub(crate) fn query(command: &str) -> RangeQuery {
    let mut words = command.split_whitespace().peekable();
    let reverse = words.next() == Some("REVRANGE");
    let mut number = |otherwise: i64| words.next().unwrap().parse().unwrap_or(otherwise);
    let (from, to) = (number(0), number(i64::MAX));
    let mut query = RangeQuery {
        from,
        to,
        reverse,
        compatibility: Compatibility::V1_12,
        ..RangeQuery::default()
    };
    let mut align = 0;
    while let Some(word) = words.next() {
        match word {
            "COUNT" => query.count = words.next().map(|w| w.parse().unwrap()),
            "ALIGN" => align = words.next().unwrap().parse().unwrap(),
            "FILTER_BY_VALUE" => {
                let mut bound = || words.next().unwrap().parse().unwrap();
                query.filter_by_value = Some((bound(), bound()));
            }
            "FILTER_BY_TS" => {
                let mut timestamps = Vec::new();
                while let Some(timestamp) = words.peek().and_then(|w| w.parse().ok()) {
                    timestamps.push(timestamp);
                    words.next();
                }
                timestamps.sort_unstable();
                timestamps.dedup();
                query.filter_by_timestamps = Some(timestamps);
            }
            "AGGREGATION" => {
                let names = words.next().unwrap().split(',');
                query.aggregation = Some(Aggregation {
                    aggregators: names
                        .map(|name| Aggregator::of_name(name.as_bytes()).unwrap())
                        .collect(),
                    bucket_ms: words.next().unwrap().parse().unwrap(),
                    align,
                    stamp: BucketStamp::Start,
                    empty: false,
                });
            }
            "EMPTY" => query.aggregation.as_mut().unwrap().empty = true,
            "BUCKETTIMESTAMP" => {
                query.aggregation.as_mut().unwrap().stamp = match words.next().unwrap() {
                    "-" => BucketStamp::Start,
                    "mid" => BucketStamp::Mid,
                    "+" => BucketStamp::End,
                    other => panic!("{other}"),
                };
            }
            other => panic!("{other}"),
        }
    }
    query
}
