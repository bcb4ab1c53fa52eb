//! Followers over a Kafka in memory, call by call.

use crate::hooked::{Hooked, cluster};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::follower::{Event, Follower, Speaker};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::node::{Addresses, Elsewhere, Member, Node, NodeId, Role};
use latewood_cluster::owner::{Claimed, Error, Look, Owner, Received, Stop};
use latewood_cluster::remote::{Bounds, LEASE, Lease, TabletLog};
use latewood_cluster::retry::Retry;
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use latewood_engine::{Position, RemoteLog};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

struct World {
    kafka: Arc<MemoryKafka>,
    partition: Partition,
    clock: Arc<SimClock>,
}

/// A node that follows.
struct Follows {
    follower: Follower,
    speaker: Speaker,
    node: Arc<Node>,
    clock: Arc<SimClock>,
}

fn retry() -> Retry {
    Retry {
        first: Duration::ZERO,
        longest: Duration::ZERO,
        cancel: Arc::default(),
    }
}

fn claimant(node: u32) -> Claimant {
    Claimant {
        nonce: [node as u8; 16],
        node,
        address: format!("n{node}:6379"),
    }
}

fn node(id: u8, clock: &Arc<SimClock>) -> Arc<Node> {
    let me = Member {
        addresses: Addresses {
            redis: format!("n{id}:6379"),
            ..Addresses::default()
        },
        version: "1".to_owned(),
        ..Member::new(NodeId([id; 20]))
    };
    Arc::new(Node::new(
        me,
        Duration::from_secs(5),
        Arc::clone(clock) as _,
    ))
}

impl World {
    fn new() -> Self {
        let (kafka, partition) = cluster(1, "t");
        let clock = Arc::new(SimClock::default());
        clock.advance_ms(1_000);
        Self {
            kafka,
            partition,
            clock,
        }
    }

    /// By a start that asks nobody.
    fn claim(&self, node: u32) -> Claimed {
        let kafka = Arc::clone(&self.kafka) as _;
        Owner::claim(
            kafka,
            self.partition.clone(),
            None,
            &claimant(node),
            retry(),
        )
        .unwrap()
    }

    fn follow(&self, id: u8) -> Follows {
        self.follow_through(Arc::clone(&self.kafka) as _, id)
    }

    fn follow_through(&self, kafka: Arc<dyn Kafka>, id: u8) -> Follows {
        let node = node(id, &self.clock);
        let look = Look::new(kafka, self.partition.clone(), None, retry()).unwrap();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let started = Follower::start(look, claimant(id.into()), Arc::clone(&node), clock);
        let (follower, speaker) = started.unwrap();
        Follows {
            follower,
            speaker,
            node,
            clock: Arc::clone(&self.clock),
        }
    }
}

impl Follows {
    /// All that is there, in words, until nothing is or the log is claimed.
    fn events(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            events.push(match self.follower.next().unwrap() {
                Event::Idle => return events,
                Event::Groups(groups) => {
                    let text = String::from_utf8(groups.bytes).unwrap();
                    format!("{text} {}+{}", groups.first, groups.count)
                }
                Event::Checkpoint { offset, checkpoint } => {
                    format!("checkpoint {} at {offset}", checkpoint.manifest)
                }
                Event::Epoch { epoch, by } => format!("epoch {epoch} of {}", by.node),
                Event::Farewell => "farewell".to_owned(),
                Event::Claimed(_) => panic!("claimed"),
            });
        }
    }

    /// Loaded, and all that is there is read.
    fn settle(&mut self) {
        self.node.change(|standing| standing.role = Role::Follower);
        for _ in 0..3 {
            self.speaker.step();
            self.events();
            self.clock.advance_ms(100);
        }
    }

    fn next_claimed(&mut self) -> Option<Box<Claimed>> {
        loop {
            match self.follower.next().unwrap() {
                Event::Claimed(claimed) => return Some(claimed),
                Event::Idle => return None,
                _ => {}
            }
        }
    }

    /// Time passes until it owns the log; how long that takes.
    fn until_claimed(&mut self) -> (Claimed, u64) {
        for after_ms in (0..60_000).step_by(100) {
            self.speaker.step();
            if let Some(claimed) = self.next_claimed() {
                return (*claimed, after_ms);
            }
            self.clock.advance_ms(100);
        }
        panic!("it does not claim");
    }
}

fn add(owner: &mut Owner, payload: &[u8]) {
    let sequence = owner.state().sequence;
    owner.append(sequence, 1, payload).unwrap();
}

