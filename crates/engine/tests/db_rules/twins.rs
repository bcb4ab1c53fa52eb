//! A database and what a restart makes of its files and log, compared all the
//! time.
//!
//! Random operations on a few keys that are sources, destinations and neither
//! in turn: everything that makes, ends, moves or replaces a series, and
//! flushes between. After some of them a copy of the disk is opened beside the
//! database, and both must show the same; now and then it goes on as the
//! database. Without a log, everything is flushed before it is opened again. `LATEWOOD_SEED=n` runs one seed alone.

use crate::db_rules::random::{Dice, seeds};
use crate::db_rules::support::{held, latest, spec};
use crate::db_support::{DIR, append, last_wins, options, sample};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Create, Db, Dump, ErrorKind, ExpireIf, Options, Result};
use latewood_model::{Aggregator, Labels, SeriesOptions};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

const KEYS: u64 = 6;

struct World {
    dice: Dice,
    clock: Arc<SimClock>,
    newest: i64,
    log: bool,
}

impl World {
    fn open(&self, disk: &SimDisk) -> Db {
        let env = Env {
            clock: self.clock.clone(),
            ..disk.env(1)
        };
        let options = Options {
            log: self.log,
            ..options(4)
        };
        Db::open(&env, Path::new(DIR), options, last_wins()).unwrap()
    }

    fn key(&self) -> Vec<u8> {
        format!("k{}", self.dice.below(KEYS)).into_bytes()
    }

    fn options(&self) -> SeriesOptions {
        let label = format!("v{}", self.dice.below(3));
        SeriesOptions {
            chunk_size_bytes: 48,
            retention_ms: [0, 0, 60][self.dice.below(3) as usize],
            labels: Labels::new([(&b"l"[..], label.as_bytes())]).unwrap(),
            ..SeriesOptions::default()
        }
    }

    fn write(&mut self, db: &Db) -> Result<()> {
        let keys: Vec<_> = (0..1 + self.dice.below(12)).map(|_| self.key()).collect();
        let mut batch = Vec::new();
        for key in &keys {
            self.newest += self.dice.below(4) as i64;
            let back = if self.dice.one_in(3) { 50 } else { 1 };
            let at = (self.newest - self.dice.below(back) as i64).max(0);
            let value = if self.dice.one_in(8) {
                f64::NAN
            } else {
                self.dice.below(100) as f64
            };
            batch.push(sample(key, at, value));
        }
        append(db, &batch).map(drop)
    }

    fn step(&mut self, db: &Db) -> Result<()> {
        let (one, two) = (self.key(), self.key());
        let now_ms = self.clock.now_ms();
        match self.dice.below(26) {
            0 => db.remove(&[&one]).map(drop),
            1 => db.rename(&one, &two, self.dice.one_in(2)).map(drop),
            2 if one != two => db.copy(&one, &two, self.dice.one_in(2)).map(drop),
            3 => {
                let at_ms = now_ms + self.dice.below(40) as i64 - 5;
                db.expire(&one, at_ms, ExpireIf::default()).map(drop)
            }
            4 => db.persist(&one).map(drop),
            5 => db.alter(&one, &self.options()).map(drop),
            6 => db.create(&one, &self.options()).map(drop),
            7..=9 => {
                let kinds = [Aggregator::Sum, Aggregator::Twa, Aggregator::First];
                let kind = kinds[self.dice.below(3) as usize];
                let width = 1 + self.dice.below(30) as i64;
                let spec = spec(kind, width, self.dice.below(40) as i64);
                db.create_rule(&one, &two, spec).map(drop)
            }
            10 => db.delete_rule(&one, &two).map(drop),
            11 => {
                let from = self.dice.below(self.newest as u64 + 2) as i64;
                let to = from + self.dice.below(40) as i64;
                db.delete_range(&one, from, to).map(drop)
            }
            12 => {
                let bytes = db.dump(&one)?;
                let expires = self.dice.one_in(2).then(|| now_ms + 20);
                let dump = Dump::parse(&bytes).unwrap();
                db.restore(&two, dump, expires, self.dice.one_in(2))
                    .map(drop)
            }
            13 => {
                let delta = self.dice.below(9) as f64;
                let at = Some(self.newest);
                let outcome = db.increment(&one, delta, at, Create::Defaults);
                outcome.map(drop)
            }
            14 if self.dice.one_in(8) => db.flush_all().map(drop),
            15 => db.maintain(),
            16 => db.settle(),
            17 => {
                self.clock.advance_ms(self.dice.below(12) as u32);
                Ok(())
            }
            18 => db.last_sample(&one).map(drop),
            19 | 20 => db.flush(),
            _ => self.write(db),
        }
    }
}

/// Everything a reader can ask, as text.
fn shown(db: &Db) -> String {
    let mut text = String::new();
    for series in db.select(&[]).unwrap() {
        let key = &series.key;
        let name = String::from_utf8_lossy(key);
        writeln!(text, "{name}: {:?}", db.labels(&series)).unwrap();
        let rules = db.rules_of(key).unwrap();
        writeln!(text, "  rules {rules:?} of {:?}", db.source_of(key)).unwrap();
        writeln!(text, "  expires {:?}", db.expires_at(key).unwrap()).unwrap();
        writeln!(text, "  latest {:?}", latest(db, key)).unwrap();
        writeln!(text, "  holds {:?}", held(db, key)).unwrap();
        let info = db.info(key).unwrap();
        writeln!(text, "  {:?}", (info.total_samples, info.options)).unwrap();
    }
    let mut scanned = 0;
    db.scan(0, 1_000, &mut |_| scanned += 1).unwrap();
    assert_eq!(
        (scanned, db.len()),
        (db.select(&[]).unwrap().len(), scanned)
    );
    text
}

fn live(seed: u64, log: bool) {
    let mut disk = SimDisk::new();
    let mut world = World {
        dice: Dice::new(seed),
        clock: Arc::default(),
        newest: 0,
        log,
    };
    let mut db = world.open(&disk);
    for step in 0..150 {
        if let Err(error) = world.step(&db) {
            let expected = [
                ErrorKind::NoSuchKey,
                ErrorKind::KeyExists,
                ErrorKind::Invalid,
                ErrorKind::NoSuchRule,
            ];
            assert!(expected.contains(&error.kind()), "seed {seed}: {error}");
        }
        if world.dice.one_in(12) {
            if !log {
                db.flush().unwrap();
            }
            let copy = disk.kill();
            let twin = world.open(&copy);
            assert_eq!(shown(&twin), shown(&db), "seed {seed}, step {step}");
            if world.dice.one_in(2) {
                (disk, db) = (copy, twin);
            }
        }
    }
}

#[test]
fn a_restart_shows_what_the_database_shows() {
    for seed in seeds(60) {
        live(seed, true);
    }
}

#[test]
fn a_restart_from_files_alone_shows_what_was_flushed() {
    for seed in seeds(30) {
        live(seed, false);
    }
}
