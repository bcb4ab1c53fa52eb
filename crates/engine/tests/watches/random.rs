//! Random changes of few series, random evaluations and corrections, compared with what readers
//! see. The comparison finds readers that break the order, or overhear some of the changes.

use super::view::{View, uncovered, view};
use super::{has, labelled};
use crate::db_support::{append, options, sample};
use latewood_engine::io::sim::{Fault, SimDisk, SimRandom, Trouble};
use latewood_engine::{
    Append, Change, Create, Db, Defaults, Dump, ExpireIf, ReaderId, Selector, Watcher,
};
use latewood_model::{DuplicatePolicy, Labels, SeriesOptions};
use std::path::Path;
use std::sync::Arc;

const SPAN: u64 = 400;

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    Nothing,
    /// The horizon is set after the read, and a write comes between.
    ReadsFirst,
    /// Looks that are gone are not told.
    OnlyNewLooks,
    /// Looks that begin are not told.
    OnlyOldLooks,
    /// Changes are done before the rows were read again, and a write comes between.
    DoneFirst,
    /// What is pending goes with a flush.
    FlushDrops,
}

struct Reader {
    id: ReaderId,
    selects: fn(&Labels, &[u8]) -> bool,
    at: i64,
    seen: View,
}

struct Run {
    random: SimRandom,
    disk: SimDisk,
    db: Db,
    readers: Vec<Reader>,
    plant: Plant,
}

fn readers() -> Vec<Reader> {
    let selects: [fn(&Labels, &[u8]) -> bool; 4] = [
        |labels, _| has(labels, b"metric", b"m"),
        |labels, _| has(labels, b"metric", b"m") && has(labels, b"zone", b"1"),
        |labels, _| !has(labels, b"zone", b"0"),
        |_, key| key == b"k1",
    ];
    let ids = (1..).map(ReaderId);
    let all = ids.zip(selects).map(|(id, selects)| Reader {
        id,
        selects,
        at: i64::MIN,
        seen: View::default(),
    });
    all.collect()
}

fn watchers(readers: &[Reader]) -> Vec<Watcher> {
    let all = readers.iter().map(|reader| {
        let selects = Arc::new(reader.selects);
        let selector = match reader.id.0 {
            1 | 2 => Selector::of_pair(b"metric", b"m", selects),
            _ => Selector::new(selects),
        };
        Watcher {
            reader: reader.id,
            selectors: vec![selector],
        }
    });
    all.collect()
}

fn start(disk: &SimDisk, readers: &[Reader]) -> Db {
    let defaults = Defaults {
        duplicate_policy: DuplicatePolicy::Last,
        ..Defaults::default()
    };
    let db = Db::open(&disk.env(1), Path::new("/db"), options(2), defaults).unwrap();
    db.watch(watchers(readers)).unwrap();
    db
}

