//! Owners of one tablet, one situation at a time.

mod hellos;
mod lost;
mod starts;

use crate::hooked::cluster;
use latewood_cluster::envelope::{Body, Checkpoint, Claimant, Envelope, PAYLOAD_BYTES_MAX, State};
use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::owner::{Claimed, Error, IDLE_RECORDS, Owner, Stop};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::scan::Verdict;
use latewood_cluster::survey::{self, survey};
use std::sync::Arc;
use std::time::Duration;

struct World {
    kafka: Arc<MemoryKafka>,
    partition: Partition,
}

fn claimant(node: u32) -> Claimant {
    Claimant {
        nonce: [node as u8; 16],
        node,
        address: format!("n{node}:6379"),
    }
}

fn retry() -> Retry {
    Retry {
        first: Duration::ZERO,
        longest: Duration::ZERO,
        cancel: Arc::default(),
    }
}

impl World {
    fn new() -> Self {
        let (kafka, partition) = cluster(1, "t");
        Self { kafka, partition }
    }

    fn try_claim(&self, node: u32, retry: Retry) -> Result<Claimed, Error> {
        self.claim_through(self.kafka.clone(), node, retry)
    }

    fn claim_through(
        &self,
        kafka: Arc<dyn Kafka>,
        node: u32,
        retry: Retry,
    ) -> Result<Claimed, Error> {
        Owner::claim(kafka, self.partition.clone(), None, &claimant(node), retry)
    }

    fn claim(&self, node: u32) -> Claimed {
        self.try_claim(node, retry())
            .expect("nothing is in the way")
    }

    fn stopped(&self, node: u32) -> Stop {
        match self.try_claim(node, retry()) {
            Err(Error::Stopped(stop)) => stop,
            other => panic!("{other:?}"),
        }
    }

    /// Appends what arrives only at [`MemoryKafka::land`], or by and by.
    fn set_late(&self, late: bool) {
        let late = if late { 1000 } else { 0 };
        self.kafka.set_faults(Faults {
            late,
            ..Faults::default()
        });
    }
}

fn add(owner: &mut Owner, payload: &[u8]) -> Result<u64, Error> {
    owner.append(owner.state().sequence, 1, payload)
}

fn history(owner: &Owner) -> Vec<String> {
    let data = owner.history().map(|data| data.expect("readable").payload);
    data.map(|payload| String::from_utf8(payload).expect("text"))
        .collect()
}

fn deposed(by: u32, epoch: u64) -> Error {
    let by = claimant(by);
    Error::Deposed { by, epoch }
}

#[test]
fn an_owner_finds_what_those_before_appended() {
    let world = World::new();
    let mut first = world.claim(1);
    assert_eq!((first.deposed, first.checkpoint), (None, None));
    assert_eq!(first.owner.state().sequence, 1);
    assert_eq!(first.owner.append(1, 3, b"abc"), Ok(1));
    assert_eq!(first.owner.tick().unwrap().offset, 2);
    assert_eq!(add(&mut first.owner, b"d"), Ok(3));
    assert_eq!(first.owner.farewell(), Ok(4));

    let second = world.claim(2);
    let before = second.deposed.expect("there was one");
    assert_eq!((before.epoch, before.farewell), (0, true));
    assert_eq!(before.by, Some(claimant(1)));
    assert_eq!(
        (second.owner.epoch(), second.owner.state().sequence),
        (5, 5)
    );
    assert_eq!(history(&second.owner), ["abc", "d"]);
    let data = second.owner.history().next().expect("some").expect("read");
    assert_eq!((data.offset, data.sequence, data.groups), (1, 1, 3));
}

#[test]
fn a_deposed_owner_appends_nothing_that_counts() {
    let world = World::new();
    let mut first = world.claim(1).owner;
    add(&mut first, b"a").unwrap();
    let mut second = world.claim(2);
    assert!(!second.deposed.expect("there was one").farewell);
    assert_eq!(add(&mut first, b"denied"), Err(deposed(2, 2)));
    assert_eq!(add(&mut first, b"denied"), Err(deposed(2, 2)));
    assert_eq!(first.tick(), Err(deposed(2, 2)));
    add(&mut second.owner, b"b").unwrap();
    let third = world.claim(3);
    assert_eq!(history(&third.owner), ["a", "b"]);
    assert_eq!(third.counters.foreign, 1);
}

