//! A series against a naive map, under random operations and flushes.

mod naive;

use super::overlay::overlay_chunks;
use super::settle::{SettleJob, Settled};
use super::stored::Frozen;
use super::*;
use crate::format::chunk::Shape;
use crate::io::Env;
use crate::io::sim::SimDisk;
use crate::query::Source;
use crate::series::merge::MergeSource;
use crate::storage::block::{
    Block, BlockSet, BlockWriter, Cache, CurrentBlocks, Family, Kind, PartitionBlocks,
};
use latewood_codec::Encoder;
use latewood_model::{
    DuplicatePolicy, Encoding, Labels, Sample, SeriesId, SeriesOptions, Timestamp,
};
use naive::Naive;
use std::sync::Arc;

/// Small, seeded and good enough: the splitmix64 generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn read(
    series: &mut Series,
    from: Timestamp,
    to: Timestamp,
    reverse: bool,
) -> Vec<(Timestamp, u64)> {
    let snapshot = series.snapshot(from, to);
    let from = snapshot.from;
    let mut source = MergeSource::new(snapshot, reverse).unwrap();
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    while source.next(&mut timestamps, &mut values).unwrap() {
        let batch = timestamps.iter().zip(&values);
        let mut batch: Vec<_> = batch
            .map(|(&at, value)| (at, value.to_bits()))
            .filter(|(at, _)| (from..=to).contains(at))
            .collect();
        if reverse {
            batch.reverse();
        }
        rows.extend(batch);
    }
    if reverse {
        rows.reverse();
    }
    rows
}

struct Run {
    rng: Rng,
    series: Series,
    sealer: Sealer,
    naive: Naive,
    settling: Option<SettleJob>,
    settled: Option<Settled>,
    flushes: Flushes,
    /// Percentage of samples with LAST, whatever policy is drawn.
    last_of_100: u64,
}

/// The files of the flushes of the series.
struct Flushes {
    env: Env,
    cache: Cache,
    blocks: Arc<CurrentBlocks>,
    /// Frozen and not yet published.
    frozen: Option<Arc<Frozen>>,
    begun: u64,
    files: u64,
    /// Whether the test flushes at all.
    wanted: bool,
}

/// The series.
const ID: SeriesId = SeriesId(7);

impl Flushes {
    fn new(wanted: bool) -> Self {
        let env = SimDisk::new().env(1);
        let dir = std::path::Path::new("/blocks");
        env.disk.create_dir_all(dir).unwrap();
        Self {
            env,
            cache: Cache::new(64 * 1024),
            blocks: Arc::default(),
            frozen: None,
            begun: 0,
            files: 0,
            wanted,
        }
    }

    fn write(&mut self, family: Family, fill: impl FnOnce(&mut BlockWriter)) -> Arc<Block> {
        self.files += 1;
        let path = std::path::PathBuf::from(format!("/blocks/{}", self.files));
        let mut writer = BlockWriter::create(&self.env, &path, self.files, 0, family).unwrap();
        fill(&mut writer);
        let meta = writer.finish().unwrap();
        Arc::new(Block::open(&self.env, &path, &meta, &self.cache).unwrap())
    }

    fn publish(&mut self, shape: Shape) {
        let Some(frozen) = self.frozen.take() else {
            return;
        };
        let old = self.blocks.get();
        let mut held = PartitionBlocks::default();
        if let Some(partition) = old.partitions.get(&0) {
            held = partition.clone();
        }
        if !frozen.chunks.is_empty() {
            held.base.push(self.write(Family::Base, |writer| {
                for chunk in &frozen.chunks {
                    writer.chunk(ID, Kind::Base, chunk).unwrap();
                }
            }));
        }
        let overlays = overlay_chunks(&frozen.ops, shape, &mut Encoder::new()).unwrap();
        if !overlays.is_empty() || !frozen.deleted.is_empty() {
            held.late.push(self.write(Family::Late, |writer| {
                for (from, to) in frozen.deleted.iter() {
                    writer.tombstone(ID, from, to).unwrap();
                }
                for (policy, chunk) in &overlays {
                    writer.chunk(ID, Kind::Overlay(*policy), chunk).unwrap();
                }
            }));
        }
        self.blocks.set(Arc::new(BlockSet {
            flush: frozen.flush,
            floor: Timestamp::MIN,
            partitions: [(0, held)].into(),
        }));
    }
}

