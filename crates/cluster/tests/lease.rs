//! Leases of owners, record by record: each append waits until the test lets it go.

use crate::hooked::{Hooked, cluster};
use latewood_cluster::envelope::{Body, Claimant, Envelope};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::owner::{Claimed, Owner};
use latewood_cluster::remote::{Bounds, Complete, LEASE, Lease, Shown, TabletLog};
use latewood_cluster::retry::Retry;
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use latewood_engine::{Position, RemoteLog};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const LEASE_MS: u32 = LEASE.as_millis() as u32;

struct World {
    kafka: Arc<MemoryKafka>,
    partition: Partition,
    clock: Arc<SimClock>,
}

/// A node whose records go one by one.
struct Node {
    log: Arc<TabletLog>,
    lease: Arc<Lease>,
    begun: Receiver<()>,
    go: Sender<()>,
}

/// What the test lets go, one by one.
#[derive(Clone, Copy)]
enum Held {
    Records,
    /// The records are in the log by then.
    Answers,
}

impl World {
    fn new() -> Self {
        let (kafka, partition) = cluster(1, "t");
        let clock = Arc::default();
        Self {
            kafka,
            partition,
            clock,
        }
    }

    fn claim(&self, node: u32, kafka: Arc<dyn Kafka>) -> Claimed {
        let claimant = Claimant {
            nonce: u128::from(node).to_le_bytes(),
            node,
            address: format!("n{node}:6379"),
        };
        let retry = Retry::new(Arc::default());
        Owner::claim(kafka, self.partition.clone(), None, &claimant, retry).unwrap()
    }

    /// A node that owns the log, and whose first record is proven.
    fn lead(&self, node: u32) -> Node {
        let node = self.start(node);
        node.is_sent();
        node.proves();
        node
    }

    /// A node whose records wait before they are sent.
    fn start(&self, node: u32) -> Node {
        self.start_held(node, Held::Records)
    }

    fn start_held(&self, node: u32, held: Held) -> Node {
        let (begun, is_begun) = channel();
        let (go, may_go) = channel();
        // Appends wait, once it is shut.
        let shut = Arc::new(AtomicBool::new(false));
        let is_shut = Arc::clone(&shut);
        let gate = Hooked::appends(&self.kafka, move |append| {
            let early = matches!(held, Held::Answers).then(append);
            if is_shut.load(Ordering::SeqCst) {
                // At the end of a test nobody looks, and all go.
                let _ = begun.send(());
                let _ = may_go.recv();
            }
            early.unwrap_or_else(append)
        });
        let claimed = self.claim(node, gate);
        shut.store(true, Ordering::SeqCst);
        let lease = Lease::new(&claimed, Arc::clone(&self.clock) as _);
        let (bounds, on_end) = (Bounds::default(), Box::new(|_: &_| {}));
        let log = TabletLog::start(claimed, bounds, Some(lease), Arc::default(), on_end).unwrap();
        Node {
            lease: Arc::clone(log.lease().unwrap()),
            log,
            begun: is_begun,
            go,
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.boottime_ns()
    }
}

impl Node {
    /// Returns when a record is on its way.
    fn is_sent(&self) {
        self.begun.recv().unwrap();
    }

    /// Has the record that is on its way arrive, and returns when the next one is.
    fn proves(&self) {
        self.go.send(()).unwrap();
        self.is_sent();
    }

    /// Lets all records go and ends with a farewell.
    fn close(&mut self) {
        self.go = channel().0;
        self.log.close().unwrap();
    }

    /// A read that is done at once, and trusts no clock.
    fn reads_strictly(&self) -> Shown {
        Shown {
            at_ns: self.lease.now_ns(),
            position: 0,
            record: self.lease.next_record(),
        }
    }

