//! A database without threads of its own, the log on, in batches of 50.

use std::ops::ControlFlow;
use std::sync::Arc;

use latewood_engine::io::Env;
use latewood_engine::query::{Aggregation, BucketStamp, RangeQuery, Sink};
use latewood_engine::{
    Append, AppendTo, Create, Db, Defaults, DropEmpty, Options, ReaderId, RuleSpec, Scratch,
    Selector, SeriesRef, Watcher,
};
use latewood_model::{Aggregator, Compatibility, DuplicatePolicy, Labels, SeriesOptions};
use tempfile::TempDir;

use super::{Anything, Path};

/// Samples, or series, of a run.
pub(super) const ITEMS: u64 = 2_000;
/// Samples of a reading run.
pub(super) const READ_ITEMS: u64 = 20_000;
const BATCH: usize = 50;
const SERIES: usize = 32;
/// Samples that a series has before late ones come, two steps apart.
const HISTORY: i64 = 2_000;
const STEP_MS: i64 = 10;

/// A database and a few series.
struct Base {
    db: Db,
    keys: Vec<Vec<u8>>,
    scratch: Scratch,
    newest_ms: i64,
    /// State of the numbers that scatter late samples.
    random: u64,
    _dir: TempDir,
}

impl Base {
    fn open() -> Anything<Self> {
        Self::with(DuplicatePolicy::Last)
    }

    fn with(duplicate_policy: DuplicatePolicy) -> Anything<Self> {
        let dir = tempfile::tempdir()?;
        let options = Options {
            background: false,
            shards: 1,
            // To look for series that ended, among all, is no part of these paths.
            drop_empty: DropEmpty::None,
            ..Options::default()
        };
        let defaults = Defaults {
            duplicate_policy,
            ..Defaults::default()
        };
        let db = Db::open(&Env::real(), dir.path(), options, defaults)?;
        let keys: Vec<Vec<u8>> = (0..SERIES)
            .map(|number| format!("sensor:{number:04}").into_bytes())
            .collect();
        for key in &keys {
            db.create(key, &SeriesOptions::default())?;
        }
        let mut base = Base {
            db,
            keys,
            scratch: Scratch::new(),
            newest_ms: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            _dir: dir,
        };
        for _ in 0..HISTORY * SERIES as i64 / ITEMS as i64 {
            base.append()?;
        }
        Ok(base)
    }

    /// Appends in order, a batch to one series after the other.
    fn append(&mut self) -> Anything<u64> {
        let mut batch = Vec::with_capacity(BATCH);
        for turn in 0..ITEMS as usize / BATCH {
            if turn % SERIES == 0 {
                self.newest_ms += BATCH as i64 * STEP_MS;
            }
            batch.clear();
            batch.extend((0..BATCH as i64).map(|at| Append {
                key: &self.keys[turn % SERIES],
                timestamp: self.newest_ms + at * STEP_MS,
                value: (at % 17) as f64 / 4.0,
                on_duplicate: None,
                create: Create::Never,
            }));
            self.db.append(&batch, &mut self.scratch)?;
        }
        Ok(self.newest_ms as u64)
    }

    /// Appends between those that are there.
    fn append_late(&mut self) -> Anything<u64> {
        let mut batch = Vec::with_capacity(BATCH);
        for turn in 0..ITEMS as usize / BATCH {
            batch.clear();
            for _ in 0..BATCH {
                // Xorshift: Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8 (2003).
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                batch.push(Append {
                    key: &self.keys[turn % SERIES],
                    timestamp: (self.random % self.newest_ms as u64) as i64,
                    value: 1.5,
                    on_duplicate: None,
                    create: Create::Never,
                });
            }
            self.db.append(&batch, &mut self.scratch)?;
        }
        Ok(self.random)
    }
}

struct ByKey(Base);

pub(super) fn by_key() -> Anything<Box<dyn Path>> {
    Ok(Box::new(ByKey(Base::open()?)))
}

/// The same with every batch timed, stage by stage: what that takes, one batch in so many pays.
pub(super) fn by_key_timed() -> Anything<Box<dyn Path>> {
    let base = Base::open()?;
    base.db.stages().set_sampling(1);
    Ok(Box::new(ByKey(base)))
}