impl Run {
    fn new(seed: u64, plant: Plant) -> Self {
        let (disk, readers) = (SimDisk::new(), readers());
        let db = start(&disk, &readers);
        Self {
            random: SimRandom::new(seed),
            disk,
            db,
            readers,
            plant,
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn key(&self) -> Vec<u8> {
        format!("k{}", self.below(5)).into_bytes()
    }

    fn options(&self) -> SeriesOptions {
        let metric: &[u8] = if self.below(3) == 0 { b"n" } else { b"m" };
        let zone: &[u8] = if self.below(2) == 0 { b"0" } else { b"1" };
        match self.below(5) {
            // Of these, any two are twins.
            4 => labelled(&[(b"__name__", b"x"), (b"metric", metric)]),
            0 => labelled(&[(b"metric", metric)]),
            1 => labelled(&[(b"zone", zone)]),
            _ => labelled(&[(b"metric", metric), (b"zone", zone)]),
        }
    }

    /// Does something, which may have no effect or be refused.
    fn change(&self) {
        let (db, key, other) = (&self.db, self.key(), self.key());
        let at = self.below(SPAN) as i64;
        match self.below(24) {
            0..=11 => {
                let options = self.options();
                let policies = [DuplicatePolicy::Last, DuplicatePolicy::Sum];
                let one = Append {
                    on_duplicate: Some(policies[self.below(2) as usize]),
                    create: Create::With(&options),
                    ..sample(&key, at, self.below(3) as f64)
                };
                append(db, &[one]).unwrap();
            }
            12 | 13 => drop(db.delete_range(&key, at, at + self.below(60) as i64)),
            14 => drop(db.increment(&key, 1.0, Some(at), Create::Never)),
            15 => drop(db.alter(&key, &self.options())),
            16 => drop(db.rename(&key, &other, self.below(2) == 0)),
            17 => drop(db.copy(&key, &other, self.below(2) == 0)),
            18 => {
                if let Ok(bytes) = db.dump(&key) {
                    let dump = Dump::parse(&bytes).unwrap();
                    drop(db.restore(&other, dump, None, true));
                }
            }
            19 => drop(db.remove(&[&key[..]])),
            20 => drop(db.expire(&key, 1, ExpireIf::default())),
            21 => db.flush().unwrap(),
            22 => db.maintain().unwrap(),
            _ if self.below(20) > 0 => db.settle().unwrap(),
            _ => {
                db.flush_all().unwrap();
            }
        }
    }

    fn evaluate(&mut self, number: usize) {
        let (id, selects) = (self.readers[number].id, self.readers[number].selects);
        let at = self.readers[number].at.max(self.below(SPAN) as i64);
        let seen = if self.plant == Plant::ReadsFirst {
            let seen = view(&self.db, at, selects);
            self.change();
            self.db.begin_evaluation(id, at).unwrap();
            seen
        } else {
            self.db.begin_evaluation(id, at).unwrap();
            view(&self.db, at, selects)
        };
        // An evaluation at a newer time does not make up for changes before the older one: rows
        // of older steps stay as they are.
        let reader = &mut self.readers[number];
        reader.seen.extend_behind(reader.at, &seen);
        reader.at = at;
    }

    /// Drains; the first sample that differs and was not told.
    fn correct(&mut self, number: usize) -> Option<String> {
        let reader = &self.readers[number];
        let drained = self.db.drain(reader.id).unwrap();
        let told = |change: &Change| {
            let series = change.series.as_ref();
            let is_gone = series.map(|series| series.is_gone);
            match self.plant {
                Plant::OnlyNewLooks => is_gone != Some(true),
                Plant::OnlyOldLooks => change.from == change.to || is_gone != Some(false),
                _ => true,
            }
        };
        let changes: Vec<Change> = drained.changes.into_iter().filter(told).collect();
        if self.plant == Plant::DoneFirst && self.below(2) == 0 {
            self.db.done(reader.id, drained.position).unwrap();
            let seen = view(&self.db, reader.at, reader.selects);
            self.change();
            self.db.drain(reader.id).unwrap();
            self.db.done(reader.id, drained.position).unwrap();
            self.readers[number].seen = seen;
            return None;
        }
        let now = view(&self.db, reader.at, reader.selects);
        let lost = uncovered(&reader.seen.changed(&now), &changes);
        if self.below(3) > 0 {
            self.db.done(reader.id, drained.position).unwrap();
            self.readers[number].seen = now;
        }
        lost.map(|lost| format!("reader {number} does not hear of {lost:?}: {changes:?}"))
    }

    /// The power goes, perhaps amid a flush. All that was written before is durable.
    fn cut(&mut self) {
        self.db.sync().unwrap();
        if self.below(3) > 0 {
            self.disk.plan(Fault {
                op: None,
                after: self.below(30),
                trouble: Trouble::PowerCut,
            });
            // Whether it ends or not.
            let _ = self.db.flush();
        }
        if self.plant == Plant::FlushDrops {
            self.disk.heal();
            for reader in &self.readers {
                let _ = self.db.drain(reader.id).and_then(|drained| {
                    self.db.done(reader.id, drained.position)?;
                    self.db.sync()
                });
            }
        }
        self.disk = self.disk.crash(self.below(u64::MAX));
        self.db = start(&self.disk, &self.readers);
    }

    fn step(&mut self) -> Option<String> {
        let number = self.below(self.readers.len() as u64) as usize;
        match self.below(30) {
            0..=2 => self.evaluate(number),
            3..=5 => return self.correct(number),
            6 => self.db.watch(watchers(&self.readers)).unwrap(),
            7 => self.cut(),
            _ => self.change(),
        }
        None
    }
}

fn run(seed: u64, plant: Plant) -> Option<String> {
    let mut run = Run::new(seed, plant);
    (0..250).find_map(|_| run.step())
}

#[test]
fn what_differs_from_what_was_read_is_told() {
    for seed in 0..150 {
        if let Some(lost) = run(seed, Plant::Nothing) {
            panic!("seed {seed}: {lost}");
        }
    }
}

#[test]
fn planted_mistakes_are_found() {
    let plants = [
        Plant::ReadsFirst,
        Plant::OnlyNewLooks,
        Plant::OnlyOldLooks,
        Plant::DoneFirst,
        Plant::FlushDrops,
    ];
    for plant in plants {
        let is_found = (0..60).any(|seed| run(seed, plant).is_some());
        assert!(is_found, "{plant:?} is not noticed");
    }
}
