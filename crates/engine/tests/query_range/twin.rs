//! The query against a twin that is as naive as it can be, on random data.

use crate::query_range::support::{Memory, neighbours, rows_from};
use latewood_engine::io::sim::seed;
use latewood_engine::query::{Aggregation, BucketStamp, RangeQuery};
use latewood_model::{Aggregator, Compatibility, Sample};
use std::collections::BTreeMap;

/// A small generator (SplitMix64), so that a seed replays a run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: i64) -> i64 {
        (self.next() % end as u64) as i64
    }

    fn one_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }
}

fn random_samples(random: &mut Random, span: i64) -> Vec<Sample> {
    let share = 1 + random.below(10);
    let nans = random.one_in(2);
    let mut samples = Vec::new();
    for timestamp in 0..span {
        if random.below(10) < share {
            let value = (random.below(2001) - 1000) as f64 / 8.0;
            let nan = nans && random.one_in(3);
            samples.push(Sample::new(timestamp, if nan { f64::NAN } else { value }));
        }
    }
    samples
}

fn random_query(random: &mut Random, span: i64) -> RangeQuery {
    let (a, b) = (random.below(span + 10) - 5, random.below(span + 10) - 5);
    let timestamps = random.one_in(4).then(|| {
        let mut timestamps: Vec<i64> = (0..=random.below(20)).map(|_| random.below(span)).collect();
        timestamps.sort_unstable();
        timestamps.dedup();
        timestamps
    });
    let widest_ms = [3, 20, 500][random.below(3) as usize];
    let aggregation = (!random.one_in(6)).then(|| Aggregation {
        aggregators: (0..=random.below(4))
            .map(|_| Aggregator::ALL[random.below(15) as usize])
            .collect(),
        bucket_ms: 1 + random.below(widest_ms),
        align: random.below(2000) - 1000,
        stamp: BucketStamp::Start,
        empty: random.one_in(2),
    });
    RangeQuery {
        from: a.min(b),
        to: a.max(b),
        filter_by_timestamps: timestamps,
        filter_by_value: random.one_in(4).then(|| {
            (
                (random.below(200) - 150) as f64,
                (random.below(200) - 50) as f64,
            )
        }),
        count: random.one_in(3).then(|| 1 + random.below(20) as u64),
        aggregation,
        reverse: random.one_in(2),
        compatibility: Compatibility::ALL[random.below(2) as usize],
        ..RangeQuery::default()
    }
}

/// The rows of a query, by the definition and no thought for cost.
fn naive(query: &RangeQuery, samples: &[Sample]) -> Vec<(i64, Vec<f64>)> {
    let passes = |s: &Sample| {
        let by_value = query
            .filter_by_value
            .is_none_or(|(a, b)| a <= s.value && s.value <= b);
        let wanted = query.filter_by_timestamps.as_ref();
        by_value && wanted.is_none_or(|wanted| wanted.contains(&s.timestamp))
    };
    let inside = |s: &Sample| (query.from..=query.to).contains(&s.timestamp);
    let mut kept: Vec<Sample> = samples
        .iter()
        .copied()
        .filter(|s| inside(s) && passes(s))
        .collect();
    let outside = neighbours(query, samples);
    let (before, after) = (outside.before, outside.after);
    // As of 8.10 a reversed query has the rows of the other, from the end.
    let turns =
        query.reverse && query.aggregation.is_some() && query.compatibility == Compatibility::V8_10;
    let reverse = query.reverse && !turns;
    if reverse {
        kept.reverse();
    }
    let mut rows = match &query.aggregation {
        None => kept.iter().map(|s| (s.timestamp, vec![s.value])).collect(),
        Some(aggregation) => {
            let mut line: Vec<Sample> = before
                .into_iter()
                .chain(kept.iter().copied())
                .chain(after)
                .collect();
            line.retain(|s| !s.value.is_nan());
            line.sort_by_key(|s| s.timestamp);
            let twa = query.needs_neighbours();
            let edges = (before.filter(|_| twa), after.filter(|_| twa));
            naive_buckets(query, aggregation, &kept, &line, edges, reverse)
        }
    };
    if turns {
        rows.reverse();
    }
    rows.truncate(query.count.map_or(usize::MAX, |count| count as usize));
    rows
}

/// Whether one of the aggregators takes a sample.
fn is_taken(aggregation: &Aggregation, sample: &Sample) -> bool {
    aggregation.aggregators.iter().any(|by| match by {
        Aggregator::CountAll => true,
        Aggregator::CountNan => sample.value.is_nan(),
        _ => !sample.value.is_nan(),
    })
}

/// From where to where empty buckets are rows.
fn filled(
    query: &RangeQuery,
    kept: &[Sample],
    (before, after): (Option<Sample>, Option<Sample>),
) -> Option<(i64, i64)> {
    let oldest = kept.iter().map(|s| s.timestamp).min();
    let newest = kept.iter().map(|s| s.timestamp).max();
    // As of 8.10 there has to be a number on both sides.
    let is_new = query.compatibility == Compatibility::V8_10;
    let within = kept.iter().any(|s| !is_new || !s.value.is_nan());
    let first = before.map(|_| query.from);
    let first = first.filter(|_| within || after.is_some());
    let last = after.map(|_| query.to);
    let last = last.filter(|_| within || before.is_some());
    first.or(oldest).zip(last.or(newest))
}

