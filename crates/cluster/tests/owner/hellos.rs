//! HELLOs between the records of an owner.

use super::{World, add, claimant, history, retry};
use crate::hooked::Hooked;
use latewood_cluster::envelope::{Envelope, Hello};
use latewood_cluster::kafka::Kafka;
use latewood_cluster::node::{Addresses, Member, Node, NodeId};
use latewood_cluster::owner::{Attendance, Look, Stop};
use latewood_cluster::presence::{MEMBER_FOR, Presence};
use latewood_engine::io::sim::SimClock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn hello(id: u8) -> Vec<u8> {
    let by = Member {
        addresses: Addresses {
            redis: format!("n{id}:6379"),
            ..Addresses::default()
        },
        version: "1".to_owned(),
        applied: 5,
        is_caught_up: true,
        digests: [1, 2],
        ..Member::new(NodeId([id; 20]))
    };
    let hello = Hello {
        nonce: [id; 16],
        by,
        owns: None,
        leaves: false,
    };
    Envelope::Hello(hello).encode().unwrap()
}

fn node(id: u8, clock: &Arc<SimClock>) -> Arc<Node> {
    let me = Member {
        version: "1".to_owned(),
        ..Member::new(NodeId([id; 20]))
    };
    Arc::new(Node::new(
        me,
        Duration::from_secs(5),
        Arc::clone(clock) as _,
    ))
}

#[test]
fn an_owner_reads_past_hellos_and_looks_no_further() {
    let world = World::new();
    let reads = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&reads);
    let kafka = Hooked::reads(&world.kafka, move |read| {
        let offsets = read.records.iter().map(|(offset, _)| *offset);
        note.lock().unwrap().push(offsets.collect::<Vec<_>>());
    });
    let claimed = world.claim_through(Arc::clone(&kafka) as _, 1, retry());
    let mut owner = claimed.unwrap().owner;
    add(&mut owner, b"a").unwrap();
    reads.lock().unwrap().clear();
    let described = kafka.described.load(Ordering::SeqCst);
    world.kafka.insert(&world.partition, &hello(2));
    world.kafka.leave_out(&world.partition, 2);
    world.kafka.insert(&world.partition, &hello(3));
    add(&mut owner, b"b").unwrap();
    // The own record is behind them.
    assert_eq!(*reads.lock().unwrap(), [[2, 5, 6]]);
    world.kafka.leave_out(&world.partition, 1);
    add(&mut owner, b"c").unwrap();
    assert_eq!(kafka.described.load(Ordering::SeqCst), described);
    assert_eq!(owner.counters().hellos, 2);

    // Whoever writes something else may have made the topic anew.
    world.kafka.insert(&world.partition, &hello(2));
    world.kafka.insert(&world.partition, b"not an envelope");
    add(&mut owner, b"d").unwrap();
    assert!(kafka.described.load(Ordering::SeqCst) > described);
    let counters = owner.counters();
    assert_eq!((counters.hellos, counters.malformed), (3, 1));
    assert_eq!(history(&world.claim(2).owner), ["a", "b", "c", "d"]);
}

#[test]
fn an_owner_behind_hellos_is_deposed_all_the_same() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    world.kafka.insert(&world.partition, &hello(3));
    let mut next = world.claim(2).owner;
    world.kafka.insert(&world.partition, &hello(3));
    let by = claimant(2);
    let epoch = next.epoch();
    let deposed = latewood_cluster::owner::Error::Deposed { by, epoch };
    assert_eq!(add(&mut owner, b"denied"), Err(deposed));
    add(&mut next, b"b").unwrap();
    assert_eq!(history(&world.claim(3).owner), ["a", "b"]);
}

