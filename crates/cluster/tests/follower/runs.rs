//! Three nodes that follow and own one log in turn, with all that can go wrong in Kafka, against a
//! ledger of what clients were told and when.
//!
//! Each node follows first, claims in silence, after a farewell or for an operator, writes, saves checkpoints, trims,
//! says farewell, pauses and is killed; calls to Kafka are refused, lost, late, doubled or answered
//! with an old end, and now and then no broker is there for seconds. Time goes on with each call.
//!
//! Beside what [`crate::ledger`] checks at the end, at every moment:
//!
//! - a follower that is said to be fresh as of a moment applied all that counted then;
//! - an answer of a follower has all that was acknowledged longer ago than its bound;
//! - an answer of an owner has all that was acknowledged to anybody;
//! - no automatic claim deposes an owner that did not pause.
//!
//! A run follows from one number: `LATEWOOD_SEED=n cargo test -p latewood-cluster three_nodes` repeats run
//! n; `LATEWOOD_SOAK_SECONDS=s` lets `soak_three_nodes` go on for s seconds from there.

use super::truth::{Truth, at};
use crate::hooked::cluster;
use crate::ledger::life::{Ledger, claim, partition, recover};
use crate::ledger::mortal::{Mortal, Stage};
use crate::ledger::turns::{Chance, Turns};
use crate::ledger::{compare, number, soak};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::follower::{Event, Follower, Groups};
use latewood_cluster::kafka::Kafka;
use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::node::{Member, Node, NodeId, Role};
use latewood_cluster::owner::{Claimed, Error, Look, Owner, Stop};
use latewood_cluster::remote::Lease;
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RUNS: u64 = 100;
const NODES: usize = 3;
const CALLS: u64 = 4_000;
const STALENESS_MAX: Duration = Duration::from_secs(5);

struct Run {
    stage: Arc<Stage>,
    ledger: Arc<Mutex<Ledger>>,
    truth: Arc<Mutex<Truth>>,
    clock: Arc<SimClock>,
    figures: Mutex<Figures>,
}

#[derive(Debug, Default)]
struct Figures {
    fresh: u64,
    follower_answers: u64,
    owner_answers: u64,
    takeovers: u64,
    reloads: u64,
    pauses: u64,
}

struct Process<'a> {
    run: &'a Run,
    me: usize,
    chance: Chance,
    node: Arc<Node>,
    /// The writes of all groups that it applied.
    table: Vec<u64>,
    fresh_ns: u64,
    paused: bool,
}

fn stage(seed: u64, truth: &Arc<Mutex<Truth>>, clock: &Arc<SimClock>) -> Arc<Stage> {
    let mut chance = Chance(seed);
    let (kafka, _) = cluster(seed, &partition().topic);
    let mut often = |most: u64| match chance.below(3) {
        0 => 0,
        _ => chance.below(most) as u32,
    };
    kafka.set_faults(Faults {
        unavailable: often(50),
        unanswered: often(80),
        lost: often(80),
        late: often(120),
        doubled: often(120),
        behind: often(100),
    });
    let (truth, clock) = (Arc::clone(truth), Arc::clone(clock));
    let each = Box::new(move |kafka: &MemoryKafka| {
        let mut truth = truth.lock().expect("no panic before");
        truth.pass(kafka, &clock);
    });
    Arc::new(Stage {
        kafka,
        turns: Turns::new(seed ^ 1, NODES),
        calls_left: AtomicU64::new(CALLS),
        weather: Mutex::new(Chance(0)),
        each: Some(each),
    })
}

fn retry(cancel: &Arc<Cancel>) -> Retry {
    Retry {
        first: Duration::ZERO,
        longest: Duration::ZERO,
        cancel: Arc::clone(cancel),
    }
}

fn process(run: &Run, me: usize, seed: u64) -> Process<'_> {
    let mut chance = Chance(seed ^ (me as u64 + 1) << 32);
    let node = node(run, &mut chance);
    Process {
        run,
        me,
        chance,
        node,
        table: Vec::new(),
        fresh_ns: 0,
        paused: false,
    }
}