    /// Whether a snapshot of now may be answered.
    fn answers(&self) -> bool {
        self.lease.covers(self.lease.now_ns())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.go = channel().0;
        let _ = self.log.close();
    }
}

/// Whether a lease comes that covers the moment.
fn comes(lease: &Lease, at_ns: u64) -> bool {
    let shown = Shown {
        at_ns,
        ..Shown::default()
    };
    comes_to_show(lease, shown)
}

fn comes_to_show(lease: &Lease, shown: Shown) -> bool {
    let runtime = latewood_tls::runtime().unwrap();
    runtime.block_on(lease.comes_to_show(shown))
}

#[test]
fn an_idle_owner_answers_from_its_first_record_on_and_renews_its_lease() {
    let world = World::new();
    let node = world.start(1);
    node.is_sent();
    assert!(!node.answers(), "nothing is proven");
    node.proves();
    assert!(node.answers());
    world.clock.advance_ms(LEASE_MS - 1);
    assert!(node.answers());
    let at_ns = world.now_ns();
    world.clock.advance_ms(1);
    assert!(!node.answers());
    assert!(node.lease.covers(at_ns), "that snapshot was taken in time");
    // Nobody wrote: the second record was sent before the first lease was over.
    node.proves();
    assert!(!node.answers(), "it was sent when the first was proven");
    node.proves();
    assert!(node.answers());
    assert!(comes(&node.lease, world.now_ns()));
}

#[test]
fn a_lease_counts_from_the_sending_of_any_record() {
    let world = World::new();
    let node = world.start(1);
    node.is_sent();
    world.clock.advance_ms(LEASE_MS);
    // Half of the lease passes before the write is sent, the other half until it is proven.
    node.log.append(Position(1), b"group").unwrap();
    node.proves();
    assert!(
        !node.answers(),
        "the first record took as long as the lease"
    );
    world.clock.advance_ms(LEASE_MS - 1);
    node.proves();
    assert!(node.log.durable() >= Position(1), "the write went first");
    assert!(node.answers());
    world.clock.advance_ms(1);
    assert!(!node.answers());
}

#[test]
fn a_deposed_node_answers_nothing_any_more() {
    let world = World::new();
    let node = world.lead(1);
    let kafka = Arc::clone(&world.kafka) as Arc<dyn Kafka>;
    world.claim(2, kafka);
    assert!(node.answers(), "for the rest of its lease");
    node.go.send(()).unwrap();
    assert!(!comes(
        &node.lease,
        world.now_ns() + LEASE.as_nanos() as u64
    ));
    assert!(!node.answers(), "it knows");
}

#[test]
fn a_new_owner_answers_when_the_lease_of_the_one_before_is_over() {
    let world = World::new();
    let old = world.lead(1);
    let mut new = world.lead(2);
    assert!(old.answers() && !new.answers());
    world.clock.advance_ms(LEASE_MS);
    new.proves();
    new.proves();
    assert!(!old.answers() && !new.answers(), "clocks differ a little");
    world.clock.advance_ms(100);
    assert!(new.answers());
    // After a farewell nobody has to be waited for: what was written shows that of those before.
    new.log.append(Position(1), b"group").unwrap();
    new.close();
    assert!(!new.answers());
    let last = world.lead(3);
    assert!(last.answers());
}

#[test]
fn a_farewell_ends_the_answers_of_its_own_owner_alone() {
    let world = World::new();
    let old = world.lead(1);
    let mut new = world.lead(2);
    new.close();
    let last = world.lead(3);
    assert!(old.answers() && !last.answers());
    world.clock.advance_ms(LEASE_MS + 100);
    last.proves();
    last.proves();
    assert!(!old.answers() && last.answers());
}

#[test]
fn a_new_owner_writes_when_the_one_before_answers_no_more() {
    let world = World::new();
    let old = world.lead(1);
    let new = world.start(2);
    new.log.append(Position(1), b"group").unwrap();
    let complete = Complete {
        manifest: "m".to_owned(),
        sha256: [0; 32],
        bytes: 1,
        sequence: 1,
    };
    std::thread::scope(|scope| {
        let saved = scope.spawn(|| new.log.checkpoint(complete));
        for _ in 0..3 {
            new.is_sent();
            new.go.send(()).unwrap();
        }
        new.is_sent();
        assert!(old.answers());
        // It says that it lives, and no more.
        let records = world.kafka.records(&world.partition);
        let counted = records.iter().skip_while(|(offset, _)| *offset < 3);
        let is_tick = |value: &[u8]| {
            let record = Envelope::decode(value).unwrap();
            matches!(
                record,
                Envelope::Record {
                    body: Body::Tick,
                    ..
                }
            )
        };
        assert!(counted.clone().count() == 3 && counted.clone().all(|(_, value)| is_tick(value)));
        world.clock.advance_ms(LEASE_MS + 100);
        new.go.send(()).unwrap();
        new.proves();
        new.proves();
        new.go.send(()).unwrap();
        saved.join().unwrap().unwrap();
        new.log.sync_to(Position(1)).unwrap();
    });
    assert!(!old.answers());
}

#[test]
fn what_is_written_is_shown_once_it_is_in_the_log() {
    let world = World::new();
    let node = world.start(1);
    node.is_sent();
    node.log.append(Position(1), b"group").unwrap();
    node.proves();
    let at_ns = world.now_ns();
    let shows = |position| {
        let record = 0;
        node.lease.shows(&Shown {
            at_ns,
            position,
            record,
        })
    };
    assert!(shows(0) && !shows(1), "a kill would lose it");
    node.proves();
    assert!(node.log.durable() >= Position(1));
    assert!(shows(1) && !shows(2));
}

#[test]
fn a_strict_read_of_a_node_that_was_deposed_is_not_answered_though_its_clock_stood_still() {
    let world = World::new();
    let node = world.start_held(1, Held::Answers);
    // It is suspended after its record was sent, and its clock with it.
    node.is_sent();
    world.claim(2, Arc::clone(&world.kafka) as _);
    let read = node.reads_strictly();
    node.go.send(()).unwrap();
    assert!(comes(&node.lease, read.at_ns), "by the clock it is");
    assert!(!node.lease.shows(&read), "that record was sent before");
    node.go.send(()).unwrap();
    assert!(!comes_to_show(&node.lease, read));
}

#[test]
fn strict_reads_share_the_next_record() {
    let world = World::new();
    let node = world.start(1);
    node.is_sent();
    let reads = [(); 3].map(|()| node.reads_strictly());
    let lease = &*node.lease;
    std::thread::scope(|scope| {
        let waiting = reads.map(|read| scope.spawn(move || comes_to_show(lease, read)));
        node.proves();
        assert!(node.answers() && reads.iter().all(|read| !lease.shows(read)));
        node.proves();
        assert!(waiting.into_iter().all(|read| read.join().unwrap()));
    });
    // The claim, the record before the reads and theirs; the next one waits.
    assert_eq!(world.kafka.records(&world.partition).len(), 3);
}

#[test]
fn a_record_is_asked_for_once() {
    let clock = Arc::<SimClock>::default();
    let lease = Lease::after(Duration::ZERO, Duration::from_secs(24 * 3600), clock);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    lease.on_ask(Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    lease.renew(lease.send());
    assert!(comes(&lease, lease.now_ns()) && !lease.is_asked());
    let read = Shown {
        record: lease.next_record(),
        ..Shown::default()
    };
    std::thread::scope(|scope| {
        let waiting = [(); 3].map(|()| scope.spawn(|| comes_to_show(&lease, read)));
        while !lease.is_asked() {
            std::thread::yield_now();
        }
        let sent = lease.send();
        assert!(!lease.is_asked(), "it is on its way");
        lease.renew(sent);
        assert!(waiting.into_iter().all(|read| read.join().unwrap()));
    });
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
