//! The label index against a scan of everything.
//!
//! Random series come, change their labels, park, wake and go; after each step random
//! matchers must find what [`Matcher::matches`] says of every series. Another
//! test has threads create and select at once: what was acknowledged before a
//! query began is in its answer.
//!
//! `LATEWOOD_SEED=n cargo test -p latewood-engine labels_model` repeats run n.

use crate::db_support::{DIR, last_wins, options};
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::{Append, Create, Db, MaySee, Scratch, SeriesRef, Values};
use latewood_model::{Labels, Matcher, SeriesOptions, Test};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const RUNS: u64 = 60;
const STEPS: usize = 300;

/// The database, and what it must hold.
struct Run {
    random: SimRandom,
    disk: SimDisk,
    shards: usize,
    db: Option<Db>,
    held: BTreeMap<Vec<u8>, Labels>,
    /// Those of them with a sample, which is of time 1.
    sampled: BTreeSet<Vec<u8>>,
    /// Series that were parked, as often as they were counted.
    parked: usize,
    /// Values a label takes: few make long posting lists, many short ones.
    values: u64,
}

pub(crate) fn labelled(labels: &Labels) -> SeriesOptions {
    SeriesOptions {
        labels: labels.clone(),
        ..SeriesOptions::default()
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let mut run = Self {
            disk: SimDisk::new(),
            shards: 1 << random.below(3),
            db: None,
            held: BTreeMap::new(),
            sampled: BTreeSet::new(),
            parked: 0,
            values: [2, 5, 400][random.below(3) as usize],
            random,
        };
        run.open();
        run
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn open(&mut self) {
        self.db = None;
        let env = self.disk.env(self.below(u64::MAX));
        let db = Db::open(&env, Path::new(DIR), options(self.shards), last_wins());
        self.db = Some(db.unwrap());
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn key(&self) -> Vec<u8> {
        format!("k{}", self.below(1_500)).into_bytes()
    }

    fn name(&self) -> Vec<u8> {
        [&b"site"[..], b"kind", b"x", b"", b"host"][self.below(5) as usize]
            .iter()
            .chain(b"_")
            .copied()
            .collect()
    }

    fn value(&self) -> Vec<u8> {
        format!("v{}", self.below(self.values)).into_bytes()
    }

    /// Up to eight labels, names and pairs repeated now and then.
    fn labels(&self) -> Labels {
        let count = self.below(9);
        let pairs: Vec<_> = (0..count).map(|_| (self.name(), self.value())).collect();
        Labels::new(pairs.iter().map(|(name, value)| (&name[..], &value[..]))).unwrap()
    }

    fn matchers(&self) -> Vec<Matcher> {
        let matcher = |_| {
            let values = (0..self.below(4)).map(|_| self.value().into());
            let test = match self.below(6) {
                0..3 => Test::AnyOf(values.collect()),
                3 => Test::NoneOf(values.collect()),
                4 => Test::Absent,
                _ => Test::Present,
            };
            Matcher::new(&self.name(), test)
        };
        (0..self.below(4)).map(matcher).collect()
    }

    fn step(&mut self) {
        match self.below(100) {
            0..35 => self.create_one(),
            35..50 => self.append_many(),
            50..65 => self.alter(),
            65..80 => self.remove(),
            80..81 => {
                self.db().flush_all().unwrap();
                self.held.clear();
                self.sampled.clear();
            }
            81..84 => self.park(),
            84..85 => self.db().maintain().unwrap(),
            85..88 => {
                self.disk = self.disk.kill();
                self.open();
            }
            _ => self.check(),
        }
    }

    fn create_one(&mut self) {
        let (key, labels) = (self.key(), self.labels());
        let created = self.db().create(&key, &labelled(&labels)).is_ok();
        assert_eq!(created, !self.held.contains_key(&key));
        if created {
            self.held.insert(key, labels);
        }
    }

    /// Enough to fill a queue now and then.
    fn append_many(&mut self) {
        let count = 1 + self.below(60);
        let new: Vec<_> = (0..count)
            .map(|_| (self.key(), labelled(&self.labels())))
            .collect();
        let append = |(key, options)| Append {
            key,
            timestamp: 1,
            value: 1.0,
            on_duplicate: None,
            create: Create::With(options),
        };
        let batch: Vec<_> = new
            .iter()
            .map(|(key, options)| append((key, options)))
            .collect();
        self.db().append(&batch, &mut Scratch::new()).unwrap();
        for (key, options) in new {
            self.sampled.insert(key.clone());
            self.held.entry(key).or_insert(options.labels);
        }
    }

    /// Parks those that nobody wrote to since the last look, or all; some wake.
    fn park(&mut self) {
        self.db().flush().unwrap();
        for _ in 0..1 + self.below(2) {
            self.db().park_idle().unwrap();
        }
        self.parked += self.db().parked_len();
        for _ in 0..self.below(20) {
            let key = self.key();
            let woken = self.db().last_sample(&key);
            assert_eq!(woken.is_ok(), self.held.contains_key(&key));
        }
    }

    fn alter(&mut self) {
        let (key, labels) = (self.key(), self.labels());
        let altered = self.db().alter(&key, &labelled(&labels)).is_ok();
        assert_eq!(altered, self.held.contains_key(&key));
        if altered {
            self.held.insert(key, labels);
        }
    }

    fn remove(&mut self) {
        let keys: Vec<_> = (0..=self.below(40)).map(|_| self.key()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        self.db().remove(&keys).unwrap();
        keys.iter().for_each(|&key| {
            self.held.remove(key);
            self.sampled.remove(key);
        });
    }

    fn check(&self) {
        let matchers = self.matchers();
        let passes = |labels: &Labels| matchers.iter().all(|matcher| matcher.matches(labels));
        let wanted: Vec<_> = self.held.iter().filter(|(_, l)| passes(l)).collect();
        let found = self.db().select(&matchers).unwrap();
        let keys: Vec<&[u8]> = found.iter().map(|series| &*series.key).collect();
        let wanted_keys: Vec<&[u8]> = wanted.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!(keys, wanted_keys, "{matchers:?}");
        let most = self.db().series_about(&matchers);
        assert!(most >= keys.len() as u64, "{most} for {matchers:?}");
        let mut labels = vec![None; found.len()];
        let mut each = |at: usize, held: &[u8]| {
            labels[at] = Some(Labels::from_bytes(held).unwrap());
            ControlFlow::Continue(())
        };
        self.db().labels_of_all(&found, &mut each).unwrap();
        for (at, (_, wanted)) in wanted.iter().enumerate() {
            assert_eq!(labels[at].as_ref(), Some(*wanted));
            if at % 16 == 0 {
                let labels = self.db().labels(&found[at]).unwrap();
                assert_eq!(labels.as_ref(), Some(*wanted));
            }
        }
        self.check_set(&matchers, &found);
        self.check_span(&matchers, &keys);
        self.check_groups(found.clone(), &wanted);
        self.check_listings(&matchers, &wanted);
    }

    fn check_set(&self, matchers: &[Matcher], found: &[SeriesRef]) {
        let set = self.db().select_set(matchers, None, None).unwrap();
        assert_eq!((set.len(), set.is_empty()), (found.len(), found.is_empty()));
        let mut each = Vec::new();
        let mut take = |mut some: Vec<SeriesRef>| {
            each.append(&mut some);
            Ok(ControlFlow::Continue(()))
        };
        self.db().each_of(&set, None, &mut take).unwrap();
        let mut found = found.to_vec();
        found.sort_by_key(|series| series.id);
        each.sort_by_key(|series| series.id);
        assert_eq!(each, found, "{matchers:?}");
    }

    /// What may be left out has no samples in the span.
    fn check_span(&self, matchers: &[Matcher], keys: &[&[u8]]) {
        let from = self.below(3) as i64;
        let found = self.db().select_in(matchers, (from, 2), None).unwrap();
        let found: BTreeSet<&[u8]> = found.iter().map(|series| &*series.key).collect();
        for key in keys {
            let has_samples = from < 2 && self.sampled.contains(*key);
            assert!(found.contains(key) || !has_samples, "{matchers:?}");
        }
        assert!(found.iter().all(|key| keys.contains(key)));
    }

    fn check_groups(&self, found: Vec<SeriesRef>, wanted: &[(&Vec<u8>, &Labels)]) {
        let name = self.name();
        let mut groups: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
        for (key, labels) in wanted {
            if let Some((_, value)) = labels.iter().find(|label| label.0 == name) {
                groups.entry(value).or_default().push(key);
            }
        }
        let grouped = self.db().group_by(found, &name, None).unwrap();
        let keys = |group: &[SeriesRef]| -> Vec<Vec<u8>> {
            group.iter().map(|series| series.key.to_vec()).collect()
        };
        assert!(
            grouped
                .iter()
                .map(|(value, group)| (&**value, keys(group)))
                .eq(groups.iter().map(|(value, group)| (
                    *value,
                    group.iter().map(|key| key.to_vec()).collect()
                ))),
            "{name:?}"
        );
        let is_odd = |value: &[u8]| value.last().is_some_and(|byte| byte % 2 == 1);
        let all = self.held.values().flat_map(Labels::iter);
        let all: BTreeSet<&[u8]> = all
            .filter(|label| label.0 == name)
            .map(|label| label.1)
            .collect();
        match self
            .db()
            .label_values_where(&name, is_odd, None, None)
            .unwrap()
        {
            Values::All => assert!(all.into_iter().all(is_odd), "{name:?}"),
            Values::Some(mut passed) => {
                passed.sort_unstable();
                let odd = all.iter().copied().filter(|value| is_odd(value));
                assert!(passed.iter().map(|value| &**value).eq(odd), "{name:?}");
                assert!(!all.into_iter().all(is_odd), "{name:?}");
            }
        }
    }

    fn check_listings(&self, matchers: &[Matcher], wanted: &[(&Vec<u8>, &Labels)]) {
        let odd = |key: &[u8]| key.last().is_some_and(|byte| byte % 2 == 1);
        let may_see: Option<MaySee<'_>> = match self.below(2) {
            0 => Some(&odd),
            _ => None,
        };
        let seen = wanted
            .iter()
            .filter(|(key, _)| may_see.is_none_or(|may_see| may_see(key)));
        let pairs: Vec<(&[u8], &[u8])> = seen.flat_map(|(_, labels)| labels.iter()).collect();
        let names: BTreeSet<&[u8]> = pairs.iter().map(|pair| pair.0).collect();
        let found = self
            .db()
            .label_names(matchers, may_see, None, usize::MAX, None);
        assert!(found.unwrap().iter().eq(names), "{matchers:?}");
        let name = self.name();
        let of_name = pairs.iter().filter(|pair| pair.0 == name);
        let values: BTreeSet<&[u8]> = of_name.map(|pair| pair.1).collect();
        let found = self
            .db()
            .label_values(&name, matchers, may_see, None, usize::MAX, None);
        assert!(found.unwrap().iter().eq(values), "{name:?} {matchers:?}");
    }
}

/// How many series it parked.
fn run(seed: u64) -> usize {
    let outcome = std::panic::catch_unwind(|| {
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|_| run.step());
        run.check();
        run.parked
    });
    outcome.unwrap_or_else(|cause| {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause);
    })
}

