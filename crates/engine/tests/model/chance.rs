//! Random writes and queries that meet each other often: few keys, small
//! numbers, small chunks, every age.

use crate::model::ops::{Creation, Op, Write};
use crate::model::oracle::Oracle;
use latewood_engine::io::sim::SimRandom;
use latewood_engine::{Defaults, RangeQuery};
use latewood_model::{DuplicatePolicy, Encoding, Ignore, Labels, SeriesOptions};

/// Keys that exist in a run; one is long, one is empty.
const KEYS: u64 = 7;

/// Random choices of one run.
pub(crate) struct Chance {
    random: SimRandom,
    /// A run keeps to NaN-free values, or not.
    specials: bool,
    /// The usual distance of two samples in this run, milliseconds.
    step_ms: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        let random = SimRandom::new(seed);
        Self {
            specials: random.below(2) == 0,
            step_ms: [1, 3, 1000][random.below(3) as usize],
            random,
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    pub(crate) fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(crate) fn key(&self) -> Vec<u8> {
        match self.below(KEYS) {
            0 => Vec::new(),
            1 => vec![b'x'; 300],
            n => format!("key:{n}").into_bytes(),
        }
    }

    /// A key that holds a series, where there is one.
    pub(crate) fn held_key(&self, oracle: &Oracle) -> Vec<u8> {
        let key = oracle.series.keys().nth(self.below(KEYS) as usize);
        key.cloned().unwrap_or_else(|| self.key())
    }

    fn policy(&self) -> DuplicatePolicy {
        self.pick(&DuplicatePolicy::ALL)
    }

    pub(crate) fn options(&self) -> SeriesOptions {
        let labels = [(&b"site"[..], &b"north"[..]), (b"kind", b"celsius")];
        let count = self.below(3) as usize;
        SeriesOptions {
            retention_ms: match self.below(4) {
                0 => 1 + self.below(2000 * self.step_ms),
                _ => 0,
            },
            chunk_size_bytes: self.pick(&[48, 128, 256, 1024, 4096]),
            encoding: self.pick(&[Encoding::Compressed, Encoding::Uncompressed]),
            duplicate_policy: (!self.one_in(3)).then(|| self.policy()),
            ignore: Ignore {
                max_time_diff_ms: self.pick(&[0, 0, 0, 2 * self.step_ms]),
                max_value_diff: self.pick(&[0.0, 0.0, 0.0, 1.5]),
            },
            labels: Labels::new(labels.into_iter().take(count)).unwrap(),
        }
    }

    /// Of a series with a retention of its own.
    fn kept(&self) -> SeriesOptions {
        SeriesOptions {
            retention_ms: 1 + self.below(2000 * self.step_ms),
            ..self.options()
        }
    }

    pub(crate) fn defaults(&self) -> Defaults {
        Defaults {
            duplicate_policy: self.policy(),
            series: self.options(),
            ..Defaults::default()
        }
    }

    fn value(&self) -> f64 {
        match self.below(12) {
            0 if self.specials => self.pick(&[
                f64::NAN,
                f64::from_bits(0x7ff8_0000_0000_1234),
                -0.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MAX,
                f64::MIN_POSITIVE / 4.0,
            ]),
            1 => self.below(1 << 53) as f64 / 1e9,
            2..6 => self.below(10_000) as f64 / 100.0,
            _ => self.below(5) as f64 - 2.0,
        }
    }

    /// A timestamp beside `newest`: newer, the same, a little or much older.
    fn timestamp(&self, newest: i64, late: bool) -> i64 {
        let newer = newest.saturating_add_unsigned(1 + self.below(2 * self.step_ms));
        let age = match self.below(10) {
            _ if !late => return newer,
            0..4 => return newer,
            4 => 0,
            5..7 => self.below(100 * self.step_ms),
            _ => self.below(newest.max(1) as u64),
        };
        newest.saturating_sub_unsigned(age).max(0)
    }

    fn writes(&self, oracle: &Oracle) -> Vec<Write> {
        // Sometimes all series go on minutes later, and those that do not have ended.
        let leap = self.one_in(5).then(|| oracle.usual_newest() + 200_000);
        let count = match self.below(100) {
            0..40 if leap.is_some() => 20,
            0..40 => 1 + self.below(4),
            40..80 => self.below(200),
            80..99 => self.below(1500),
            _ => self.below(6000),
        };
        let late = !self.one_in(3);
        let mixed = self.one_in(2);
        let steady = (leap.is_none() && self.one_in(2)).then(|| self.key());
        let mut newest = std::collections::BTreeMap::new();
        let writes = (0..count).map(|_| {
            let key = match &steady {
                Some(key) if !self.one_in(20) => key.clone(),
                _ => self.key(),
            };
            let held = oracle.series.get(&key);
            let newest = newest.entry(key.clone()).or_insert_with(|| {
                let held = held.and_then(|series| series.newest());
                leap.or(held).unwrap_or(0)
            });
            let timestamp = match self.below(5000) {
                0 => -1 - self.below(10) as i64,
                1 => newest.saturating_add(1_000_000),
                2 if self.one_in(20) => i64::MAX - self.below(3) as i64,
                _ => self.timestamp(*newest, late),
            };
            *newest = timestamp.max(*newest);
            Write {
                key,
                timestamp,
                value: self.value(),
                on_duplicate: (mixed && self.one_in(3)).then(|| self.policy()),
                creation: match self.below(8) {
                    0 => Creation::Never,
                    1 => Creation::With(self.options()),
                    2..5 => Creation::Sent(self.kept()),
                    _ => Creation::Defaults,
                },
            }
        });
        writes.collect()
    }

    /// A span that often cuts through what a series holds.
    fn span(&self, oracle: &Oracle, key: &[u8]) -> (i64, i64) {
        if self.one_in(4) {
            return (i64::MIN, i64::MAX);
        }
        let newest = oracle.series.get(key).and_then(|series| series.newest());
        let bound = newest.unwrap_or(1).saturating_add(10) as u64;
        let (a, b) = (self.below(bound) as i64, self.below(bound) as i64);
        match self.below(8) {
            0 => (a.max(b), a.min(b)),
            1 => (a, a),
            2 => (i64::MIN, a),
            3 => (a, i64::MAX),
            _ => (a.min(b), a.max(b)),
        }
    }

    /// A write of any kind.
    pub(crate) fn op(&self, oracle: &Oracle) -> Op {
        match self.below(115) {
            0..70 => Op::Append(self.writes(oracle)),
            70..76 => Op::Create(self.key(), self.options()),
            76..83 => Op::Alter(self.held_key(oracle), self.options()),
            83..92 => {
                let key = self.held_key(oracle);
                let (from, to) = self.span(oracle, &key);
                if self.one_in(5) {
                    Op::DeleteRange(key, from, to)
                } else {
                    // Most deletes are small, or nothing would ever grow.
                    Op::DeleteRange(key, from, from.saturating_add(20))
                }
            }
            92..95 => Op::Remove((0..=self.below(2)).map(|_| self.key()).collect()),
            100.. => Op::Change(self.change(oracle)),
            95..96 if self.one_in(3) => Op::FlushAll,
            _ => Op::SetDefaults(self.defaults()),
        }
    }

    /// A query for samples, filtered or not.
    pub(crate) fn query(&self, oracle: &Oracle, key: &[u8]) -> RangeQuery {
        let (from, to) = self.span(oracle, key);
        let samples = oracle.series.get(key).map(|series| &series.samples);
        let held = |nth: u64| samples.and_then(|samples| samples.keys().nth(nth as usize));
        let timestamps = self.one_in(5).then(|| {
            let some = (0..self.below(20)).filter_map(|_| held(self.below(500)).copied());
            let mut some: Vec<i64> = some.chain([from.max(0)]).collect();
            some.sort_unstable();
            some.dedup();
            some
        });
        let least = self.below(50) as f64 - 3.0;
        RangeQuery {
            from,
            to,
            filter_by_timestamps: timestamps,
            filter_by_value: self.one_in(3).then_some((least, least + 20.0)),
            count: self.one_in(3).then(|| 1 + self.below(300)),
            reverse: self.one_in(2),
            ..RangeQuery::default()
        }
    }
}
