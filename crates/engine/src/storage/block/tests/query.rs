//! Queries over a series in blocks, against its samples in a map.

use super::*;
use crate::query::{self, Aggregation, BucketStamp, Neighbours, RangeQuery, Sink, Source};
use crate::series::Series;
use crate::series::merge::MergeSource;
use crate::series::stored::Persisted;
use latewood_model::{Aggregator, SeriesOptions};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// A series whose samples are all in blocks, and these samples.
struct Stored {
    series: Series,
    samples: BTreeMap<Timestamp, f64>,
}

/// Base blocks with chunks of any length, and over them a late block with a
/// deletion and a run of LAST operations, unless `plain`.
fn build(seed: u64, plain: bool) -> Stored {
    let (_, env) = disk();
    let random = SimRandom::new(seed);
    let (id, cache) = (SeriesId(7), Cache::new(1 << 16));
    let mut samples = BTreeMap::new();
    let mut blocks = PartitionBlocks::default();
    let mut at = 0;
    for number in 0..1 + random.below(3) {
        let mut writer = BlockWriter::create(&env, &path(number), number, 0, Family::Base).unwrap();
        for _ in 0..1 + random.below(6) {
            at += 1 + random.below(900) as i64;
            let count = 1 + random.below(900) as usize;
            let chunk = chunk(at, 1 + random.below(20) as i64, count, random.next_u64());
            samples.extend(values(&chunk));
            at = chunk.last();
            writer.chunk(id, Kind::Base, &chunk).unwrap();
        }
        let meta = writer.finish().unwrap();
        let block = Block::open(&env, &path(number), &meta, &cache).unwrap();
        blocks.base.push(Arc::new(block));
    }
    if !plain {
        let mut writer = BlockWriter::create(&env, &path(99), 99, 0, Family::Late).unwrap();
        let from = random.below(at as u64) as i64;
        let to = (from + random.below(at as u64) as i64 / 3).min(at);
        writer.tombstone(id, from, to).unwrap();
        samples.retain(|at, _| !(from..=to).contains(at));
        let first = random.below(at as u64) as i64;
        let count = 1 + random.below(40).min((at - first) as u64) as usize;
        let late = chunk(first, 1, count, seed);
        samples.extend(values(&late));
        let last = Kind::Overlay(DuplicatePolicy::Last);
        writer.chunk(id, last, &late).unwrap();
        let meta = writer.finish().unwrap();
        let block = Block::open(&env, &path(99), &meta, &cache).unwrap();
        blocks.late.push(Arc::new(block));
    }
    let series = series_in(id, blocks, at + 50);
    Stored { series, samples }
}

/// A series with no samples outside `blocks`, up to `last`.
fn series_in(id: SeriesId, blocks: PartitionBlocks, last: Timestamp) -> Series {
    let current = Arc::new(CurrentBlocks::default());
    current.set(Arc::new(BlockSet {
        partitions: BTreeMap::from([(0, blocks)]),
        ..BlockSet::default()
    }));
    let mut series = Series::new(Arc::from(&b"key"[..]), &SeriesOptions::default());
    let persisted = Persisted {
        newest: Some(last),
        flushed_last: Some(last),
        ..Persisted::default()
    };
    series.restore(id, persisted, &current);
    series
}

fn values(chunk: &Chunk) -> Vec<(Timestamp, f64)> {
    let samples = samples(chunk).into_iter();
    samples
        .map(|(at, bits)| (at, f64::from_bits(bits)))
        .collect()
}

#[derive(Default)]
struct Rows(Vec<(Timestamp, Vec<f64>)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        let rows = timestamps.iter().zip(values.chunks(width));
        self.0.extend(rows.map(|(&at, row)| (at, row.to_vec())));
        ControlFlow::Continue(())
    }
}

fn ask(stored: &mut Stored, query: &RangeQuery) -> Vec<(Timestamp, Vec<f64>)> {
    let snapshot = stored.series.snapshot(query.from, query.to);
    let mut source = MergeSource::new(snapshot, query.reverse).unwrap();
    let mut rows = Rows::default();
    query::run(query, Neighbours::default(), &mut source, &mut rows).unwrap();
    if query.reverse {
        rows.0.reverse();
    }
    rows.0
}