#[test]
fn matchers_find_what_a_scan_finds() {
    match std::env::var("LATEWOOD_SEED") {
        Ok(seed) => drop(run(seed.parse().unwrap())),
        Err(_) => {
            let parked: usize = (1..=RUNS).map(run).sum();
            assert!(parked > 50 * RUNS as usize, "only {parked} were parked");
        }
    }
}

/// Numbers of series of one creator, all acknowledged up to `done`.
struct Creator {
    name: String,
    done: AtomicU64,
}

impl Creator {
    fn key(&self, number: u64) -> Vec<u8> {
        format!("{}:{number:06}", self.name).into_bytes()
    }

    fn create(&self, db: &Db, series: u64) {
        for number in 0..series {
            let value = number.to_string();
            let pairs = [
                (&b"by"[..], self.name.as_bytes()),
                (b"number", value.as_bytes()),
            ];
            let options = labelled(&Labels::new(pairs).unwrap());
            db.create(&self.key(number), &options).unwrap();
            self.done.store(number + 1, Ordering::Release);
        }
    }

    /// One query for all of them, one for the newest.
    fn check(&self, db: &Db) -> u64 {
        let by = Matcher::new(b"by", Test::AnyOf(vec![self.name.as_bytes().into()]));
        let done = self.done.load(Ordering::Acquire);
        let found = db.select(std::slice::from_ref(&by)).unwrap();
        assert!(found.len() as u64 >= done, "{} of {done}", found.len());
        for (number, series) in (0..done).zip(&found) {
            assert_eq!(*series.key, *self.key(number));
        }
        let Some(newest) = self.done.load(Ordering::Acquire).checked_sub(1) else {
            return done;
        };
        let number = Test::AnyOf(vec![newest.to_string().as_bytes().into()]);
        let found = db.select(&[by, Matcher::new(b"number", number)]).unwrap();
        let keys: Vec<&[u8]> = found.iter().map(|series| &*series.key).collect();
        assert_eq!(keys, [&self.key(newest)[..]]);
        assert_eq!(db.labels(&found[0]).unwrap().unwrap().len(), 2);
        done
    }
}

#[test]
fn a_query_sees_every_series_acknowledged_before_it() {
    const SERIES: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let env = latewood_engine::io::Env::real();
    let db = Db::open(
        &env,
        dir.path(),
        latewood_engine::Options::default(),
        last_wins(),
    )
    .unwrap();
    let creators = ["a", "b"].map(|name| Creator {
        name: name.to_owned(),
        done: AtomicU64::new(0),
    });
    std::thread::scope(|scope| {
        for creator in &creators {
            scope.spawn(|| creator.create(&db, SERIES));
        }
        scope.spawn(|| while creators.iter().any(|creator| creator.check(&db) < SERIES) {});
        scope.spawn(|| while creators[1].check(&db) < SERIES {});
    });
    let names = db.label_names(&[], None, None, usize::MAX, None).unwrap();
    assert!(names.iter().eq([&b"by"[..], b"number"]));
    let values = db
        .label_values(b"number", &[], None, None, usize::MAX, None)
        .unwrap();
    assert_eq!(values.len() as u64, SERIES);
}