#[test]
fn an_owner_says_hello_and_hears_others() {
    let world = World::new();
    let clock = Arc::new(SimClock::default());
    let node = node(1, &clock);
    let reads = Arc::new(AtomicUsize::new(0));
    let note = Arc::clone(&reads);
    let kafka = Hooked::reads(&world.kafka, move |_| {
        note.fetch_add(1, Ordering::SeqCst);
    });
    let claimed = world.claim_through(kafka, 1, retry()).unwrap();
    let mut owner = claimed.owner;
    assert!(!owner.is_hello_due(), "nobody asked it to");
    let presence = Presence::new(node.id(), [1; 12]);
    owner.attend(Attendance::new(
        presence,
        Arc::clone(&node),
        Arc::clone(&clock) as _,
    ));
    add(&mut owner, b"a").unwrap();
    let read = reads.load(Ordering::SeqCst);
    assert!(owner.is_hello_due());
    owner.say_hello();
    assert!(!owner.is_hello_due());
    add(&mut owner, b"b").unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), read, "its own HELLO is known");
    let standing = node.standing();
    assert_eq!((standing.owner, standing.epoch), (Some(node.id()), Some(0)));
    let records = world.kafka.records(&world.partition);
    let Ok(Envelope::Hello(said)) = Envelope::decode(&records[2].1) else {
        panic!("it said nothing");
    };
    assert_eq!(
        (said.by.id, said.owns, said.by.applied),
        (node.id(), Some(0), 1)
    );

    world.kafka.insert(&world.partition, &hello(2));
    add(&mut owner, b"c").unwrap();
    clock.advance_ms(1_667);
    assert!(owner.is_hello_due());
    owner.say_hello();
    let members = |node: &Node| {
        let standing = node.standing();
        standing
            .members
            .iter()
            .map(|member| member.addresses.redis.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(members(&node), ["", "n2:6379"]);
    clock.advance_ms(MEMBER_FOR.as_millis() as u32);
    owner.say_hello();
    assert_eq!(members(&node), [""]);
    assert_eq!(history(&world.claim(2).owner), ["a", "b", "c"]);
}

#[test]
fn a_hello_that_does_not_arrive_matters_to_nobody() {
    let world = World::new();
    let clock = Arc::new(SimClock::default());
    let mut owner = world.claim(1).owner;
    let presence = Presence::new(NodeId([1; 20]), [1; 12]);
    owner.attend(Attendance::new(
        presence,
        node(1, &clock),
        Arc::clone(&clock) as _,
    ));
    // It arrives behind a record that was sent later.
    world.set_late(true);
    owner.say_hello();
    world.set_late(false);
    add(&mut owner, b"a").unwrap();
    world.kafka.land();
    add(&mut owner, b"b").unwrap();
    world.kafka.set_away(true);
    owner.say_hello();
    world.kafka.set_away(false);
    add(&mut owner, b"c").unwrap();
    assert_eq!(owner.counters().hellos, 1);
    assert_eq!(history(&world.claim(2).owner), ["a", "b", "c"]);
}

#[test]
fn a_log_that_begins_with_a_hello_is_refused() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    world.kafka.insert(&world.partition, &hello(2));
    add(&mut owner, b"b").unwrap();
    // Whatever comes between, the log is trimmed to a record that counts.
    owner.checkpoint("m", [0; 32], 1, 2).unwrap();
    owner.trimmer().run().unwrap();
    assert_eq!(world.kafka.bounds(&world.partition).unwrap().0, 3);
    world.kafka.insert(&world.partition, &hello(2));
    // By hand, it is trimmed to anything.
    world.kafka.trim(&world.partition, 5).unwrap();
    let begin = 5;
    assert_eq!(world.stopped(2), Stop::Beginning { begin });
    let looked = Look::new(world.kafka.clone(), world.partition.clone(), None, retry());
    assert_eq!(looked.err(), Some(Stop::Beginning { begin }.into()));
}

#[test]
fn a_log_may_begin_with_the_hello_of_who_follows_it_first() {
    let world = World::new();
    world.kafka.insert(&world.partition, &hello(2));
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    assert_eq!(history(&world.claim(2).owner), ["a"]);
}