impl Run {
    fn new(seed: u64, flushes: bool) -> Self {
        let mut rng = Rng(seed);
        let encoding = [Encoding::Compressed, Encoding::Uncompressed][rng.below(2) as usize];
        let retention_ms = [0, 0, 3_000][rng.below(3) as usize];
        let options = SeriesOptions {
            chunk_size_bytes: [48, 256, 4096][rng.below(3) as usize],
            encoding,
            retention_ms,
            ..SeriesOptions::default()
        };
        let naive = Naive {
            retention_ms: retention_ms as i64,
            ..Naive::default()
        };
        Self {
            last_of_100: [0, 90, 99][rng.below(3) as usize],
            rng,
            series: Series::new(b"key"[..].into(), &options),
            sealer: Sealer::default(),
            naive,
            settling: None,
            settled: None,
            flushes: Flushes::new(flushes),
        }
    }

    fn append(&mut self) {
        let newest = self.series.newest().unwrap_or(1_000);
        let timestamp = match self.rng.below(10) {
            0..=3 => newest + 1 + self.rng.below(5) as i64,
            4 => newest - self.rng.below(40).min(newest as u64) as i64,
            5 => newest,
            6..=7 => newest - self.rng.below(1_500).min(newest as u64) as i64,
            _ => self.rng.below(newest as u64 + 1) as i64,
        };
        let value = match self.rng.below(30) {
            0 => f64::NAN,
            1 => -0.0,
            2 => f64::INFINITY,
            other => other as f64 / 4.0 + self.rng.below(1_000) as f64,
        };
        let policy = if self.rng.below(100) < self.last_of_100 {
            DuplicatePolicy::Last
        } else {
            DuplicatePolicy::ALL[self.rng.below(6) as usize]
        };
        let sample = Sample::new(timestamp, value);
        let fate = self
            .series
            .append(sample, policy, &mut self.sealer)
            .unwrap();
        let kept = self.naive.append(sample, policy);
        assert_eq!(
            !matches!(fate, Fate::Refused(_)),
            kept,
            "{sample:?} under {policy} met {fate:?}"
        );
    }

    fn delete(&mut self) {
        let newest = self.series.newest().unwrap_or(0);
        let from = self.rng.below(newest as u64 + 2) as i64;
        let span = [0, 3, 200, 1_000_000][self.rng.below(4) as usize];
        let to = from + self.rng.below(span + 1) as i64;
        let visible = self.naive.read(from, to).len() as u64;
        let floor = self.naive.floor();
        let deleted = self
            .series
            .delete_range(from, to, &mut self.sealer)
            .unwrap();
        assert_eq!(deleted.count().unwrap(), visible, "deleting {from}..={to}");
        self.naive
            .samples
            .retain(|at, _| !(from..=to).contains(at) && *at >= floor);
    }

    fn step(&mut self) {
        match self.rng.below(3_000) {
            0..=1 => self.delete(),
            2..=4 => {
                self.series.settle_now(&mut self.sealer).unwrap();
            }
            5..=20 => {
                if let Some(job) = self.series.begin_settle() {
                    self.settling = Some(job);
                }
            }
            21..=40 => {
                if let Some(job) = self.settling.take() {
                    self.settled = Some(job.run(&mut self.sealer.encoder).unwrap());
                }
            }
            41..=60 => {
                if let Some(settled) = self.settled.take() {
                    self.series.finish_settle(settled);
                }
            }
            61..=70 => self.check(),
            151..=165 => self.look(),
            71..=150 if self.flushes.wanted => self.flush_step(),
            _ => self.append(),
        }
    }