#[test]
fn what_arrives_late_counts_once_or_never() {
    let world = World::new();
    let mut first = world.claim(1).owner;
    world.set_late(true);
    // Each attempt is on its way for some calls: several arrive.
    add(&mut first, b"a").unwrap();
    world.set_late(false);
    world.kafka.land();
    assert!(world.kafka.records(&world.partition).len() > 2);
    add(&mut first, b"b").unwrap();
    let mut second = world.claim(2).owner;
    assert_eq!(history(&second), ["a", "b"]);
    add(&mut second, b"c").unwrap();
    let third = world.claim(3);
    assert_eq!(history(&third.owner), ["a", "b", "c"]);
    assert!(third.counters.repeated + third.counters.foreign > 0);
}

#[test]
fn records_of_others_are_passed_over() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    world.kafka.insert(&world.partition, b"not an envelope");
    world.kafka.leave_out(&world.partition, 3);
    add(&mut owner, b"a").unwrap();
    assert_eq!(owner.counters().malformed, 1);
    world.kafka.leave_out(&world.partition, 1);
    let next = world.claim(2);
    assert_eq!((next.counters.malformed, next.counters.counted), (1, 1));
    assert_eq!(history(&next.owner), ["a"]);
}

#[test]
fn a_checkpoint_says_where_the_log_begins() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let (_, nothing) = owner.checkpoint("m0", [0; 32], 5, 1).unwrap();
    assert_eq!((nothing.begin, nothing.state), (0, State::START));
    owner.append(1, 2, b"ab").unwrap();
    owner.append(3, 3, b"cde").unwrap();
    owner.append(6, 1, b"f").unwrap();
    // From the second group of a record on.
    let (_, checkpoint) = owner.checkpoint("m1", [7; 32], 100, 4).unwrap();
    assert_eq!((checkpoint.begin, checkpoint.state.sequence), (3, 3));
    owner.trimmer().run().unwrap();
    assert_eq!(world.kafka.bounds(&world.partition), Ok((3, 6)));

    let mut next = world.claim(2);
    assert_eq!(next.checkpoint, Some(checkpoint.clone()));
    assert_eq!(history(&next.owner), ["cde", "f"]);
    assert_eq!(next.owner.begin(), (3, checkpoint.state));
    // Nothing is needed any more; what is asked for is not before what was given up.
    let (_, all) = next.owner.checkpoint("m2", [8; 32], 100, 7).unwrap();
    next.owner.trimmer().run().unwrap();
    let (_, again) = next.owner.checkpoint("m3", [8; 32], 1, 1).unwrap();
    assert_eq!(again.begin, 5);
    assert_eq!(all.begin, 5);
    let last = world.claim(3);
    let deposed = last.deposed.expect("there was one");
    assert_eq!((deposed.epoch, deposed.by), (6, Some(claimant(2))));
    assert_eq!(last.checkpoint.expect("three").manifest, "m3");
    assert_eq!(history(&last.owner), Vec::<String>::new());
}

#[test]
fn a_log_whose_records_were_deleted_by_hand_is_refused() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    for payload in [b"a", b"b", b"c"] {
        add(&mut owner, payload).unwrap();
    }
    world.kafka.trim(&world.partition, 2).unwrap();
    assert_eq!(world.stopped(2), Stop::Beginning { begin: 2 });

    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    add(&mut owner, b"b").unwrap();
    owner.checkpoint("m", [0; 32], 1, 2).unwrap();
    let claimed = world.claim(2);
    world.kafka.trim(&world.partition, 3).unwrap();
    let (needed, begin) = (2, 3);
    assert_eq!(world.stopped(3), Stop::Missing { needed, begin });
    drop(claimed.owner.history());
    let read: Result<Vec<_>, _> = claimed.owner.history().collect();
    // The claim in vain deposed it.
    assert_eq!(read, Err(Error::Succeeded { epoch: 5 }));

    // Everything: the claim itself shows that.
    let end = world.kafka.bounds(&world.partition).unwrap().1;
    world.kafka.trim(&world.partition, end).unwrap();
    assert_eq!(world.stopped(3), Stop::Beginning { begin: end });
}