impl Path for ByKey {
    fn run(&mut self) -> Anything<u64> {
        self.0.append()
    }
}

/// The same with a compaction rule on every series, whose buckets hold ten samples.
pub(super) fn one_rule() -> Anything<Box<dyn Path>> {
    let base = Base::open()?;
    for key in &base.keys {
        let destination = [key.as_slice(), b":avg"].concat();
        base.db.create(&destination, &SeriesOptions::default())?;
        let rule = RuleSpec {
            aggregator: Aggregator::Avg,
            bucket_ms: 10 * STEP_MS,
            align: 0,
        };
        base.db.create_rule(key, &destination, rule)?;
    }
    Ok(Box::new(ByKey(base)))
}

/// Readers of rules.
const READERS: u64 = 20;

/// The same with readers that watch every series, or none of them. A third of the samples is at or
/// before what they have used, as with samples up to 5 s old and an evaluation every 15 s.
struct Watched(Base);

pub(super) fn watched() -> Anything<Box<dyn Path>> {
    watching(true)
}

pub(super) fn unwatched() -> Anything<Box<dyn Path>> {
    watching(false)
}

fn watching(is_read: bool) -> Anything<Box<dyn Path>> {
    let base = Base::open()?;
    let watchers = (0..READERS).map(|reader| Watcher {
        reader: ReaderId(reader),
        selectors: vec![Selector::new(Arc::new(move |_, _| is_read))],
    });
    base.db.watch(watchers.collect())?;
    Ok(Box::new(Watched(base)))
}

impl Path for Watched {
    fn prepare(&mut self) -> Anything {
        let base = &self.0;
        let used_ms = base.newest_ms + BATCH as i64 * STEP_MS * 4 / 3;
        for reader in (0..READERS).map(ReaderId) {
            let drained = base.db.drain(reader)?;
            base.db.done(reader, drained.position)?;
            base.db.begin_evaluation(reader, used_ms)?;
        }
        Ok(())
    }

    fn run(&mut self) -> Anything<u64> {
        self.0.append()
    }
}

struct ByReference(Base, Vec<SeriesRef>);

pub(super) fn by_reference() -> Anything<Box<dyn Path>> {
    let base = Base::open()?;
    let series: Result<Vec<SeriesRef>, _> =
        base.keys.iter().map(|key| base.db.resolve(key)).collect();
    let series = series?;
    Ok(Box::new(ByReference(base, series)))
}

impl Path for ByReference {
    fn run(&mut self) -> Anything<u64> {
        let base = &mut self.0;
        let mut batch = Vec::with_capacity(BATCH);
        for turn in 0..ITEMS as usize / BATCH {
            if turn % SERIES == 0 {
                base.newest_ms += BATCH as i64 * STEP_MS;
            }
            batch.clear();
            batch.extend((0..BATCH as i64).map(|at| AppendTo {
                series: &self.1[turn % SERIES],
                timestamp: base.newest_ms + at * STEP_MS,
                value: (at % 17) as f64 / 4.0,
                on_duplicate: None,
            }));
            base.db.append_resolved(&batch, &mut base.scratch)?;
        }
        Ok(base.newest_ms as u64)
    }
}

struct Late(Base);

pub(super) fn late() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Late(Base::open()?)))
}

/// The same where a timestamp that is there already is refused, so that each is looked up.
pub(super) fn late_block() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Late(Base::with(DuplicatePolicy::Block)?)))
}

impl Path for Late {
    fn prepare(&mut self) -> Anything {
        Ok(self.0.db.settle()?)
    }

    fn run(&mut self) -> Anything<u64> {
        self.0.append_late()
    }
}

struct Settle(Base);

pub(super) fn settle() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Settle(Base::open()?)))
}

impl Path for Settle {
    fn prepare(&mut self) -> Anything {
        self.0.db.settle()?;
        self.0.append_late().map(drop)
    }

    fn run(&mut self) -> Anything<u64> {
        self.0.db.settle()?;
        Ok(self.0.db.stats().samples_late)
    }
}