    /// Performs one step of a flush: freeze, publish, thaw, or a restart.
    fn flush_step(&mut self) {
        let flushes = &mut self.flushes;
        match self.rng.below(4) {
            0 if flushes.frozen.is_none() => {
                flushes.begun += 1;
                let frozen = self.series.freeze(
                    ID,
                    flushes.begun,
                    &mut self.sealer,
                    &flushes.blocks,
                    Freezes::Owner,
                );
                flushes.frozen = frozen.unwrap();
            }
            1 => flushes.publish(self.series.shape()),
            2 => self.series.thaw(flushes.blocks.get().flush),
            3 if self.rng.below(4) == 0 => self.restart(),
            _ => {}
        }
    }

    fn restart(&mut self) {
        let flushes = &mut self.flushes;
        flushes.publish(self.series.shape());
        flushes.begun += 1;
        let (begun, blocks) = (flushes.begun, flushes.blocks.clone());
        let frozen = self
            .series
            .freeze(ID, begun, &mut self.sealer, &blocks, Freezes::Owner);
        flushes.frozen = frozen.unwrap();
        flushes.publish(self.series.shape());
        let persisted = self.series.persisted();
        let options = self.series.options(Labels::default());
        self.series = Series::new(b"key"[..].into(), &options);
        self.series.restore(ID, persisted, &blocks);
        (self.settling, self.settled) = (None, None);
    }

    /// Looks up single samples, which sorts nothing.
    fn look(&mut self) {
        let newest = self.series.newest().unwrap_or(0);
        let at = newest - self.rng.below(2_000).min(newest as u64) as i64;
        if at >= self.naive.floor() {
            let held = self.series.value_at(at).unwrap();
            let expected = self.naive.samples.get(&at);
            let bits = |value: &f64| value.to_bits();
            assert_eq!(held.as_ref().map(bits), expected.map(bits), "at {at}");
        }
        let last = self.naive.samples.iter().next_back();
        let held = self.series.last_sample().unwrap();
        assert_eq!(
            held.map(|held| (held.timestamp, held.value.to_bits())),
            last.map(|(&at, value)| (at, value.to_bits()))
        );
    }

    fn check(&mut self) {
        self.look();
        let newest = self.series.newest().unwrap_or(0);
        let a = self.rng.below(newest as u64 + 2) as i64;
        let b = self.rng.below(newest as u64 + 2) as i64;
        for (from, to) in [
            (Timestamp::MIN, Timestamp::MAX),
            (a.min(b), a.max(b)),
            (a, a),
        ] {
            let expected = self.naive.read(from, to);
            assert_eq!(
                read(&mut self.series, from, to, false),
                expected,
                "{from}..={to}"
            );
            assert_eq!(
                read(&mut self.series, from, to, true),
                expected,
                "{from}..={to} back"
            );
        }
    }
}

#[test]
fn random_operations_read_like_a_map() {
    for seed in 0..60 {
        let mut run = Run::new(seed, false);
        println!("seed {seed}");
        for _ in 0..12_000 {
            run.step();
        }
        run.check();
        run.series.settle_now(&mut run.sealer).unwrap();
        run.check();
        assert_eq!(run.series.late_pending(), 0);
    }
}

#[test]
fn flushes_change_nothing_a_reader_sees() {
    for seed in 0..80 {
        let mut run = Run::new(seed, true);
        println!("seed {seed}");
        for _ in 0..8_000 {
            run.step();
        }
        run.check();
        run.restart();
        run.check();
        assert!(!run.series.has_head() && run.series.held_bytes() == 0);
    }
}

