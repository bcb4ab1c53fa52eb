//! What a start reads of a log, and what it appends.

use super::{World, add, claimant, history, retry};
use crate::hooked::Hooked;
use latewood_cluster::envelope::PAYLOAD_BYTES_MAX;
use latewood_cluster::kafka::{Kafka, Offset};
use latewood_cluster::owner::{Look, Stop};
use std::sync::{Arc, Mutex};

/// A log that is looked at, and the offsets of the records that are read of it, as they are.
fn look(world: &World) -> (Look, Arc<Mutex<Vec<Offset>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let kafka = Hooked::reads(&world.kafka, move |read| {
        let offsets = read.records.iter().map(|(offset, _)| *offset);
        note.lock().unwrap().extend(offsets);
    });
    let looked = Look::new(kafka, world.partition.clone(), None, retry()).unwrap();
    (looked, seen)
}

#[test]
fn a_start_reads_every_record_once() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    for payload in [b"a", b"b", b"c"] {
        add(&mut owner, payload).unwrap();
    }
    owner.checkpoint("m", [7; 32], 5, 3).unwrap();
    owner.trimmer().run().unwrap();
    add(&mut owner, b"d").unwrap();
    let before = world.kafka.records(&world.partition);
    let (looked, seen) = look(&world);
    // Nothing is appended, and the owner goes on until it is deposed.
    assert_eq!(world.kafka.records(&world.partition), before);
    let (at, named) = looked.checkpoint().unwrap();
    assert_eq!((*at, named.manifest.as_str()), (4, "m"));
    add(&mut owner, b"e").unwrap();
    let claimed = looked.claim(&claimant(2)).unwrap();
    assert_eq!(history(&claimed.owner), ["c", "d", "e"]);
    let mut read = std::mem::take(&mut *seen.lock().unwrap());
    // How the log begins is asked before.
    assert_eq!(read.remove(0), 3);
    assert_eq!(read, [3, 4, 5, 6, 7]);
    // Who asks again has it read again.
    assert_eq!(history(&claimed.owner), ["c", "d", "e"]);
    assert!(!seen.lock().unwrap().is_empty());
}

#[test]
fn what_exceeds_the_memory_of_a_start_is_read_twice() {
    const RECORDS: u64 = 70;
    let world = World::new();
    let mut owner = world.claim(1).owner;
    for number in 0..RECORDS {
        let payload = vec![number as u8; PAYLOAD_BYTES_MAX];
        add(&mut owner, &payload).unwrap();
    }
    let (looked, seen) = look(&world);
    let claimed = looked.claim(&claimant(2)).unwrap();
    let first = seen.lock().unwrap().len() as u64;
    let numbers = claimed.owner.history().map(|data| data.unwrap());
    let numbers = numbers.map(|data| (data.sequence, data.payload[0]));
    let wanted = (0..RECORDS).map(|number| (number + 1, number as u8));
    assert!(numbers.eq(wanted));
    let again = seen.lock().unwrap().len() as u64 - first;
    assert!((5..12).contains(&again), "{again}");
}

#[test]
fn a_log_that_is_trimmed_behind_a_look_is_claimed_all_the_same() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    let (looked, _) = look(&world);
    assert!(looked.checkpoint().is_none());
    assert_eq!(looked.epochs(), [0]);
    add(&mut owner, b"b").unwrap();
    add(&mut owner, b"c").unwrap();
    owner.checkpoint("m", [7; 32], 5, 3).unwrap();
    owner.trimmer().run().unwrap();
    let claimed = looked.claim(&claimant(2)).unwrap();
    assert_eq!(claimed.checkpoint.unwrap().manifest, "m");
    assert_eq!(history(&claimed.owner), ["c"]);
}

#[test]
fn a_log_that_nobody_can_own_is_refused_before_a_claim() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    owner.checkpoint("m", [7; 32], 5, 1).unwrap();
    owner.tick().unwrap();
    let refused = |begin| {
        let kafka = world.kafka.clone();
        world.kafka.trim(&world.partition, begin).unwrap();
        let before = world.kafka.records(&world.partition);
        let looked = Look::new(kafka, world.partition.clone(), None, retry());
        assert_eq!(world.kafka.records(&world.partition), before);
        looked.map(drop).unwrap_err()
    };
    let (needed, begin) = (1, 2);
    assert_eq!(refused(2), Stop::Missing { needed, begin }.into());
    // Where all of it was deleted, no record shows that.
    let begin = 4;
    assert_eq!(refused(begin), Stop::Beginning { begin }.into());
}