#[test]
fn what_counts_is_handed_over_in_order() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a");
    add(&mut owner, b"b");
    owner.checkpoint("m", [0; 32], 1, 2).unwrap();
    owner.trimmer().run().unwrap();
    add(&mut owner, b"c");
    let mut one = world.follow(2);
    assert_eq!(one.follower.checkpoint().unwrap().1.manifest, "m");
    // From the first group that the checkpoint needs on, read once.
    assert_eq!(one.events(), ["bc 2+2"]);
    assert!(one.events().is_empty());
    add(&mut owner, b"d");
    add(&mut owner, b"e");
    world.kafka.insert(&world.partition, b"not an envelope");
    owner.checkpoint("n", [0; 32], 1, 5).unwrap();
    world.kafka.leave_out(&world.partition, 3);
    add(&mut owner, b"f");
    let mut next = world.claim(3).owner;
    add(&mut next, b"g");
    next.farewell().unwrap();
    let wanted = [
        "de 4+2",
        "checkpoint n at 8",
        "f 6+1",
        "epoch 13 of 3",
        "g 7+1",
        "farewell",
    ];
    assert_eq!(one.events(), wanted);
    assert_eq!(one.follower.checkpoint().unwrap().0, 8);
    assert_eq!(one.follower.counters().malformed, 1);
}

#[test]
fn a_follower_is_fresh_once_all_before_its_hello_is_applied() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let mut one = world.follow(2);
    one.events();
    add(&mut owner, b"a");
    one.speaker.step();
    add(&mut owner, b"b");
    world.clock.advance_ms(2_000);
    assert!(matches!(one.follower.next(), Ok(Event::Groups(_))));
    assert_eq!(
        one.node.behind(),
        None,
        "it has not said yet that it applied them"
    );
    assert!(matches!(one.follower.next(), Ok(Event::Groups(_))));
    assert_eq!(one.node.behind(), Some(Duration::from_secs(2)));
    one.events();
    world.clock.advance_ms(1_000);
    assert_eq!(one.node.behind(), Some(Duration::from_secs(3)));
    // The next one says what it applied.
    one.speaker.step();
    one.events();
    assert_eq!(one.node.behind(), Some(Duration::ZERO));
    let standing = one.node.standing();
    assert_eq!((standing.members[0].applied, standing.epoch), (2, Some(0)));
}

#[test]
fn a_killed_owner_is_followed_without_a_second_reading() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    owner.checkpoint("m", [7; 32], 5, 1).unwrap();
    add(&mut owner, b"a");
    add(&mut owner, b"b");
    let mut one = world.follow(2);
    one.settle();
    let (mut claimed, after_ms) = one.until_claimed();
    assert!((2_500..4_000).contains(&after_ms), "{after_ms}");
    let deposed = claimed.deposed.clone().unwrap();
    assert_eq!(
        (deposed.epoch, deposed.farewell, deposed.by),
        (0, false, Some(claimant(1)))
    );
    // Its lease was over long before.
    assert!(matches!(deposed.answering, Some(Received::At(at_ns)) if at_ns < 2_000_000_000));
    assert_eq!(claimed.checkpoint.as_ref().unwrap().manifest, "m");
    assert_eq!(
        (claimed.owner.state().sequence, claimed.applied_bytes),
        (3, 2)
    );
    assert_eq!(claimed.owner.history().count(), 0);
    assert!(matches!(one.follower.next(), Err(Error::Cancelled)));
    assert!(!one.speaker.step());
    add(&mut claimed.owner, b"c");
    let next = world.claim(3);
    let groups = next.owner.history().map(|data| data.unwrap().payload);
    assert_eq!(groups.collect::<Vec<_>>(), [b"a", b"b", b"c"]);
}

#[test]
fn a_log_goes_on_with_its_new_owner() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a");
    let (mut one, mut two) = (world.follow(2), world.follow(3));
    one.settle();
    two.settle();
    owner.farewell().unwrap();
    let (claimed, after_ms) = one.until_claimed();
    assert!(after_ms <= 200, "{after_ms}");
    let lease = Lease::new(&claimed, Arc::clone(&world.clock) as _);
    assert_eq!(lease.begins_in(), Duration::ZERO, "nobody answers any more");
    let (bounds, on_end) = (Bounds::default(), Box::new(|_: &_| {}));
    let log = TabletLog::start(claimed, bounds, Some(lease), Arc::default(), on_end).unwrap();
    assert_eq!(log.first().unwrap(), Some(Position(1)));
    assert_eq!(
        log.replay(&mut |_| panic!("all is applied")).unwrap(),
        Position(2)
    );
    assert_eq!((log.durable(), log.log_bytes()), (Position(1), 1));
    log.append(Position(2), b"b").unwrap();
    log.sync_to(Position(2)).unwrap();
    assert_eq!(log.log_bytes(), 2);
    let owner = Elsewhere::Owner(one.node.standing().members[0].addresses.clone());
    // Both know who owns the log, and the owner knows the other.
    assert_eq!(two.events(), ["farewell", "epoch 7 of 2", "b 2+1"]);
    assert_eq!(two.node.takes_writes(), Err(owner));
    let standing = one.node.standing();
    assert_eq!(standing.owner, Some(one.node.id()));
    let members: Vec<_> = standing
        .members
        .iter()
        .map(|member| member.id.0[0])
        .collect();
    assert_eq!(members, [2, 3]);
    log.close().unwrap();
    assert_eq!(two.events(), ["farewell"]);
    let nobody = Elsewhere::Nobody("no node owns the log at the moment");
    assert_eq!(two.node.takes_writes(), Err(nobody));
}

