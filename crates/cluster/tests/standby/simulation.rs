//! Random runs of three nodes: commands at the owner, questions at all, kills, suspended and cut
//! nodes, stalls of Kafka, a store that refuses, hand-overs, checkpoints.
//!
//! At every moment:
//!
//! - nothing that was acknowledged, or in an answer of an owner, is missing at a new owner, and
//!   nothing counts twice: a database at a position of the log is the plain one;
//! - an answer of an owner has all that was acknowledged or answered before, and at most one node
//!   may answer as owner;
//! - an answer of a follower has all that was acknowledged longer ago than the bound;
//! - a living owner that reaches Kafka is deposed by an operator alone;
//! - what a deposed owner takes is never acknowledged.
//!
//! After a quiet time all nodes, and one that begins with an empty disk, hold the same.
//!
//! A run follows from one number, up to the turns of the owner's thread. `LATEWOOD_SEED=n cargo test
//! -p latewood-cluster standby` repeats run n; `LATEWOOD_ROUNDS=r` makes r runs from there.

mod harm;
mod quiet;

use super::ledger::Ledger;
use super::life::{Became, Nodes, STALENESS_MAX};
use super::plain::{self, Command, KEYS, Plain, create_rule};
use crate::ledger::number;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::standby::Ended;
use latewood_engine::ErrorKind;
use latewood_engine::io::sim::SimRandom;
use latewood_model::DuplicatePolicy;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NODES: usize = 3;
const RUNS: u64 = 24;
const AT_ONCE: u64 = 4;
/// Of a tenth of a second each.
const STEPS: u64 = 600;
const STEP_MS: u32 = 100;
/// An owner that was well for this time must not be deposed.
const WELL_NS: u64 = 4_000_000_000;
/// Within which a process that an operator asked to take over has done so, or never will.
const FORCED_NS: u64 = 30_000_000_000;

/// What a run did, to know that the runs show what they are meant to.
#[derive(Debug, Default)]
struct Did {
    commands: u64,
    /// Of owners.
    answers: u64,
    follower_answers: u64,
    kills: u64,
    suspensions: u64,
    cuts: u64,
    stalls: u64,
    farewells: u64,
    forced: u64,
    takeovers: u64,
    /// Owners of which another one was told before.
    outrun: u64,
    anew: u64,
    checkpoints: u64,
}

impl Did {
    fn add(&mut self, one: &Self) {
        for (sum, one) in [
            (&mut self.commands, one.commands),
            (&mut self.answers, one.answers),
            (&mut self.follower_answers, one.follower_answers),
            (&mut self.kills, one.kills),
            (&mut self.suspensions, one.suspensions),
            (&mut self.cuts, one.cuts),
            (&mut self.stalls, one.stalls),
            (&mut self.farewells, one.farewells),
            (&mut self.forced, one.forced),
            (&mut self.takeovers, one.takeovers),
            (&mut self.outrun, one.outrun),
            (&mut self.anew, one.anew),
            (&mut self.checkpoints, one.checkpoints),
        ] {
            *sum += one;
        }
    }
}

struct Run {
    nodes: Nodes,
    random: SimRandom,
    ledger: Ledger,
    did: Did,
    /// Who owns the log, and since when it was well.
    owner: Option<(usize, u64)>,
    /// Its epoch.
    epoch: Option<u64>,
    /// When an operator last asked a process to take over, which it does when it can.
    forced_ns: Option<u64>,
    /// When what is wrong ends, by node; Kafka's stall.
    until: [u64; NODES],
    stalled_until: u64,
    at: i64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut run = Self {
            nodes: Nodes::new(seed, NODES),
            random: SimRandom::new(seed),
            ledger: Ledger::default(),
            did: Did::default(),
            owner: None,
            epoch: None,
            forced_ns: None,
            until: [0; NODES],
            stalled_until: 0,
            at: 1_000,
        };
        // The first owner has its first checkpoint before anything goes wrong.
        run.nodes.start(0);
        while run.owner.is_none() {
            run.step();
        }
        let life = run.nodes.life(0);
        run.ledger.begins(create_rule(life.db()).unwrap().0);
        life.owned().unwrap().log().drain(Duration::from_secs(10));
        for i in 1..NODES {
            run.nodes.start(i);
        }
        run
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A tenth of a second passes, and every node does what it has to.
    fn step(&mut self) {
        self.nodes.pass(STEP_MS);
        for i in 0..NODES {
            // Some are slow.
            if !self.one_in(6) {
                self.turn(i);
            }
        }
        self.require_one_owner();
    }

    fn turn(&mut self, i: usize) {
        for became in self.nodes.turn_of(i) {
            match became {
                Became::Owner => self.takes_over(i),
                Became::Ended(ended) => self.ended(i, &ended),
            }
        }
    }

