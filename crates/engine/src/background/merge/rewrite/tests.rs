//! Random partitions on the simulated disk, rewritten at random, against a map
//! for each series.

use super::*;
use crate::background::merge::chance::Chance;
use crate::background::merge::output::Target;
use crate::background::merge::usage::{borders, usage};
use crate::format::chunk::{Chunk, Shape};
use crate::io::Env;
use crate::io::sim::SimDisk;
use crate::series::late::LateOp;
use crate::series::spans::Spans;
use crate::storage::block::{BlockWriter, Cache};
use latewood_codec::Hint;
use latewood_model::{DuplicatePolicy, Encoding};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

struct One {
    samples: BTreeMap<i64, f64>,
    flushed_last: i64,
    facts: Option<Facts>,
}

struct World {
    chance: Chance,
    env: Env,
    cache: Cache,
    numbers: Cell<u64>,
    series: Vec<One>,
    base: Vec<Arc<Block>>,
    late: Vec<Arc<Block>>,
}

/// What is flushed first lies behind this, and late samples before it, too.
const NOTHING_BEFORE: i64 = 50;

fn path(number: u64) -> PathBuf {
    Path::new("/blocks").join(number.to_string())
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let env = SimDisk::new().env(seed);
        env.disk.create_dir_all(Path::new("/blocks")).unwrap();
        let series = (0..1 + chance.below(5)).map(|_| One {
            samples: BTreeMap::new(),
            flushed_last: NOTHING_BEFORE - 1,
            facts: Some(Facts {
                floor: i64::MIN,
                shape: Shape {
                    encoding: [Encoding::Compressed, Encoding::Uncompressed]
                        [chance.below(2) as usize],
                    chunk_size_bytes: [48, 4096][chance.below(2) as usize],
                },
            }),
        });
        let series = series.collect();
        Self {
            env,
            cache: Cache::new(1 << 20),
            numbers: Cell::new(0),
            series,
            base: Vec::new(),
            late: Vec::new(),
            chance,
        }
    }

    fn living(&self) -> Living {
        Living::of(self.series.iter().map(|one| one.facts).collect())
    }

    fn open(&self, meta: &BlockMeta) -> Arc<Block> {
        Arc::new(Block::open(&self.env, &path(meta.number), meta, &self.cache).unwrap())
    }

    fn writer(&self, family: Family) -> BlockWriter {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        BlockWriter::create(&self.env, &path(number), number, 0, family).unwrap()
    }

    fn flush(&mut self) {
        let (mut base, mut late) = (self.writer(Family::Base), self.writer(Family::Late));
        for place in 0..self.series.len() {
            let id = SeriesId(place as u64);
            if self.chance.below(3) > 0 {
                self.flush_late(id, &mut late);
            }
            if self.chance.below(3) > 0 {
                self.flush_base(id, &mut base);
            }
        }
        for (writer, list) in [(base, 0), (late, 1)] {
            if writer.is_empty() {
                continue;
            }
            let block = self.open(&writer.finish().unwrap());
            [&mut self.base, &mut self.late][list].push(block);
        }
    }

    fn flush_base(&mut self, id: SeriesId, writer: &mut BlockWriter) {
        let one = &mut self.series[id.0 as usize];
        let shape = one.facts.map_or(
            Shape {
                encoding: Encoding::Compressed,
                chunk_size_bytes: 4096,
            },
            |facts| facts.shape,
        );
        for _ in 0..1 + self.chance.below(3) {
            let mut chunk = Chunk::default();
            for _ in 0..1 + self.chance.below(3) {
                let (mut timestamps, mut values) = (Vec::new(), Vec::new());
                for _ in 0..1 + self.chance.below(90) {
                    one.flushed_last += 1 + self.chance.below(3) as i64;
                    timestamps.push(one.flushed_last);
                    values.push(self.chance.value());
                }
                let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
                chunk
                    .push_samples(&mut encoder, shape, &mut hint, &timestamps, &values)
                    .unwrap();
                one.samples.extend(timestamps.into_iter().zip(values));
            }
            writer.chunk(id, Kind::Base, &chunk.finish()).unwrap();
        }
    }

    fn flush_late(&mut self, id: SeriesId, writer: &mut BlockWriter) {
        let one = &mut self.series[id.0 as usize];
        let (Some(facts), true) = (one.facts, one.flushed_last >= NOTHING_BEFORE) else {
            return;
        };
        if self.chance.below(3) == 0 {
            let from = self.chance.below(one.flushed_last as u64) as i64;
            let to = (from + self.chance.below(300) as i64).min(one.flushed_last);
            writer.tombstone(id, from, to).unwrap();
            one.samples.retain(|at, _| !(from..=to).contains(at));
        }
        let mut ops = Vec::new();
        let mut at = self.chance.below(one.flushed_last as u64) as i64;
        for _ in 0..self.chance.below(60) {
            at += self.chance.below(3) as i64;
            let value = self.chance.value();
            let policy = DuplicatePolicy::ALL[1 + self.chance.below(5) as usize];
            let old = one.samples.get(&at).copied();
            let refused = old.is_some_and(|old| policy.resolve(old, value).is_none());
            if refused || at > one.flushed_last {
                continue;
            }
            let op = LateOp {
                timestamp: at,
                value,
                policy,
            };
            one.samples.insert(at, op.apply(old));
            ops.push(op);
        }
        for (policy, chunk) in overlay_chunks(&ops, facts.shape, &mut Encoder::new()).unwrap() {
            writer.chunk(id, Kind::Overlay(policy), &chunk).unwrap();
        }
    }

    fn with_outputs<T>(&self, work: impl FnOnce(&Rewrite<'_>, &mut Outputs<'_>) -> T) -> T {
        let living = self.living();
        let rewrite = Rewrite {
            partition: 0,
            living: &living,
            base: &self.base,
            late: &self.late,
        };
        let new_file = || {
            self.numbers.set(self.numbers.get() + 1);
            (self.numbers.get() - 1, path(self.numbers.get() - 1))
        };
        let mut outputs = Outputs::new(Target {
            env: &self.env,
            new_file: &new_file,
            on_written: &|_| Ok(()),
        });
        let done = work(&rewrite, &mut outputs);
        outputs.keep();
        done
    }

    fn merge_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let start = self.chance.below(self.late.len() as u64) as usize;
        let end = start + 1 + self.chance.below((self.late.len() - start) as u64) as usize;
        let merged = self.with_outputs(|rewrite, outputs| {
            let late = &rewrite.late[start..end];
            Rewrite { late, ..*rewrite }.late(outputs).unwrap()
        });
        let merged = merged.map(|meta| self.open(&meta));
        self.late.splice(start..end, merged);
    }

    /// Random stretches, with or without folding.
    fn rewrite_base(&mut self) {
        let folds = self.chance.below(3) > 0;
        let mut stretches = Vec::new();
        let mut start = 0;
        while start < self.base.len() {
            let end = start + 1 + self.chance.below((self.base.len() - start) as u64) as usize;
            if self.chance.below(2) == 0 {
                let over = self.chance.below(4) * 2_000;
                let cap = 1 + self.chance.below(20_000);
                let places = start..end;
                let borders = borders(&self.base, &places, &self.late, over, cap).unwrap();
                assert!(borders.is_sorted_by(|a, b| a < b));
                stretches.push(Stretch { places, borders });
            }
            start = end;
        }
        if self.base.is_empty() {
            stretches.push(Stretch {
                places: 0..0,
                borders: Vec::new(),
            });
        }
        if stretches.is_empty() {
            return;
        }
        let done = self.with_outputs(|rewrite, outputs| {
            let late = if folds { rewrite.late } else { &[] };
            Rewrite { late, ..*rewrite }
                .base(&stretches, outputs)
                .unwrap()
        });
        for (stretch, metas) in stretches.into_iter().zip(done.base).rev() {
            let blocks: Vec<_> = metas.iter().map(|meta| self.open(meta)).collect();
            self.base.splice(stretch.places, blocks);
        }
        if folds {
            self.late = done.late.map(|meta| self.open(&meta)).into_iter().collect();
        }
    }

    fn check(&self, seed: u64) {
        for block in self.base.iter().chain(&self.late) {
            block.verify().unwrap();
        }
        for (place, one) in self.series.iter().enumerate() {
            let Some(facts) = one.facts else { continue };
            let id = SeriesId(place as u64);
            let mut samples = BTreeMap::new();
            let (mut timestamps, mut values) = (Vec::new(), Vec::new());
            for block in &self.base {
                for entry in block.entries(id).unwrap() {
                    let chunk = block.read(&entry).unwrap();
                    for index in 0..chunk.frame_count() {
                        let frame = chunk.frame(index).unwrap();
                        frame.decode(&mut timestamps, &mut values).unwrap();
                    }
                }
            }
            assert!(timestamps.is_sorted_by(|a, b| a < b), "seed {seed}");
            samples.extend(timestamps.into_iter().zip(values));
            let mut overlays = SeriesOverlays::default();
            for block in &self.late {
                overlays.add(block, block.entries(id).unwrap());
            }
            let (ops, deleted): (Vec<LateOp>, Spans) = overlays.read(i64::MIN, i64::MAX).unwrap();
            samples.retain(|at, _| !deleted.covers(*at));
            for op in ops {
                let value = op.apply(samples.get(&op.timestamp).copied());
                samples.insert(op.timestamp, value);
            }
            let bits = |samples: &BTreeMap<i64, f64>| -> Vec<(i64, u64)> {
                let seen = samples.range(facts.floor..);
                seen.map(|(&at, value)| (at, value.to_bits())).collect()
            };
            assert_eq!(
                bits(&samples),
                bits(&one.samples),
                "series {place}, seed {seed}"
            );
        }
    }
}

