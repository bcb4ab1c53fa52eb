//! One run: a database on a simulated disk, its oracle, and what it has
//! promised to keep.

use crate::model::chance::Chance;
use crate::model::ops::Op;
use crate::model::oracle::Oracle;
use crate::model::reads;
use latewood_engine::io::sim::{self, Fault, SimDisk, Trouble};
use latewood_engine::{Db, Durability, Error, ErrorKind, Options, Position, Result, Scratch};
use std::path::Path;

const DIR: &str = "/db";

/// A write and where in the log it stands: after `before`, up to `after`.
struct Step {
    op: Op,
    before: Position,
    after: Position,
}

/// Parks what may be parked: the first look sees what came before it.
fn park(db: &Db) -> Result<()> {
    db.park_idle().and_then(|_| db.park_idle()).map(drop)
}

/// See the module's page in `main.rs` for the rules it checks.
pub(crate) struct Run {
    chance: Chance,
    disk: SimDisk,
    db: Option<Db>,
    options: Options,
    scratch: Scratch,
    oracle: Oracle,
    /// The oracle as it was when `journal` began.
    base: Oracle,
    /// Writes since the last open.
    journal: Vec<Step>,
    /// Promised to be on disk.
    promised: Position,
    /// Series that ended.
    ended: u64,
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let chance = Chance::new(seed);
        let oracle = Oracle {
            defaults: chance.defaults(),
            ..Oracle::default()
        };
        let mut run = Self {
            options: Options {
                background: false,
                segment_bytes: 64 * 1024,
                shards: chance.pick(&[1, 2, 4]),
                series_file_bytes_min: 0,
                durability: chance.pick(&[Durability::Sync, Durability::Interval]),
                ..Options::default()
            },
            disk: SimDisk::new(),
            db: None,
            scratch: Scratch::new(),
            base: oracle.clone(),
            oracle,
            journal: Vec::new(),
            promised: Position(0),
            ended: 0,
            chance,
        };
        run.open();
        run
    }

    /// Random steps, with a whole comparison at the end. Returns how many series ended.
    pub(crate) fn steps(&mut self, count: usize) -> u64 {
        for _ in 0..count {
            self.step();
        }
        reads::check_all(self.db(), &self.oracle);
        self.reopen_closed();
        self.ended
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..55 => self.write(),
            55..78 => self.read(),
            78..80 => self.fail_looks(),
            80 => self.maintain(Db::settle),
            81 => self.maintain(park),
            82..84 => self.end(),
            84..87 => self.maintain(Db::flush),
            87..88 => self.maintain(Db::merge),
            88..90 => self.maintain(|db| db.merge_step().map(drop)),
            90..92 => self.sync(),
            92..94 => self.reopen_closed(),
            94..96 => self.reopen_killed(),
            96..98 => self.reopen_after_power_cut(),
            _ => self.disk.plan(Fault {
                op: None,
                after: self.chance.below(6),
                trouble: Trouble::PowerCut,
            }),
        }
    }

    fn write(&mut self) {
        let op = self.chance.op(&self.oracle);
        self.apply(op);
    }

    /// Works in the background; some series end.
    fn end(&mut self) {
        let ended = self.oracle.ended();
        self.ended += ended.len() as u64;
        self.apply(Op::End(ended));
    }

    fn apply(&mut self, op: Op) {
        let before = self.db().position();
        let mut scratch = std::mem::take(&mut self.scratch);
        let answer = op.apply(self.db(), &mut scratch);
        self.scratch = scratch;
        let Ok(answer) = answer else {
            let after = Position(u64::MAX);
            self.journal.push(Step { op, before, after });
            return self.reopen_after_power_cut();
        };
        let (op, answer) = op.without_unread(answer);
        op.check(&answer, &op.foretell(&mut self.oracle));
        let after = self.db().position();
        self.journal.push(Step { op, before, after });
    }

    fn read(&mut self) {
        let key = self.chance.key();
        let db = self.db();
        let Some(series) = self.oracle.series.get(&key) else {
            assert!(!db.contains(&key));
            assert!(reads::samples(db, &key, &reads::everything()).is_err());
            assert!(db.info(&key).is_err() && db.last_sample(&key).is_err());
            return;
        };
        for _ in 0..3 {
            let query = self.chance.query(&self.oracle, &key);
            reads::check_query(db, &key, &query, series);
            let width = 1 + self.chance.below(3000) as i64;
            reads::check_buckets(db, &key, &query, series, width);
            reads::check_numbers(db, &key, &query, series, width);
        }
        reads::check_query(db, &key, &reads::everything(), series);
        reads::check_last(db, &key, series);
        if self.chance.one_in(8) {
            reads::check_info(db, &key, series);
        }
        if self.chance.one_in(8) {
            let count = 1 + self.chance.below(4) as usize;
            reads::check_scan(db, &self.oracle, count);
        }
    }

    fn maintain(&mut self, work: fn(&Db) -> Result<()>) {
        if work(self.db()).is_err() {
            self.reopen_after_power_cut();
        }
    }

    /// The disk fails to read, open or list a few times, while the database reads, works or
    /// opens: that is told, and nothing is lost.
    fn fail_looks(&mut self) {
        self.disk.heal();
        for _ in 0..1 + self.chance.below(3) {
            self.disk.plan(Fault {
                op: Some(
                    self.chance
                        .pick(&[sim::Op::Read, sim::Op::Open, sim::Op::List]),
                ),
                after: self.chance.below(30),
                trouble: Trouble::Fail(std::io::ErrorKind::Other),
            });
        }
        match self.chance.below(4) {
            0 => {
                self.write();
                self.disk.heal();
            }
            1 => {
                let query = reads::everything();
                for (key, series) in &self.oracle.series {
                    match reads::samples(self.db(), key, &query) {
                        Ok(found) => reads::check_found(&found, key, &query, series),
                        Err(error) => told(&error),
                    }
                }
            }
            2 => {
                let work = [Db::settle, Db::flush, Db::merge, park, Db::maintain];
                // Where nothing ends meanwhile.
                let left_out = usize::from(!self.oracle.ended().is_empty());
                let done = self.chance.pick(&work[..work.len() - left_out])(self.db());
                done.unwrap_or_else(|error| told(&error));
                self.disk.heal();
                // Nothing was promised to a disk that fails, unless writes go on.
                if self
                    .db()
                    .stats()
                    .log
                    .is_some_and(|log| log.halted.is_some())
                {
                    return self.reopen_killed();
                }
            }
            _ => {
                self.db = None;
                match self.try_open() {
                    Ok(db) => self.db = Some(db),
                    Err(error) => {
                        told(&error);
                        self.disk.heal();
                        self.open();
                    }
                }
                self.disk.heal();
                return self.adopt();
            }
        }
        self.disk.heal();
        reads::check_all(self.db(), &self.oracle);
    }

    fn sync(&mut self) {
        let written = self.db().position();
        let synced = if self.chance.one_in(2) {
            self.db().sync()
        } else {
            self.db().sync_to(written).map(|()| written)
        };
        match synced {
            Ok(position) => {
                assert_eq!(position, written);
                self.promised = written;
            }
            Err(_) => self.reopen_after_power_cut(),
        }
    }

    fn reopen_closed(&mut self) {
        let db = self.db.take().expect("open between steps");
        if db.close().is_err() {
            return self.reopen_after_power_cut();
        }
        // Closing promises everything: losing the power must change nothing.
        self.disk = self.disk.crash(self.chance.below(u64::MAX));
        self.open();
        let clean = self.db().recovery().log.clean;
        let wrote = |step: &Step| step.before < step.after;
        assert!(clean || !self.journal.iter().any(wrote), "closed in order");
        self.adopt();
    }

    fn reopen_killed(&mut self) {
        self.disk = self.disk.kill();
        self.open();
        self.adopt();
    }

    fn reopen_after_power_cut(&mut self) {
        if let Some(db) = &self.db {
            self.promised = self.promised.max(db.durable_position());
        }
        self.disk = self.disk.crash(self.chance.below(u64::MAX));
        if self.chance.one_in(4) {
            self.cut_power_while_opening();
        }
        self.open();
        let kept = self.db().position();
        assert!(
            kept >= self.promised,
            "kept {kept:?}, promised {:?}",
            self.promised
        );
        let defaults = self.oracle.defaults.clone();
        self.oracle = self.base.clone();
        for step in std::mem::take(&mut self.journal) {
            if step.after <= kept {
                step.op.foretell(&mut self.oracle);
            } else if step.before < kept {
                self.adopt_part(&step.op);
            }
        }
        self.oracle.defaults = defaults;
        self.adopt();
    }

    /// Finds out how much of `op` survived, for each key on its own.
    fn adopt_part(&mut self, op: &Op) {
        let before = self.oracle.clone();
        for key in op.keys(&before) {
            let part = op.parts(&key).into_iter().find_map(|part| {
                let mut after = before.clone();
                if let Some(part) = part {
                    part.foretell(&mut after);
                }
                reads::is_same(self.db(), &key, &after).then(|| after.series.remove(&key))
            });
            match part.unwrap_or_else(|| panic!("{key:?} is at no part of {op:?}")) {
                Some(series) => self.oracle.series.insert(key, series),
                None => self.oracle.series.remove(&key),
            };
        }
    }

    fn cut_power_while_opening(&mut self) {
        self.db = None;
        self.disk.plan(Fault {
            op: None,
            after: self.chance.below(6),
            trouble: Trouble::PowerCut,
        });
        drop(self.try_open());
        self.disk = self.disk.crash(self.chance.below(u64::MAX));
    }

    fn open(&mut self) {
        self.db = None;
        self.db = Some(self.try_open().expect("no crash makes a log unreadable"));
    }

    fn try_open(&self) -> Result<Db> {
        let env = self.disk.env(self.chance.below(u64::MAX));
        let defaults = self.oracle.defaults.clone();
        Db::open(&env, Path::new(DIR), self.options.clone(), defaults)
    }

    /// Begins a new life: what is there now is promised.
    fn adopt(&mut self) {
        reads::check_all(self.db(), &self.oracle);
        if self.chance.one_in(3) {
            for (key, series) in &self.oracle.series {
                reads::check_info(self.db(), key, series);
            }
        }
        self.journal.clear();
        self.base = self.oracle.clone();
        self.promised = self.db().position();
    }
}

/// What a look that failed must answer.
fn told(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let words = error.to_string();
    assert!(words.contains("/db"), "no file is named: {words}");
}