#[test]
fn an_owner_that_slept_while_the_log_was_trimmed_does_not_guess() {
    let world = World::new();
    let mut slept = world.claim(1).owner;
    let mut owner = world.claim(2).owner;
    add(&mut owner, b"a").unwrap();
    add(&mut owner, b"b").unwrap();
    owner.checkpoint("m", [0; 32], 1, 3).unwrap();
    owner.trimmer().run().unwrap();
    // Whether it counts is not known: its place was trimmed.
    let epoch = 1;
    assert_eq!(add(&mut slept, b"c"), Err(Error::Succeeded { epoch }));
    assert_eq!(slept.tick(), Err(Error::Succeeded { epoch }));
}

#[test]
fn a_trim_by_hand_makes_nobody_a_successor() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    // What the claim has read, and what is read again.
    let (known, read) = (owner.history(), owner.history());
    add(&mut owner, b"b").unwrap();
    world.kafka.trim(&world.partition, 2).unwrap();
    let gone = Stop::Trimmed {
        needed: 0,
        begin: 2,
    };
    let read: Result<Vec<_>, _> = read.collect();
    assert_eq!(read, Err(gone.into()));
    assert_eq!(known.count(), 0);
    add(&mut owner, b"c").unwrap();
}

#[test]
fn the_log_of_an_idle_tablet_stays_short() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    owner.checkpoint("m", [7; 32], 5, 2).unwrap();
    let renewed = (0..2 * IDLE_RECORDS).filter(|_| {
        let tick = owner.tick().unwrap();
        if tick.is_renewed {
            owner.trimmer().run().unwrap();
        }
        tick.is_renewed
    });
    assert!((1..=2).contains(&renewed.count()));
    let held = world.kafka.records(&world.partition).len() as u64;
    assert!(held < 2 * IDLE_RECORDS, "{held} records");
    let mut next = world.claim(2);
    assert_eq!(next.checkpoint.clone().expect("one").manifest, "m");
    assert_eq!(history(&next.owner), Vec::<String>::new());
    add(&mut next.owner, b"b").unwrap();
    assert_eq!(history(&world.claim(3).owner), ["b"]);
}

#[test]
fn data_that_no_checkpoint_holds_keeps_the_log_of_an_idle_tablet() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    owner.checkpoint("m", [7; 32], 5, 1).unwrap();
    add(&mut owner, b"a").unwrap();
    for _ in 0..IDLE_RECORDS + 10 {
        assert!(!owner.tick().unwrap().is_renewed);
    }
    assert_eq!(history(&world.claim(2).owner), ["a"]);
}

#[test]
fn another_topic_of_the_same_name_is_refused() {
    let world = World::new();
    let recreated = Error::Stopped(Stop::Recreated);
    let id = world.kafka.describe("t").unwrap().id;
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    world.kafka.recreate("t");
    assert_eq!(owner.trimmer().run(), Err(recreated.clone()));
    assert_eq!(add(&mut owner, b"b"), Err(recreated.clone()));
    let (kafka, partition) = (world.kafka.clone(), world.partition.clone());
    let claimed = Owner::claim(kafka, partition, Some(id), &claimant(2), retry());
    assert_eq!(claimed.err(), Some(recreated));
    world.kafka.delete("t");
    assert_eq!(world.stopped(2), Stop::NoSuchTopic);
}

#[test]
fn a_later_version_stops_an_owner() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let mut later = world.kafka.records(&world.partition)[0].1.clone();
    later[4] = 9;
    later.truncate(later.len() - 4);
    let sum = crc_fast::crc32_iscsi(&later);
    later.extend_from_slice(&sum.to_le_bytes());
    world.kafka.insert(&world.partition, &later);
    let (version, offset) = (9, 1);
    let newer = Stop::Newer { version, offset };
    assert_eq!(add(&mut owner, b"a"), Err(newer.clone().into()));
    assert_eq!(world.stopped(2), newer);
}

#[test]
fn a_copy_of_an_owner_is_noticed() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let copied = Envelope::Record {
        at: owner.state(),
        body: Body::Tick,
    };
    let copied = copied.encode().expect("small");
    world.kafka.insert(&world.partition, &copied);
    assert_eq!(add(&mut owner, b"a"), Err(Stop::Copied(1).into()));
}

#[test]
fn groups_that_cannot_be_appended_end_an_owner() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let longest = vec![1; PAYLOAD_BYTES_MAX + 1];
    add(&mut owner, &longest[1..]).unwrap();
    assert_eq!(add(&mut owner, &longest), Err(Stop::TooLong.into()));
    let mut owner = world.claim(2).owner;
    let (given, expected) = (3, 2);
    let refused = Stop::Sequence { given, expected };
    assert_eq!(owner.append(3, 1, b"b"), Err(refused.clone().into()));
    assert_eq!(owner.append(2, 1, b"b"), Err(refused.into()));
}