    fn takes_over(&mut self, i: usize) {
        let now_ns = self.nodes.now_ns();
        let epoch = self.nodes.life(i).standby.node().standing().epoch;
        if epoch < self.epoch {
            // It was suspended before it read its claim back, and another node owned the log
            // meanwhile. Its first record will show that.
            self.did.outrun += 1;
            return;
        }
        self.epoch = epoch;
        if let Some((before, _)) = self.owner
            && before != i
            && self.owns(before)
        {
            self.require_ill(before);
        }
        self.owner = Some((i, now_ns));
        self.did.takeovers += 1;
        let db = self.nodes.life(i).db();
        let position = db.position().0;
        self.ledger.takes_over(position);
        if let Some(held) = Plain::of(db) {
            self.ledger.compare(position, &held, "a new owner");
        }
    }

    fn ended(&mut self, i: usize, ended: &Ended) {
        match ended {
            Ended::LoadAnew(_) => self.did.anew += 1,
            Ended::Stopped => {}
            ended => panic!("node {i}: {ended:?}"),
        }
        let is_owner = self.owner.is_some_and(|(owner, _)| owner == i);
        if is_owner && self.nodes.life(i).standby.tablet().is_some() {
            self.require_ill(i);
        }
        self.nodes.kill(i);
        self.until[i] = self.nodes.now_ns() + 500_000_000;
    }

    fn owns(&self, i: usize) -> bool {
        let life = self.nodes.lives[i].as_ref();
        life.is_some_and(|life| life.owned().is_some())
    }

    /// The owner `i` is deposed: it was not well lately, or an operator wanted it.
    fn require_ill(&self, i: usize) {
        let now_ns = self.nodes.now_ns();
        let since_ns = |at_ns: u64| now_ns.saturating_sub(at_ns);
        let is_wanted = self
            .forced_ns
            .is_some_and(|at_ns| since_ns(at_ns) < FORCED_NS);
        let well_ns = self.owner.map_or(0, |(_, well_ns)| since_ns(well_ns));
        if self.is_well(i) && !is_wanted {
            let well_ms = well_ns / 1_000_000;
            assert!(
                well_ns < WELL_NS,
                "node {i} is deposed, and was well for {well_ms} ms"
            );
        }
    }

    /// Whether a process runs and reaches Kafka, which takes records.
    fn is_well(&self, i: usize) -> bool {
        let life = self.nodes.lives[i].as_ref();
        life.is_some_and(|life| !life.is_suspended && !life.net.is_cut())
            && !self.nodes.stall.is_on()
    }

    fn require_one_owner(&self) {
        let answers = |i: &usize| {
            let tablet = self.nodes.lives[*i]
                .as_ref()
                .and_then(|life| life.standby.tablet());
            let lease = tablet.and_then(|tablet| tablet.log().lease());
            lease.is_some_and(|lease| lease.covers(lease.now_ns()))
        };
        let owners: Vec<usize> = (0..NODES).filter(answers).collect();
        assert!(owners.len() <= 1, "nodes {owners:?} answer as owners");
    }

    /// Clients of the owner, and of who takes itself for it.
    fn write(&mut self) {
        for i in 0..NODES {
            let is_there = self.nodes.lives[i]
                .as_ref()
                .is_some_and(|life| !life.is_suspended && life.owned().is_some());
            if !is_there {
                continue;
            }
            for _ in 0..self.below(6) {
                let command = self.command();
                self.ask(i, command);
            }
        }
    }

    fn ask(&mut self, i: usize, command: Command) {
        let life = self.nodes.life(i);
        let is_owner = self.owner.is_some_and(|(owner, _)| owner == i);
        match plain::run(life.db(), command) {
            Ok(Some((answer, position))) if is_owner => {
                self.ledger.ran(command, answer, position.0);
            }
            Ok(_) => {}
            Err(error) if is_of_lost_log(&error) => {}
            Err(error) => panic!("{command:?} at node {i}: {error}"),
        }
        self.did.commands += 1;
    }

    fn command(&mut self) -> Command {
        let key = self.below(KEYS.len() as u64) as usize;
        self.at += self.below(3) as i64;
        let back = if self.one_in(3) {
            self.below(300) as i64
        } else {
            0
        };
        let at = self.at - back;
        let value = self.below(100) as f64;
        let policy = match KEYS[key] {
            "sum" => DuplicatePolicy::Sum,
            "block" => DuplicatePolicy::Block,
            _ => DuplicatePolicy::Last,
        };
        match KEYS[key] {
            "count" => Command::Increment { key, at: self.at },
            "deleted" if self.one_in(10) => Command::Remove { key },
            "deleted" if self.one_in(3) => Command::DeleteRange {
                key,
                from: at - 20,
                to: at,
            },
            _ => Command::Add {
                key,
                at,
                value,
                policy,
            },
        }
    }