fn node(run: &Run, chance: &mut Chance) -> Arc<Node> {
    let mut id = [0; 20];
    id[..8].copy_from_slice(&chance.below(u64::MAX).to_be_bytes());
    let me = Member::new(NodeId(id));
    Arc::new(Node::new(me, STALENESS_MAX, Arc::clone(&run.clock) as _))
}

impl Process<'_> {
    fn run(mut self) {
        let run = self.run;
        let _present = run.stage.turns.join(self.me);
        while run.stage.calls_left.load(Ordering::Relaxed) > 0 {
            let ended = self.life();
            let mut ledger = run.ledger.lock().expect("no panic before");
            match ended {
                Ok(()) => {}
                Err(Error::Deposed { epoch, .. } | Error::Succeeded { epoch }) => {
                    ledger.deposed += 1;
                    let truth = run.truth.lock().expect("no panic before");
                    let is_living = !self.paused && truth.automatic.contains(&epoch);
                    assert!(!is_living, "an owner that did not pause was deposed");
                }
                Err(Error::Cancelled) => ledger.killed += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.run.clock.boottime_ns()
    }

    fn life(&mut self) -> Result<(), Error> {
        let cancel = Arc::new(Cancel::default());
        let calls = [100, 1_000, 100_000][self.chance.below(3) as usize];
        let kafka = Arc::new(Mortal {
            stage: Arc::clone(&self.run.stage),
            me: self.me,
            calls_left: AtomicU64::new(1 + self.chance.below(calls)),
            cancel: Arc::clone(&cancel),
        });
        let look = match Look::new(Arc::clone(&kafka) as _, partition(), None, retry(&cancel)) {
            Ok(look) => look,
            // A broker that has fallen behind shows a part.
            Err(Error::Stopped(Stop::Beginning { .. } | Stop::Missing { .. })) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.node = node(self.run, &mut self.chance);
        (self.fresh_ns, self.paused) = (0, false);
        self.table = match look.checkpoint() {
            None => Vec::new(),
            Some((_, named)) => {
                let ledger = self.run.ledger.lock().expect("no panic before");
                ledger.manifests[&named.manifest].clone()
            }
        };
        match self.follow(look)? {
            Some(claimed) => self.own(claimed, &kafka),
            None => Ok(()),
        }
    }

    /// Until it owns the log, or must load a newer checkpoint.
    fn follow(&mut self, look: Look) -> Result<Option<Claimed>, Error> {
        let claimant = Claimant {
            nonce: u128::from(self.chance.below(u64::MAX)).to_le_bytes(),
            node: self.me as u32,
            address: String::new(),
        };
        let clock = Arc::clone(&self.run.clock) as Arc<dyn Clock>;
        let (mut follower, speaker) =
            Follower::start(look, claimant, Arc::clone(&self.node), clock)?;
        self.node.change(|standing| standing.role = Role::Follower);
        loop {
            if self.chance.below(2) == 0 {
                speaker.step();
            }
            if self.chance.below(2_000) == 0 {
                follower.force();
            }
            match follower.next() {
                Ok(Event::Claimed(claimed)) => return Ok(Some(*claimed)),
                Ok(Event::Groups(groups)) => self.apply(&groups),
                Ok(_) => {}
                Err(Error::Stopped(Stop::Trimmed { .. })) => {
                    self.run.figures.lock().expect("no panic before").reloads += 1;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            self.answer_as_follower();
        }
    }

    fn apply(&mut self, groups: &Groups) {
        let (values, rest) = groups.bytes.as_chunks::<8>();
        assert!(rest.is_empty() && values.len() as u64 == groups.count);
        for (value, at) in values.iter().zip(groups.first as usize - 1..) {
            let value = u64::from_le_bytes(*value);
            match self.table.get(at) {
                Some(known) => assert_eq!(*known, value),
                None => {
                    assert_eq!(self.table.len(), at, "a group is missing");
                    self.table.push(value);
                }
            }
        }
    }

    fn answer_as_follower(&mut self) {
        let truth = self.run.truth.lock().expect("no panic before");
        let mut figures = self.run.figures.lock().expect("no panic before");
        let (now_ns, next) = (self.now_ns(), self.table.len() as u64 + 1);
        let Some(behind) = self.node.behind() else {
            return;
        };
        let fresh_ns = now_ns - behind.as_nanos() as u64;
        if fresh_ns > self.fresh_ns {
            self.fresh_ns = fresh_ns;
            figures.fresh += 1;
            assert!(next >= at(&truth.counted, fresh_ns), "not fresh");
        }
        if self.node.takes_reads().is_ok() {
            figures.follower_answers += 1;
            let bound_ns = now_ns.saturating_sub(STALENESS_MAX.as_nanos() as u64);
            assert!(next >= at(&truth.acknowledged, bound_ns), "stale");
        }
    }

    fn own(&mut self, claimed: Claimed, kafka: &Mortal) -> Result<(), Error> {
        let lease = Lease::new(&claimed, Arc::clone(&self.run.clock) as _);
        let mut owner = claimed.owner;
        assert_eq!(self.table.len() as u64 + 1, owner.state().sequence);
        assert_eq!(owner.history().count(), 0);
        self.run.figures.lock().expect("no panic before").takeovers += 1;
        let mut ledger = self.run.ledger.lock().expect("no panic before");
        ledger.recovered.push(self.table.clone());
        drop(ledger);
        for _ in 0..self.chance.below(400) {
            if owner.is_hello_due() {
                owner.say_hello();
            }
            let sent = lease.send();
            let may_write = lease.begins_in().is_zero();
            match self.chance.below(20) {
                0 if may_write => self.checkpoint(&mut owner, kafka)?,
                1..6 if may_write => self.write(&mut owner)?,
                6 if self.chance.below(20) == 0 => {
                    self.pause();
                    self.answer_as_owner(&lease);
                    continue;
                }
                _ => drop(owner.beat()?),
            }
            lease.renew(sent);
            self.answer_as_owner(&lease);
        }
        match self.chance.below(3) {
            0 => {
                lease.end();
                owner.farewell()?;
                self.run.ledger.lock().expect("no panic before").farewells += 1;
            }
            // It goes on as a process that was killed.
            _ => self.run.ledger.lock().expect("no panic before").killed += 1,
        }
        Ok(())
    }

    /// Others go on meanwhile.
    fn pause(&mut self) {
        self.paused = true;
        self.run.figures.lock().expect("no panic before").pauses += 1;
        for _ in 0..self.chance.below(2_000) {
            if self.run.stage.calls_left.load(Ordering::Relaxed) > 0 {
                self.run.stage.turns.pass(self.me);
            }
        }
    }

    fn answer_as_owner(&self, lease: &Lease) {
        if !lease.covers(lease.now_ns()) {
            return;
        }
        let truth = self.run.truth.lock().expect("no panic before");
        self.run
            .figures
            .lock()
            .expect("no panic before")
            .owner_answers += 1;
        let acknowledged = at(&truth.acknowledged, u64::MAX);
        assert!(
            self.table.len() as u64 + 1 >= acknowledged,
            "a stale answer"
        );
    }

    fn write(&mut self, owner: &mut Owner) -> Result<(), Error> {
        let sequence = self.table.len() as u64 + 1;
        let groups = 1 + self.chance.below(3);
        let mut ledger = self.run.ledger.lock().expect("no panic before");
        let values: Vec<u64> = (ledger.sent..ledger.sent + groups).collect();
        ledger.sent += groups;
        drop(ledger);
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        let payload: Vec<u8> = bytes.collect();
        let appended = owner.append(sequence, groups as u32, &payload);
        let mut ledger = self.run.ledger.lock().expect("no panic before");
        match &appended {
            Ok(_) => {
                let told = values.iter().copied().zip(sequence..);
                ledger.acknowledged.extend(told);
                self.table.extend(values);
                let mut truth = self.run.truth.lock().expect("no panic before");
                let next = self.table.len() as u64 + 1;
                truth.acknowledged.push((self.now_ns(), next));
            }
            Err(Error::Deposed { .. }) => ledger.denied.extend(values),
            Err(_) => {}
        }
        appended.map(drop)
    }

    fn checkpoint(&mut self, owner: &mut Owner, kafka: &Mortal) -> Result<(), Error> {
        let (first, last) = (owner.begin().1.sequence, owner.state().sequence);
        let sequence = first + self.chance.below(last - first + 1);
        let covered = self.table[..sequence as usize - 1].to_vec();
        let mut ledger = self.run.ledger.lock().expect("no panic before");
        let name = format!("m{}", ledger.manifests.len());
        ledger.manifests.insert(name.clone(), covered);
        drop(ledger);
        owner.checkpoint(&name, [0; 32], 1, sequence)?;
        // At once: others may have to load a checkpoint.
        if kafka.trim(&partition(), owner.begin().0).is_ok() {
            self.run.ledger.lock().expect("no panic before").trims += 1;
        }
        Ok(())
    }
}

fn run(seed: u64) -> (Ledger, Figures) {
    let clock = Arc::new(SimClock::default());
    clock.advance_ms(1_000);
    let truth = Arc::new(Mutex::new(Truth::new(seed ^ 2)));
    let run = Run {
        stage: stage(seed, &truth, &clock),
        ledger: Arc::default(),
        truth,
        clock,
        figures: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let processes = (0..NODES).map(|me| {
            let process = process(&run, me, seed);
            scope.spawn(|| process.run())
        });
        let processes: Vec<_> = processes.collect();
        for process in processes {
            if let Err(cause) = process.join() {
                std::panic::resume_unwind(cause);
            }
        }
    });
    let kafka = &run.stage.kafka;
    kafka.set_away(false);
    kafka.set_faults(Faults::default());
    kafka.land();
    let claimed = claim(Arc::clone(kafka) as _, 1, Arc::default()).expect("nothing is in the way");
    let table = recover(&claimed, &run.ledger).expect("nothing is in the way");
    let ledger = std::mem::take(&mut *run.ledger.lock().expect("no panic before"));
    compare(&table, &ledger);
    (ledger, run.figures.into_inner().expect("no panic before"))
}

fn named_run(seed: u64) -> (Ledger, Figures) {
    let outcome = std::panic::catch_unwind(|| run(seed));
    outcome.unwrap_or_else(|cause| {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause);
    })
}

#[test]
fn three_nodes_tell_the_truth() {
    if let Some(seed) = number("LATEWOOD_SEED") {
        println!("{:?}", named_run(seed));
        return;
    }
    let (mut all, mut acknowledged) = (Figures::default(), 0);
    let (mut killed, mut deposed) = (0, 0);
    for seed in 1..=RUNS {
        let (ledger, one) = named_run(seed);
        acknowledged += ledger.acknowledged.len();
        killed += ledger.killed;
        deposed += ledger.deposed;
        all.fresh += one.fresh;
        all.follower_answers += one.follower_answers;
        all.owner_answers += one.owner_answers;
        all.takeovers += one.takeovers;
        all.reloads += one.reloads;
        all.pauses += one.pauses;
    }
    println!(
        "seeds 1 to {RUNS}: {acknowledged} groups acknowledged, {killed} killed, {deposed} deposed, {all:?}"
    );
    // Otherwise the runs do not show what they are meant to.
    for happened in [all.takeovers, all.reloads, all.pauses, killed, deposed] {
        assert!(happened > RUNS / 10, "{all:?}");
    }
    for happened in [all.fresh, all.follower_answers, all.owner_answers] {
        assert!(happened > 10 * RUNS, "{all:?}");
    }
}

#[test]
fn soak_three_nodes() {
    soak(1_000_000, 3, named_run);
}