#[test]
fn waiting_for_brokers_ends_when_the_node_stops() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let cancel = Arc::new(Cancel::default());
    let retry = Retry::new(cancel.clone());
    world.kafka.set_away(true);
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| world.try_claim(2, retry));
        cancel.cancel();
        let claimed = claim.join().expect("no panic");
        assert_eq!(claimed.err(), Some(Error::Cancelled));
    });
    assert!(matches!(owner.trimmer().run(), Err(Error::NotTrimmed(_))));
    // Back after a while: the same append goes on.
    std::thread::scope(|scope| {
        let appended = scope.spawn(|| add(&mut owner, b"a"));
        world.kafka.set_away(false);
        assert_eq!(appended.join().expect("no panic"), Ok(1));
    });
}

#[test]
fn a_checkpoint_keeps_the_names_it_was_given() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    let (manifest, sha256, bytes) = ("p/m".to_owned(), [9; 32], 77);
    owner.checkpoint(&manifest, sha256, bytes, 1).unwrap();
    let (begin, state) = (0, State::START);
    let wanted = Checkpoint {
        manifest,
        sha256,
        bytes,
        begin,
        state,
    };
    assert_eq!(world.claim(2).checkpoint, Some(wanted));
}

#[test]
fn a_survey_changes_nothing_and_sees_what_the_next_owner_sees() {
    let world = World::new();
    let mut first = world.claim(1).owner;
    first.append(1, 3, b"abc").unwrap();
    world.kafka.insert(&world.partition, b"not an envelope");
    world.kafka.leave_out(&world.partition, 3);
    let mut second = world.claim(2).owner;
    add(&mut first, b"denied").unwrap_err();
    second.append(4, 1, b"d").unwrap();
    let (at, checkpoint) = second.checkpoint("m", [7; 32], 5, 4).unwrap();
    let before = world.kafka.records(&world.partition);

    let mut malformed = Vec::new();
    let found = survey(
        &*world.kafka,
        &world.partition,
        &mut |offset, bytes, verdict| {
            if *verdict == Verdict::Malformed {
                malformed.push((offset, bytes));
            }
        },
    );
    let found = found.unwrap();
    assert_eq!(world.kafka.records(&world.partition), before);
    assert_eq!(malformed, [(2, 15)]);
    assert_eq!(found.bounds, (0, before.last().unwrap().0 + 1));
    assert_eq!(found.state, Some(second.state()));
    assert_eq!(found.owner, Some((second.epoch(), claimant(2))));
    assert_eq!(found.checkpoint, Some((at, checkpoint)));
    assert_eq!(
        (found.groups, found.group_bytes, found.farewell),
        (4, 4, false)
    );
    assert_eq!((found.counters.foreign, found.counters.epochs), (1, 2));

    second.trimmer().run().unwrap();
    second.farewell().unwrap();
    let found = survey(&*world.kafka, &world.partition, &mut |_, _, _| {}).unwrap();
    assert!(found.farewell && found.bounds.0 > 0);
    assert_eq!(found.groups, 1);
    let next = world.claim(3);
    assert_eq!(next.counters.counted, found.counters.counted);
}

#[test]
fn a_survey_names_a_log_that_no_node_can_own() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    owner.checkpoint("m", [7; 32], 5, 1).unwrap();
    owner.tick().unwrap();
    world.kafka.trim(&world.partition, 2).unwrap();
    let found = survey(&*world.kafka, &world.partition, &mut |_, _, _| {}).unwrap_err();
    let stop = Stop::Missing {
        needed: 1,
        begin: 2,
    };
    assert_eq!(found, survey::Error::Stopped(stop.clone()));
    assert_eq!(world.stopped(2), stop);
}

#[test]
fn a_survey_names_a_log_that_lost_its_beginning() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    add(&mut owner, b"a").unwrap();
    owner.tick().unwrap();
    world.kafka.trim(&world.partition, 2).unwrap();
    let found = survey(&*world.kafka, &world.partition, &mut |_, _, _| {}).unwrap_err();
    assert_eq!(found, survey::Error::Stopped(world.stopped(2)));
}