#[test]
fn a_new_log_is_claimed_at_once() {
    let world = World::new();
    let mut one = world.follow(1);
    one.node.change(|standing| standing.role = Role::Follower);
    let (claimed, after_ms) = one.until_claimed();
    assert!(after_ms <= 300, "{after_ms}");
    assert_eq!((claimed.deposed, claimed.checkpoint), (None, None));
}

#[test]
fn an_owner_that_answers_is_waited_for_after_a_claim_by_force() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let mut one = world.follow(2);
    one.settle();
    owner.tick().unwrap();
    one.follower.force();
    let (claimed, after_ms) = one.until_claimed();
    assert!(after_ms <= 200, "{after_ms}");
    let lease = Lease::new(&claimed, Arc::clone(&world.clock) as _);
    let left = lease.begins_in();
    assert!(
        left > LEASE - Duration::from_millis(300) && left <= LEASE + Duration::from_millis(100)
    );
    assert!(owner.tick().unwrap_err().is_succession());
}

#[test]
fn records_that_were_trimmed_are_not_passed_over() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let mut one = world.follow(2);
    one.events();
    add(&mut owner, b"a");
    add(&mut owner, b"b");
    owner.checkpoint("m", [0; 32], 1, 3).unwrap();
    owner.trimmer().run().unwrap();
    let (needed, begin) = (1, 2);
    let trimmed = Error::from(Stop::Trimmed { needed, begin });
    assert_eq!(one.follower.next().unwrap_err(), trimmed);
    assert_eq!(one.follower.next().unwrap_err(), trimmed);
    assert!(!one.speaker.step(), "it says nothing any more");
    let mut again = world.follow(2);
    assert_eq!(again.events(), ["b 2+1"]);
}

#[test]
fn a_topic_that_was_made_again_is_noticed() {
    let world = World::new();
    add(&mut world.claim(1).owner, b"a");
    let mut one = world.follow(2);
    one.events();
    world.kafka.recreate("t");
    assert_eq!(one.follower.next().unwrap_err(), Stop::Recreated.into());
}

#[test]
fn reading_goes_on_while_an_append_hangs() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let (hangs, is_hanging) = channel();
    let (go, may_go) = channel::<()>();
    let kafka = Hooked::appends(&world.kafka, move |append| {
        hangs.send(()).unwrap();
        let _ = may_go.recv();
        append()
    });
    let Follows {
        mut follower,
        speaker,
        ..
    } = world.follow_through(kafka, 2);
    std::thread::scope(|scope| {
        scope.spawn(|| speaker.run());
        is_hanging.recv().unwrap();
        add(&mut owner, b"a");
        assert!(matches!(follower.next(), Ok(Event::Groups(_))));
        drop(go);
        drop(follower);
    });
}

#[test]
fn brokers_that_are_away_are_waited_for() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let mut one = world.follow(2);
    one.settle();
    world.kafka.set_away(true);
    for _ in 0..100 {
        one.speaker.step();
        assert!(one.events().is_empty());
        world.clock.advance_ms(100);
    }
    assert!(one.node.behind() > Some(Duration::from_secs(9)));
    world.kafka.set_away(false);
    owner.tick().unwrap();
    world.clock.advance_ms(500);
    one.speaker.step();
    assert!(one.events().is_empty());
    assert!(one.node.behind() < Some(Duration::from_secs(1)));
}

#[test]
fn what_exceeds_the_memory_of_a_look_is_read_again() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let payload = vec![b'a'; 1 << 20 >> 1];
    for _ in 0..140 {
        add(&mut owner, &payload);
    }
    let mut one = world.follow(2);
    add(&mut owner, b"a");
    let mut next = 1;
    loop {
        match one.follower.next().unwrap() {
            Event::Groups(groups) => {
                assert_eq!(groups.first, next);
                next += groups.count;
            }
            Event::Idle => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next, owner.state().sequence);
    one.settle();
    owner.farewell().unwrap();
    let (claimed, _) = one.until_claimed();
    assert_eq!(claimed.applied_bytes, 140 * payload.len() as u64 + 1);
}