fn late_load(late_of_100: u64) -> (Series, Sealer) {
    let mut rng = Rng(7);
    let (mut series, mut sealer) = (
        Series::new(b"key"[..].into(), &SeriesOptions::default()),
        Sealer::default(),
    );
    let mut newest = 100_000;
    for _ in 0..200_000 {
        let timestamp = if rng.below(100) < late_of_100 {
            rng.below(newest) as i64
        } else {
            newest += 1;
            newest as i64
        };
        let sample = Sample::new(timestamp, (rng.below(3200) as f64) / 100.0);
        series
            .append(sample, DuplicatePolicy::Last, &mut sealer)
            .unwrap();
        if series.pressure(0, usize::MAX) != Pressure::None {
            series.settle_now(&mut sealer).unwrap();
        }
    }
    series.settle_now(&mut sealer).unwrap();
    (series, sealer)
}

#[test]
fn a_late_load_leaves_as_few_frames_as_an_in_order_one() {
    let (series, _) = late_load(99);
    let samples: usize = series.chunks.iter().map(|chunk| chunk.count()).sum();
    let frames: usize = series.chunks.iter().map(|chunk| chunk.frame_count()).sum();
    assert!(samples > 80_000, "{samples} samples");
    assert!(
        frames <= samples / 512 * 5 / 4 + 2,
        "{frames} frames for {samples} samples"
    );
    let bytes: usize = series.chunks.iter().map(|chunk| chunk.size_bytes()).sum();
    let small = series
        .chunks
        .iter()
        .filter(|chunk| chunk.size_bytes() < 1024);
    assert!(small.count() <= 2 + bytes / 4096 / 10);
}

#[test]
fn lone_late_samples_rewrite_one_frame_each() {
    let (mut series, mut sealer) = late_load(0);
    let timestamps = series
        .chunks
        .iter()
        .map(|chunk| chunk.count())
        .sum::<usize>() as i64;
    let sample = Sample::new(100_000 + timestamps / 2, 1.0);
    series
        .append(sample, DuplicatePolicy::Sum, &mut sealer)
        .unwrap();
    let job = series.begin_settle().unwrap();
    let settled = job.run(&mut sealer.encoder).unwrap();
    assert!(
        settled.work.rewritten <= 1024,
        "{} rewritten",
        settled.work.rewritten
    );
    assert!(series.finish_settle(settled));
    let value = series.value_at(sample.timestamp).unwrap().unwrap();
    assert!(value >= 1.0);
}

#[test]
fn readers_keep_their_moment() {
    let (mut series, mut sealer) = late_load(0);
    let before = series.snapshot(Timestamp::MIN, Timestamp::MAX);
    let held = series.chunks.last().unwrap().count();
    for step in 0..5_000 {
        let newest = series.newest().unwrap();
        let sample = Sample::new(newest + 1 + step, 1.0);
        series
            .append(sample, DuplicatePolicy::Last, &mut sealer)
            .unwrap();
    }
    assert_eq!(before.chunks.last().unwrap().count(), held);
}

#[test]
fn samples_that_expire_do_not_undo_a_settle() {
    let options = SeriesOptions {
        retention_ms: 50_000,
        chunk_size_bytes: 256,
        ..SeriesOptions::default()
    };
    let mut sealer = Sealer::default();
    let mut series = Series::new(b"key"[..].into(), &options);
    let mut append = |series: &mut Series, timestamp: i64| {
        let sample = Sample::new(timestamp, (timestamp % 997) as f64);
        series
            .append(sample, DuplicatePolicy::Last, &mut sealer)
            .unwrap();
    };
    (0..50_000).for_each(|step| append(&mut series, step * 2));
    (40_000..40_100).for_each(|step| append(&mut series, step * 2 + 1));
    let job = series.begin_settle().unwrap();
    (50_000..60_000).for_each(|step| append(&mut series, step * 2));
    let settled = job.run(&mut Encoder::new()).unwrap();
    assert!(series.finish_settle(settled));
    assert_eq!(series.late_pending(), 0);
    let read = read(&mut series, Timestamp::MIN, Timestamp::MAX, false);
    assert_eq!(
        read.len(),
        25_001 + 100,
        "the newest 50,000 ms, late ones among them"
    );
    assert!(read[0].0 >= 119_998 - 50_000);
}