fn naive_buckets(
    query: &RangeQuery,
    aggregation: &Aggregation,
    kept: &[Sample],
    line: &[Sample],
    (before, after): (Option<Sample>, Option<Sample>),
    reverse: bool,
) -> Vec<(i64, Vec<f64>)> {
    let carries = aggregation.empty || query.compatibility == Compatibility::V8_10;
    let width = aggregation.bucket_ms;
    let start = |t: i64| aggregation.align + (t - aggregation.align).div_euclid(width) * width;
    let mut buckets: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    if aggregation.empty
        && let Some((first, last)) = filled(query, kept, (before, after))
    {
        for bucket in (start(first)..=start(last)).step_by(width as usize) {
            buckets.insert(bucket, Vec::new());
        }
    }
    let makes_a_row = |bucket: i64| {
        let mut inside = kept.iter().filter(|s| start(s.timestamp) == bucket);
        inside.any(|s| aggregation.empty || is_taken(aggregation, s))
    };
    for sample in kept {
        if !makes_a_row(start(sample.timestamp)) {
            continue;
        }
        buckets
            .entry(start(sample.timestamp))
            .or_default()
            .push(sample.value);
    }
    let mut order: Vec<(i64, Vec<f64>)> = buckets.into_iter().collect();
    if reverse {
        order.reverse();
    }
    let seed = before.filter(|_| aggregation.empty && query.compatibility == Compatibility::V8_10);
    let mut previous = seed.map_or(f64::NAN, |sample| sample.value);
    let mut rows = Vec::new();
    for (bucket, values) in order {
        let numbers: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        previous = numbers.last().copied().unwrap_or(previous);
        let area = (bucket.max(query.from), (bucket + width).min(query.to));
        let value = |aggregator: &Aggregator| match aggregator {
            Aggregator::CountAll => values.len() as f64,
            Aggregator::CountNan => (values.len() - numbers.len()) as f64,
            Aggregator::Last if numbers.is_empty() && !carries => f64::NAN,
            Aggregator::Last => previous,
            // Where the line only begins at the bucket's end, none is inside.
            Aggregator::Twa if line.first().is_some_and(|s| s.timestamp >= bucket + width) => {
                f64::NAN
            }
            Aggregator::Twa => naive_twa(line, area),
            other => naive_value(*other, &numbers),
        };
        let stamp = if bucket < 0 && bucket + width > 0 {
            0
        } else {
            bucket
        };
        rows.push((stamp, aggregation.aggregators.iter().map(value).collect()));
    }
    rows
}

fn naive_value(aggregator: Aggregator, numbers: &[f64]) -> f64 {
    let count = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    let squares: f64 = numbers.iter().map(|v| (v - sum / count).powi(2)).sum();
    let min = numbers.iter().copied().fold(f64::NAN, f64::min);
    let max = numbers.iter().copied().fold(f64::NAN, f64::max);
    let of_sample = match numbers.len() {
        0 => f64::NAN,
        1 => 0.0,
        _ => squares / (count - 1.0),
    };
    match aggregator {
        Aggregator::Count => count,
        Aggregator::Sum => sum,
        Aggregator::Avg => sum / count,
        Aggregator::Min => min,
        Aggregator::Max => max,
        Aggregator::Range => max - min,
        Aggregator::First => numbers.first().copied().unwrap_or(f64::NAN),
        Aggregator::VarP => squares / count,
        Aggregator::StdP => (squares / count).sqrt(),
        Aggregator::VarS => of_sample,
        Aggregator::StdS => of_sample.sqrt(),
        other => panic!("{other} is no function of the numbers alone"),
    }
}

/// The mean height of the line over `low..=high`, where it has one.
fn naive_twa(line: &[Sample], (low, high): (i64, i64)) -> f64 {
    let (Some(first), Some(last)) = (line.first(), line.last()) else {
        return f64::NAN;
    };
    let (low, high) = (low.max(first.timestamp), high.min(last.timestamp));
    let height = |t: i64| {
        let right = line.iter().position(|s| s.timestamp >= t).unwrap();
        let b = line[right];
        if b.timestamp == t {
            return b.value;
        }
        let a = line[right - 1];
        a.value
            + (b.value - a.value) * (t - a.timestamp) as f64 / (b.timestamp - a.timestamp) as f64
    };
    match high - low {
        ..0 => f64::NAN,
        0 => height(low),
        // The line has its corners at whole milliseconds.
        width => {
            (low..high)
                .map(|t| f64::midpoint(height(t), height(t + 1)))
                .sum::<f64>()
                / width as f64
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

#[test]
fn random_queries_agree_with_the_naive_twin() {
    let mut random = Random(seed());
    for _ in 0..200 {
        let span = [8, 60, 700][random.below(3) as usize];
        let samples = random_samples(&mut random, span);
        for _ in 0..20 {
            let query = random_query(&mut random, span);
            let expected = naive(&query, &samples);
            for batch in [1, 7, 1000] {
                let mut source = Memory::new(&samples, batch, query.reverse);
                source.with_stats = random.one_in(2);
                let rows = rows_from(&query, &samples, &mut source);
                let equal = rows.len() == expected.len()
                    && rows.iter().zip(&expected).all(|(row, expected)| {
                        row.0 == expected.0
                            && row.1.iter().zip(&expected.1).all(|(a, b)| same(*a, *b))
                    });
                assert!(equal, "{query:?}\n{samples:?}\n{rows:?}\n{expected:?}");
            }
        }
    }
}