/// Series that come, each with a key and six labels.
struct Coming {
    base: Base,
    next: u64,
    made: Vec<(Vec<u8>, SeriesOptions)>,
}

struct NewSeries(Coming);
struct Index(Coming);

pub(super) fn new_series() -> Anything<Box<dyn Path>> {
    Ok(Box::new(NewSeries(Coming::open()?)))
}

pub(super) fn index() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Index(Coming::open()?)))
}

impl Coming {
    fn open() -> Anything<Self> {
        Ok(Coming {
            base: Base::open()?,
            next: 0,
            made: Vec::new(),
        })
    }

    fn make(&mut self) -> Anything {
        self.made.clear();
        for number in self.next..self.next + ITEMS {
            let labels = [
                ("hostname", format!("host_{number}")),
                ("region", format!("region-{}", number % 3)),
                ("datacenter", format!("dc-{}", number % 27)),
                ("rack", format!("{}", number % 100)),
                ("os", format!("os-{}", number % 3)),
                ("team", format!("team-{}", number % 50)),
            ];
            let pairs = labels
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let options = SeriesOptions {
                labels: Labels::new(pairs)?,
                ..SeriesOptions::default()
            };
            self.made
                .push((format!("cpu:usage_user:{number:07}").into_bytes(), options));
        }
        self.next += ITEMS;
        Ok(())
    }

    fn append(&mut self) -> Anything<u64> {
        let mut batch = Vec::with_capacity(BATCH);
        for made in self.made.chunks(BATCH) {
            batch.clear();
            batch.extend(made.iter().map(|(key, options)| Append {
                key,
                timestamp: 1_000,
                value: 21.5,
                on_duplicate: None,
                create: Create::With(options),
            }));
            self.base.db.append(&batch, &mut self.base.scratch)?;
        }
        Ok(self.base.db.len() as u64)
    }
}

impl Path for NewSeries {
    fn prepare(&mut self) -> Anything {
        self.0.base.db.maintain()?;
        self.0.make()
    }

    fn run(&mut self) -> Anything<u64> {
        self.0.append()
    }
}

impl Path for Index {
    fn prepare(&mut self) -> Anything {
        self.0.base.db.maintain()?;
        self.0.make()?;
        self.0.append().map(drop)
    }

    fn run(&mut self) -> Anything<u64> {
        self.0.base.db.maintain()?;
        Ok(self.0.next)
    }
}

/// A series that is read as a whole.
struct Read(Base, RangeQuery);

/// How many rows came.
struct Rows(u64);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.0 += timestamps.len() as u64 + values.len() as u64;
        ControlFlow::Continue(())
    }
}

pub(super) fn read() -> Anything<Box<dyn Path>> {
    reading(None)
}

/// Means of 50 samples each, which do not meet the ends of frames.
pub(super) fn means() -> Anything<Box<dyn Path>> {
    reading(Some(Aggregation {
        aggregators: vec![Aggregator::Avg],
        bucket_ms: 50 * STEP_MS,
        align: 0,
        stamp: BucketStamp::Start,
        empty: false,
    }))
}

fn reading(aggregation: Option<Aggregation>) -> Anything<Box<dyn Path>> {
    let mut base = Base::open()?;
    let key = b"long".to_vec();
    let samples: Vec<Append<'_>> = (0..READ_ITEMS as i64)
        .map(|at| Append {
            key: &key,
            timestamp: at * STEP_MS,
            value: 20.0 + ((at * 7919) % 401) as f64 / 100.0,
            on_duplicate: None,
            create: Create::Defaults,
        })
        .collect();
    for batch in samples.chunks(BATCH) {
        base.db.append(batch, &mut base.scratch)?;
    }
    let query = RangeQuery {
        latest: false,
        compatibility: Compatibility::default(),
        from: 0,
        to: i64::MAX,
        filter_by_timestamps: None,
        filter_by_value: None,
        count: None,
        aggregation,
        reverse: false,
    };
    Ok(Box::new(Read(base, query)))
}

impl Path for Read {
    fn run(&mut self) -> Anything<u64> {
        let mut rows = Rows(0);
        self.0.db.range(b"long", &self.1, &mut rows)?;
        Ok(rows.0)
    }
}