#[test]
fn rewriting_at_random_changes_nothing_a_reader_sees() {
    for seed in 0..150 {
        let mut world = World::new(seed);
        for _ in 0..12 {
            match world.chance.below(8) {
                0..=2 => world.flush(),
                3 => world.merge_late(),
                4..=5 => world.rewrite_base(),
                6 => {
                    let place = world.chance.below(world.series.len() as u64) as usize;
                    let one = &mut world.series[place];
                    if let Some(facts) = &mut one.facts {
                        facts.floor = facts.floor.max(one.flushed_last / 2);
                    }
                }
                _ if world.chance.below(6) == 0 => {
                    let place = world.chance.below(world.series.len() as u64) as usize;
                    world.series[place].facts = None;
                }
                _ => {}
            }
            world.check(seed);
        }
    }
}

#[test]
fn a_fold_of_everything_leaves_no_overlay_and_no_dead_series() {
    let mut world = World::new(7);
    while world.series.len() < 2 {
        world = World::new(world.chance.below(1_000));
    }
    for _ in 0..6 {
        world.flush();
    }
    world.series[0].facts = None;
    let living = world.living();
    let before = usage(&world.base, &world.late, &living).unwrap();
    assert!(before.base.iter().any(|share| share.dead_bytes > 0));
    assert!(before.base.iter().any(|share| share.late_entries > 0));
    let stretches = [Stretch {
        places: 0..world.base.len(),
        borders: Vec::new(),
    }];
    let done = world.with_outputs(|rewrite, outputs| rewrite.base(&stretches, outputs).unwrap());
    assert!(done.late.is_none());
    world.base = done.base[0].iter().map(|meta| world.open(meta)).collect();
    world.late.clear();
    world.check(7);
    let after = usage(&world.base, &world.late, &living).unwrap();
    assert!(
        after
            .base
            .iter()
            .all(|share| share.dead_bytes == 0 && share.late_entries == 0)
    );
    assert!(
        world
            .base
            .iter()
            .all(|block| block.entries(SeriesId(0)).unwrap().is_empty())
    );
}
