//! An owner that does everything, and databases that follow its log.

use crate::follow::answers::{Answers, answers};
use crate::log_remote::MemoryLog;
use crate::model::chance::Chance;
use crate::model::ops::Op;
use crate::model::oracle::Oracle;
use latewood_engine::io::sim::{self, Fault, SimClock, SimDisk, Trouble};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{
    Db, Defaults, ErrorKind, ExpireIf, Options, Position, RuleSpec, Scratch, names,
};
use latewood_model::{Aggregator, CompactionPolicy};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The follower that begins with nothing, adopts nothing and goes on: it parks nothing.
const PLAIN: usize = 0;

/// A database that follows.
struct Follower {
    db: Db,
    dir: PathBuf,
    /// The newest group when the files were made with which it began: merges may have dropped
    /// what was gone by then.
    made_at: u64,
}

/// A checkpoint, and the newest group when it was made.
struct Checkpoint {
    dir: PathBuf,
    made_at: u64,
}

/// See the page of `mod.rs`.
pub(crate) struct World {
    chance: Chance,
    env: Env,
    clock: Arc<SimClock>,
    disk: SimDisk,
    log: Arc<MemoryLog>,
    options: Options,
    oracle: Oracle,
    scratch: Scratch,
    owner: Option<Db>,
    owner_dir: PathBuf,
    followers: Vec<Follower>,
    /// What the owner answered when this was the newest group.
    told: VecDeque<(u64, Answers)>,
    checkpoints: Vec<Checkpoint>,
    /// Directories that had a name.
    dirs: u32,
    /// Whoever is asked for all that it answers wakes its series: that is done seldom.
    is_quiet: bool,
    /// Series of owners and of followers that were parked, as often as they were counted.
    parked: [u64; 2],
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let chance = Chance::new(seed);
        let disk = SimDisk::new();
        let clock = Arc::<SimClock>::default();
        let env = Env {
            clock: clock.clone(),
            ..disk.env(seed)
        };
        let oracle = Oracle {
            defaults: chance.defaults(),
            ..Oracle::default()
        };
        let options = Options {
            background: false,
            shards: chance.pick(&[1, 2, 4]),
            series_file_bytes_min: 0,
            ..Options::default()
        };
        let log = Arc::new(MemoryLog::default());
        let owner_dir = PathBuf::from("/owner");
        let opened = Db::open_remote(
            &env,
            &owner_dir,
            options.clone(),
            oracle.defaults.clone(),
            log.clone(),
        );
        let mut world = Self {
            chance,
            env,
            clock,
            disk,
            log,
            options,
            oracle,
            scratch: Scratch::new(),
            owner: Some(opened.unwrap()),
            owner_dir,
            followers: Vec::new(),
            told: VecDeque::new(),
            checkpoints: Vec::new(),
            dirs: 0,
            is_quiet: seed % 2 == 1,
            parked: [0, 0],
        };
        world.follow_anew(None);
        world.follow_anew(None);
        world.follow_anew(None);
        world
    }

    fn owner(&self) -> &Db {
        self.owner.as_ref().expect("there is one between steps")
    }

    /// Returns how many series of owners and of followers were parked, after each step.
    pub(crate) fn steps(&mut self, count: usize) -> [u64; 2] {
        for step in 0..count {
            self.step();
            if !self.is_quiet || self.chance.one_in(8) {
                self.tell();
                if self.chance.one_in(2) || step + 1 == count {
                    self.feed();
                }
            } else if self.chance.one_in(2) {
                let followers = self.followers.iter();
                followers.for_each(|follower| self.give(follower, self.log.last()));
            }
            self.parked[0] += self.owner().stats().series_parked;
            let parked = self
                .followers
                .iter()
                .map(|one| one.db.stats().series_parked);
            self.parked[1] += parked.sum::<u64>();
            assert_eq!(self.followers[PLAIN].db.stats().series_parked, 0);
        }
        self.catch_up();
        self.check_restarts();
        self.parked
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..24 if self.is_quiet => self.park(),
            0..58 => self.write(),
            58..60 => self.change_rules(),
            60..64 => self.park(),
            64..67 => self.expire(),
            67..69 => self.owner().settle().unwrap(),
            69..72 => self.owner().maintain().unwrap(),
            72..79 => self.owner().flush().unwrap(),
            79..82 => self.fail_flush(),
            82..83 => self.owner().merge().unwrap(),
            83..85 => drop(self.owner().merge_step().unwrap()),
            85..90 => self.checkpoint(),
            90..94 => self.adopt(),
            94..96 => self.restart_owner(),
            96..98 => self.promote(),
            98 => self.raise_floor(),
            _ => self.replace_follower(),
        }
    }

    /// What nobody writes to leaves memory; the first look sees what came before it.
    fn park(&mut self) {
        if self.chance.one_in(2) {
            self.owner().settle().unwrap();
            self.owner().flush().unwrap();
        }
        for _ in 0..2 {
            self.owner().park_idle().unwrap();
        }
        if self.is_quiet {
            self.checkpoint();
            for follower in &self.followers {
                self.give(follower, self.log.last());
            }
            for _ in 0..3 {
                self.adopt();
            }
        }
    }

    /// What is older goes from all series, by a retention that is as long as the clock wants it.
    fn raise_floor(&self) {
        let floor = self.chance.below(3_000) as i64;
        let retention_ms = (self.clock.now_ms() - floor) as u64;
        self.owner().set_retention_ms(retention_ms).unwrap();
        self.owner().accept_clock().unwrap();
        self.owner().set_retention_ms(0).unwrap();
    }

    fn write(&mut self) {
        let op = match self.chance.op(&self.oracle) {
            Op::SetDefaults(defaults) if self.chance.one_in(3) => Op::SetDefaults(Defaults {
                compactions: CompactionPolicy::parse("max:1s:0;sum:3s:20s").unwrap(),
                ..defaults
            }),
            op => op,
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        op.apply(self.owner(), &mut scratch).unwrap();
        self.scratch = scratch;
        op.foretell(&mut self.oracle);
    }

    fn change_rules(&mut self) {
        let source = self.chance.held_key(&self.oracle);
        let destination = self.chance.held_key(&self.oracle);
        if self.chance.one_in(3) {
            let _ = self.owner().delete_rule(&source, &destination);
            return;
        }
        let spec = RuleSpec {
            aggregator: self.chance.pick(&[
                Aggregator::Sum,
                Aggregator::Max,
                Aggregator::Last,
                Aggregator::Count,
                Aggregator::Twa,
            ]),
            bucket_ms: self.chance.pick(&[1, 7, 100, 3_000]),
            align: self.chance.pick(&[0, 3]),
        };
        let _ = self.owner().create_rule(&source, &destination, spec);
    }

    /// Series expire soon, and time goes on.
    fn expire(&mut self) {
        let key = self.chance.held_key(&self.oracle);
        let at_ms = self.clock.now_ms() + 1 + self.chance.below(3_000) as i64;
        let _ = self.owner().expire(&key, at_ms, ExpireIf::default());
        // What was told is compared before its time is over.
        self.catch_up();
        self.clock.advance_ms(self.chance.below(2_000) as u32);
        self.told.clear();
        self.owner().maintain().unwrap();
    }

    /// A flush whose files cannot be written; what was frozen for it stays.
    fn fail_flush(&mut self) {
        self.disk.plan(Fault {
            op: Some(self.chance.pick(&[sim::Op::Write, sim::Op::Create])),
            after: self.chance.below(4),
            trouble: Trouble::Fail(std::io::ErrorKind::Other),
        });
        let _ = self.owner().flush();
        self.disk.heal();
        if self.owner().stats().halted.is_some() {
            self.restart_owner();
        }
    }

    fn checkpoint(&mut self) {
        if self.chance.one_in(2) {
            self.owner().flush().unwrap();
        }
        let dir = self.new_dir("checkpoint");
        self.owner().checkpoint(&dir).unwrap();
        let made_at = self.log.last();
        self.checkpoints.push(Checkpoint { dir, made_at });
    }

    fn new_dir(&mut self, what: &str) -> PathBuf {
        self.dirs += 1;
        PathBuf::from(format!("/{what}-{}", self.dirs))
    }

    /// One that may go, or adopt.
    fn some_follower(&self) -> usize {
        PLAIN + 1 + self.chance.below(self.followers.len() as u64 - 1) as usize
    }

    /// Some follower takes some checkpoint over.
    fn adopt(&mut self) {
        let place = self.some_follower();
        let applied = self.followers[place].db.applied().0;
        let begun = self.followers[place].made_at;
        let there = self.checkpoints.iter();
        let there = there.filter(|one| one.made_at <= applied && applied >= begun);
        let there: Vec<&Checkpoint> = there.collect();
        let back = self.chance.pick(&[0, 0, 0, 1, 2]);
        let Some(chosen) = there.len().checked_sub(1 + back) else {
            return;
        };
        let from = there[chosen].dir.clone();
        let follower = &self.followers[place];
        // As the store brings them.
        self.link_all(&from.join(names::BLOCKS), &follower.dir.join(names::BLOCKS));
        let is_asked = !self.is_quiet || self.chance.one_in(6);
        let asked = || {
            if !is_asked {
                return Ok(Answers::default());
            }
            answers(&follower.db)
        };
        let before = asked();
        follower.db.adopt(&from).unwrap();
        match (before, asked()) {
            (Ok(before), Ok(after)) => {
                let difference = after.difference(&before);
                assert_eq!(difference, None, "by adopting {from:?}");
            }
            (before, after) => assert_eq!(before.err(), after.err()),
        }
        assert!(!follower.db.adopt(&from).unwrap(), "it has it");
    }

    fn link_all(&self, from: &Path, to: &Path) {
        let disk = &self.env.disk;
        for name in disk.list(from).unwrap() {
            let there = disk.list(to).unwrap();
            if !there.contains(&name) {
                disk.link(&from.join(&name), &to.join(&name)).unwrap();
            }
        }
    }

    /// A directory with the files of a checkpoint.
    fn copy_of(&mut self, checkpoint: Option<&Path>) -> PathBuf {
        let dir = self.new_dir("node");
        if let Some(from) = checkpoint {
            let disk = &self.env.disk;
            disk.create_dir_all(&dir).unwrap();
            for folder in [names::BLOCKS, names::SERIES] {
                disk.create_dir_all(&dir.join(folder)).unwrap();
                self.link_all(&from.join(folder), &dir.join(folder));
            }
            for name in ["MANIFEST", "METADATA", "FORMAT"] {
                let linked = disk.link(&from.join(name), &dir.join(name));
                assert!(linked.is_ok() || name == "METADATA", "{linked:?}");
            }
        }
        dir
    }

    fn newest_checkpoint(&self) -> Option<PathBuf> {
        self.checkpoints.last().map(|one| one.dir.clone())
    }

    fn made_at(&self, checkpoint: Option<&Path>) -> u64 {
        let mut made = self.checkpoints.iter();
        let made = made.find(|one| Some(&*one.dir) == checkpoint);
        made.map_or(0, |one| one.made_at)
    }

    /// One more follower, of the newest checkpoint or of this one.
    fn follow_anew(&mut self, checkpoint: Option<PathBuf>) {
        let dir = self.copy_of(checkpoint.as_deref());
        let options = Options {
            shards: self.chance.pick(&[1, 2, 4, 8]),
            ..self.options.clone()
        };
        let defaults = self.oracle.defaults.clone();
        let db = Db::open_follower(&self.env, &dir, options, defaults).unwrap();
        assert!(db.is_follower());
        let made_at = self.made_at(checkpoint.as_deref());
        self.followers.push(Follower { db, dir, made_at });
    }

    fn replace_follower(&mut self) {
        let place = self.some_follower();
        self.followers.swap_remove(place).db.close().unwrap();
        let checkpoint = self.newest_checkpoint().filter(|_| !self.chance.one_in(3));
        self.follow_anew(checkpoint);
    }

    /// Notes what the owner answers.
    fn tell(&mut self) {
        let told = answers(self.owner()).unwrap();
        self.told.push_back((self.log.last(), told));
    }

    /// Gives each follower some of the log, and compares where the owner told what it answers.
    fn feed(&mut self) {
        for follower in &self.followers {
            if self.chance.one_in(3) {
                continue;
            }
            let ahead = self.told.iter();
            let ahead = ahead.filter(|(at, _)| *at >= follower.db.applied().0);
            let ahead: Vec<_> = ahead.collect();
            if ahead.is_empty() {
                continue;
            }
            let stop = 1 + self.chance.below(ahead.len() as u64);
            for (at, told) in ahead.into_iter().take(stop as usize) {
                self.give(follower, *at);
                let newest = self.told.iter().rfind(|(last, _)| last == at);
                let told = newest.map_or(told, |(_, told)| told);
                self.compare(follower, told);
            }
        }
        let oldest = self.followers.iter().map(|one| one.db.applied().0).min();
        self.told.retain(|(at, _)| Some(*at) >= oldest);
    }

    /// Gives it the log up to a group, in pieces that may repeat some.
    fn give(&self, follower: &Follower, last: u64) {
        while follower.db.applied().0 < last {
            let next = follower.db.applied().0 + 1;
            let from = next.saturating_sub(self.chance.below(3)).max(1);
            let to = last.min(next + self.chance.below(20));
            follower.db.follow(&self.log.groups(from, to)).unwrap();
        }
    }

    fn compare(&self, follower: &Follower, told: &Answers) {
        let db = &follower.db;
        if !db.is_loaded() || db.applied().0 < follower.made_at {
            return;
        }
        let found = answers(db).unwrap_or_else(|kind| {
            let rules = |db: &Db| {
                let mut rules = Vec::new();
                db.scan_rules(0, 100, &mut |state| rules.push(state))
                    .unwrap();
                rules
            };
            let (own, followed) = (rules(self.owner()), rules(db));
            panic!(
                "answered {kind:?} at group {}: {followed:#?}, the owner has {own:#?}",
                db.applied().0
            )
        });
        if let Some(difference) = found.difference(told) {
            panic!("at group {}: {difference}", db.applied().0);
        }
    }

    /// All followers are where the owner is.
    fn catch_up(&mut self) {
        self.tell();
        let (last, told) = self.told.back().cloned().expect("just told");
        for follower in &self.followers {
            self.give(follower, last);
            assert!(follower.db.is_loaded());
            self.compare(follower, &told);
        }
        self.told.clear();
        self.told.push_back((last, told));
    }

    /// The owner dies and starts again, with its disk or without.
    fn restart_owner(&mut self) {
        self.owner = None;
        if self.chance.one_in(3) {
            self.owner_dir = self.copy_of(self.newest_checkpoint().as_deref());
        }
        let defaults = self.oracle.defaults.clone();
        let (env, options) = (&self.env, self.options.clone());
        let log = self.log.clone();
        let opened = Db::open_remote(env, &self.owner_dir, options, defaults, log);
        self.owner = Some(opened.unwrap());
    }

    /// The owner dies, and a follower takes its place.
    fn promote(&mut self) {
        self.catch_up();
        let (_, told) = self.told.back().cloned().expect("it just told");
        self.owner = None;
        let place = self.some_follower();
        let Follower { db, dir, .. } = self.followers.swap_remove(place);
        let refused = db.create(b"no", &Default::default()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Halted);
        db.promote(self.log.clone()).unwrap();
        assert!(!db.is_follower());
        assert_eq!(db.applied(), Position(self.log.last()));
        db.set_defaults(self.oracle.defaults.clone()).unwrap();
        let now = answers(&db).unwrap();
        assert_eq!(now.difference(&told), None, "after a promotion");
        (self.owner, self.owner_dir) = (Some(db), dir);
        let checkpoint = self.newest_checkpoint().filter(|_| self.chance.one_in(2));
        self.follow_anew(checkpoint);
    }

    /// What the owner wrote and logged is what starts anew find.
    fn check_restarts(&mut self) {
        for flushes in [false, true] {
            if flushes {
                self.owner().flush().unwrap();
                self.checkpoint();
            }
            self.tell();
            let (last, told) = self.told.back().cloned().expect("it just told");
            let newest = self.newest_checkpoint();
            self.follow_anew(newest.clone());
            let follower = self.followers.pop().expect("just added");
            self.give(&follower, last);
            assert!(follower.db.is_loaded());
            self.compare(&follower, &told);
            let dir = self.copy_of(newest.as_deref());
            let log = MemoryLog::up_to(&self.log, Position(last));
            let (options, defaults) = (self.options.clone(), self.oracle.defaults.clone());
            let anew = Db::open_remote(&self.env, &dir, options, defaults, log).unwrap();
            let found = answers(&anew).unwrap();
            assert_eq!(found.difference(&told), None, "after a start");
        }
    }
}
