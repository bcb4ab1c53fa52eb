//! Random writes, flushes, merges and restarts, compared with a map.

use crate::merge::world::{Chance, Expected, open_with, small_blocks};
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;
use latewood_model::DuplicatePolicy;

struct Run {
    chance: Chance,
    disk: SimDisk,
    db: Option<Db>,
    expected: Expected,
    newest: i64,
}

impl Run {
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn write(&mut self) {
        for _ in 0..1 + self.chance.below(400) {
            let key = [b'a' + self.chance.below(4) as u8];
            self.newest += self.chance.below(4) as i64;
            let at = match self.chance.below(3) {
                0 => self.chance.below(self.newest as u64 + 1) as i64,
                _ => self.newest,
            };
            let value = self.chance.below(10_000) as f64 / 4.0;
            let policy = DuplicatePolicy::ALL[self.chance.below(6) as usize];
            let db = self.db.as_ref().unwrap();
            self.expected.append(db, &key, (at, value), policy).unwrap();
        }
    }

    fn step(&mut self) {
        let key = [b'a' + self.chance.below(4) as u8];
        let db = self.db.as_ref().unwrap();
        match self.chance.below(20) {
            0..=7 => self.write(),
            8..=11 => db.flush().unwrap(),
            12..=14 => {
                db.merge_step().unwrap();
            }
            15 => db.merge().unwrap(),
            16 => {
                let from = self.chance.below(self.newest as u64 + 1) as i64;
                let to = from + self.chance.below(500) as i64;
                self.expected.delete(db, &key, from, to).unwrap();
            }
            17 if self.chance.below(4) == 0 => self.expected.remove(db, &key).unwrap(),
            18 if self.chance.below(6) == 0 => {
                db.flush_all().unwrap();
                self.expected.0.clear();
            }
            19 => {
                self.db.take().unwrap().close().unwrap();
                self.db = Some(open_with(&self.disk, small_blocks()).unwrap());
            }
            _ => db.maintain().unwrap(),
        }
    }
}

#[test]
fn whatever_happens_a_reader_sees_what_was_written() {
    for seed in 0..40 {
        let disk = SimDisk::new();
        let mut run = Run {
            chance: Chance(seed),
            db: Some(open_with(&disk, small_blocks()).unwrap()),
            disk,
            expected: Expected::default(),
            newest: 0,
        };
        for step in 0..60 {
            run.step();
            run.expected
                .check(run.db(), &format!("seed {seed} step {step}"));
        }
        run.db().merge().unwrap();
        run.expected
            .check(run.db(), &format!("seed {seed} at the end"));
    }
}