    /// What clients hear: of writes that are durable, and of reads at all nodes.
    fn answer(&mut self) {
        let now_ns = self.nodes.now_ns();
        for i in 0..NODES {
            let Some(life) = self.nodes.lives[i]
                .as_ref()
                .filter(|life| !life.is_suspended)
            else {
                continue;
            };
            let db = life.db();
            if let Some(tablet) = life.standby.tablet() {
                let lease = tablet.log().lease().unwrap();
                let asked_ns = lease.now_ns();
                let (position, held) = (db.position(), Plain::of(db));
                // Replies wait until what is in them is proven.
                if db.durable_position() < position || !lease.covers(asked_ns) {
                    continue;
                }
                // One that was deposed may, until its successor does.
                if let Some(held) = held {
                    self.ledger.owner_answers(position.0, &held);
                }
            } else if life.standby.node().takes_reads().is_ok() {
                let (position, held) = (db.applied().0, Plain::of(db));
                assert!(life.standby.node().takes_reads().is_ok(), "no time passed");
                if let Some(held) = held {
                    let bound_ns = STALENESS_MAX.as_nanos() as u64;
                    self.ledger
                        .follower_answers(position, &held, now_ns, bound_ns);
                }
            }
        }
        if let Some((i, _)) = self.owner
            && let Some(life) = &self.nodes.lives[i]
            && life.standby.tablet().is_some()
        {
            self.ledger
                .acknowledge(life.db().durable_position().0, now_ns);
        }
    }

    /// What an owner does beside its commands.
    fn keep(&mut self) {
        let Some((i, _)) = self.owner else { return };
        let Some(life) = self.nodes.lives[i].as_ref().filter(|_| self.is_well(i)) else {
            return;
        };
        let Some(tablet) = life.owned() else { return };
        let db = life.db();
        // Whoever waits for the log must not wait for the clock, which stands still.
        let is_held = !tablet.log().lease().unwrap().begins_in().is_zero();
        if is_held || tablet.log().queued_bytes() > 0 {
            return;
        }
        let done = match self.below(40) {
            0..4 => db.settle(),
            4..6 => db.flush(),
            6 => db.merge_step().map(drop),
            7 => {
                let saved = db.flush().map(|()| tablet.checkpoint(db));
                saved.map(|saved| match saved {
                    Ok(_) => self.did.checkpoints += 1,
                    Err(error) => {
                        let may_fail = error.is_temporary() || tablet.log().ended().is_some();
                        assert!(may_fail, "{error}");
                    }
                })
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            let may_fail = error.is_away() || is_of_lost_log(&error);
            assert!(may_fail, "{error}");
        }
    }
}

/// A run that panics is named by the number that repeats it.
fn named_run(seed: u64) -> Did {
    let outcome = std::panic::catch_unwind(|| run(seed));
    outcome.unwrap_or_else(|cause| {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause);
    })
}

fn run(seed: u64) -> Did {
    let mut run = Run::new(seed);
    let often = |most: u64| {
        if run.one_in(3) {
            0
        } else {
            run.below(most) as u32
        }
    };
    run.nodes.set_faults(Faults {
        unavailable: often(50),
        unanswered: often(50),
        lost: often(50),
        late: often(80),
        doubled: often(80),
        behind: often(80),
    });
    for _ in 0..STEPS {
        run.mend();
        run.harm();
        run.write();
        run.step();
        run.answer();
        run.keep();
    }
    run.quiet();
    run.compare()
}

#[test]
fn three_nodes_lose_nothing_whatever_happens_to_them() {
    let first = number("LATEWOOD_SEED");
    let rounds = number("LATEWOOD_ROUNDS").unwrap_or(if first.is_some() { 1 } else { RUNS });
    let next = AtomicU64::new(first.unwrap_or(1));
    let end = first.unwrap_or(1) + rounds;
    let all = Mutex::new(Did::default());
    // They wait more than they compute.
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(rounds) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let did = named_run(seed);
                    println!("seed {seed}: {did:?}");
                    all.lock().unwrap().add(&did);
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    println!("{all:?}");
    if rounds >= RUNS {
        for happened in [
            all.kills,
            all.suspensions,
            all.cuts,
            all.stalls,
            all.farewells,
            all.forced,
            all.anew,
            all.checkpoints,
        ] {
            assert!(happened > rounds / 4, "{all:?}");
        }
        assert!(all.takeovers > 2 * rounds, "{all:?}");
    }
}

/// Whether a node refuses or gives up what it does since it does not own the log.
fn is_of_lost_log(error: &latewood_engine::Error) -> bool {
    matches!(error.kind(), ErrorKind::Halted | ErrorKind::Unknown)
}