fn naive(stored: &Stored, from: i64, to: i64, bucket_ms: i64) -> Vec<(Timestamp, Vec<f64>)> {
    let mut rows: BTreeMap<Timestamp, Vec<f64>> = BTreeMap::new();
    for (at, &value) in stored.samples.range(from..=to) {
        let empty = || vec![0.0, 0.0, f64::MAX, f64::MIN];
        let row = rows.entry(at - at % bucket_ms).or_insert_with(empty);
        row[0] += 1.0;
        // Tenths, so that sums in any order are the same.
        row[1] += (value * 10.0).round();
        row[2] = row[2].min(value);
        row[3] = row[3].max(value);
    }
    rows.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn buckets_over_blocks_are_those_of_the_samples(seed: u64, plain: bool) {
        let mut stored = build(seed, plain);
        let random = SimRandom::new(seed ^ 1);
        let newest = stored.samples.keys().last().copied().unwrap_or(0) as u64;
        for round in 0..40 {
            let from = random.below(newest + 100) as i64;
            let to = from + random.below(newest + 100) as i64;
            let bucket_ms = 1 + random.below(1 << random.below(18)) as i64;
            let aggregators = vec![
                Aggregator::Count,
                Aggregator::Sum,
                Aggregator::Min,
                Aggregator::Max,
            ];
            let mut query = RangeQuery {
                from,
                to,
                aggregation: Some(Aggregation {
                    aggregators,
                    bucket_ms,
                    align: 0,
                    stamp: BucketStamp::Start,
                    empty: false,
                }),
                reverse: round % 2 == 1,
                ..RangeQuery::default()
            };
            let mut rows = ask(&mut stored, &query);
            rows.iter_mut().for_each(|(_, row)| row[1] = (row[1] * 10.0).round());
            prop_assert_eq!(rows, naive(&stored, from, to, bucket_ms));
            query.aggregation = None;
            let expected = stored.samples.range(from..=to).map(|(&at, &value)| (at, vec![value]));
            let expected: Vec<_> = expected.collect();
            prop_assert_eq!(ask(&mut stored, &query), expected);
        }
    }
}

/// A chunk that no bucket takes whole is taken frame by frame.
#[test]
fn a_described_chunk_splits_into_frames() {
    let mut stored = build(3, true);
    let snapshot = stored.series.snapshot(0, Timestamp::MAX);
    let mut source = MergeSource::new(snapshot, false).unwrap();
    let mut described = 0;
    while let Some(whole) = source.peek_stats() {
        if whole.count > 64 {
            assert!(source.split().unwrap());
            assert!(source.peek_stats().unwrap().count <= 64);
        }
        assert!(!source.split().unwrap());
        described += source.peek_stats().unwrap().count;
        source.skip();
    }
    assert_eq!(described, stored.samples.len() as u64);
}

/// A series with `chunks` chunks from 1,000,000 on, a thousand samples apart, an
/// overlay over each, and `before` overlays older than all of them. Overlays that
/// begin in `damaged` cannot be read.
fn overlaid(chunks: i64, before: i64, damaged: std::ops::Range<i64>) -> Series {
    let (disk, env) = disk();
    let (id, cache) = (SeriesId(7), Cache::new(1 << 16));
    let start = 1_000_000;
    let mut base = BlockWriter::create(&env, &path(1), 1, 0, Family::Base).unwrap();
    let mut late = BlockWriter::create(&env, &path(2), 2, 0, Family::Late).unwrap();
    let mut holes = Vec::new();
    for place in -before..chunks {
        let first = start + place * 1_000;
        if place >= 0 {
            base.chunk(id, Kind::Base, &chunk(first, 2, 400, 1))
                .unwrap();
        }
        if damaged.contains(&(first + 1)) {
            holes.push(late.written_bytes() as usize);
        }
        let over = Kind::Overlay(DuplicatePolicy::Last);
        late.chunk(id, over, &chunk(first + 1, 2, 400, 2)).unwrap();
    }
    let mut blocks = PartitionBlocks::default();
    let open = |writer: BlockWriter, number| {
        let meta = writer.finish().unwrap();
        if number == 2 {
            let mut bytes = disk.bytes(&path(2)).unwrap();
            holes.iter().for_each(|&at| bytes[at + 9] ^= 1);
            disk.set_bytes(&path(2), bytes).unwrap();
        }
        Arc::new(Block::open(&env, &path(number), &meta, &cache).unwrap())
    };
    blocks.base.push(open(base, 1));
    blocks.late.push(open(late, 2));
    series_in(id, blocks, start + chunks * 1_000)
}

/// The first `count` timestamps of a reply.
fn first_rows(series: &mut Series, count: u64, reverse: bool) -> Result<Vec<Timestamp>> {
    let query = RangeQuery {
        from: i64::MIN,
        to: i64::MAX,
        count: Some(count),
        reverse,
        ..RangeQuery::default()
    };
    let snapshot = series.snapshot(query.from, query.to);
    let mut source = MergeSource::new(snapshot, reverse)?;
    let mut rows = Rows::default();
    query::run(&query, Neighbours::default(), &mut source, &mut rows)?;
    Ok(rows.0.into_iter().map(|(at, _)| at).collect())
}

/// A query for few samples succeeds although other overlays cannot be read: these
/// are not read.
#[test]
fn few_rows_need_only_the_overlays_that_lie_over_them() {
    for before in [0, 100] {
        let oldest = 1_000_000 - before * 1_000;
        let newest = 1_000_000 + 100 * 1_000;
        let mut series = overlaid(100, before, oldest + 5_000..newest);
        let mut rows = first_rows(&mut series, 300, false).unwrap();
        let there = i64::from(before > 0);
        let step = |n| oldest + there + n * (1 + there);
        assert_eq!(rows, (0..300).map(step).collect::<Vec<_>>());
        let failed = first_rows(&mut series, 300, true).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Corrupt);

        let mut series = overlaid(100, before, oldest..newest - 5_000);
        rows = first_rows(&mut series, 300, true).unwrap();
        let end = newest - 1_000 + 799;
        assert_eq!(rows, (0..300).map(|n| end - n).collect::<Vec<_>>());
        let failed = first_rows(&mut series, 300, false).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Corrupt);
    }
}
