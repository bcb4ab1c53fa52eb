//! Logs whose newest records all replicas lost, as no cluster does that keeps its promises.

use super::{World, add, history, retry};
use crate::hooked::Hooked;
use latewood_cluster::kafka::KafkaError;
use latewood_cluster::owner::{Error, Owner, Stop};
use std::sync::Arc;

fn claim_through(kafka: Arc<Hooked>, world: &World, node: u32) -> Owner {
    let claimed = world.claim_through(kafka, node, retry());
    claimed.expect("nothing is in the way").owner
}

fn fill(owner: &mut Owner, records: usize) {
    for _ in 0..records {
        add(owner, b"a").unwrap();
    }
}

#[test]
fn records_that_all_brokers_lost_end_an_owner() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    fill(&mut owner, 3);
    world.kafka.lose_tail(&world.partition, 2);
    let (offset, next) = (2, 4);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"d"), Err(lost.into()));
}

#[test]
fn a_lost_tail_is_noticed_where_an_append_has_no_answer() {
    let world = World::new();
    let mut appends = 0;
    let kafka = Hooked::appends(&world.kafka, move |append| {
        appends += 1;
        let answer = append();
        match appends {
            5 => Err(KafkaError::Unknown("made up".to_owned())),
            _ => answer,
        }
    });
    let mut owner = claim_through(kafka, &world, 1);
    fill(&mut owner, 3);
    world.kafka.lose_tail(&world.partition, 1);
    // The first is not answered, and no record is shown where it is looked for.
    let (offset, next) = (2, 4);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"d"), Err(lost.into()));
}

#[test]
fn an_owner_whose_records_are_lost_and_that_was_overtaken_says_so() {
    // With all of them its own EPOCH, whose offset the successor's has then; or without it.
    for kept in [0, 1, 3] {
        let world = World::new();
        let mut slept = world.claim(1).owner;
        fill(&mut slept, 9);
        world.kafka.lose_tail(&world.partition, kept);
        let mut owner = world.claim(2).owner;
        add(&mut owner, b"b").unwrap();
        let epoch = owner.epoch();
        assert_eq!(epoch, kept);
        assert_eq!(add(&mut slept, b"c"), Err(Error::Succeeded { epoch }));
        assert_eq!(slept.tick(), Err(Error::Succeeded { epoch }));
        add(&mut owner, b"d").unwrap();
    }
}

#[test]
fn an_owner_before_is_no_successor_where_the_own_claim_is_lost() {
    let world = World::new();
    let mut before = world.claim(1).owner;
    fill(&mut before, 2);
    let mut owner = world.claim(2).owner;
    fill(&mut owner, 5);
    world.kafka.lose_tail(&world.partition, 3);
    let (offset, next) = (3, 9);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"b"), Err(lost.into()));
}

#[test]
fn a_lost_tail_and_a_trim_at_once_are_the_work_of_a_successor() {
    let world = World::new();
    let (kafka, partition) = (world.kafka.clone(), world.partition.clone());
    let mut appends = 0;
    let cluster = Hooked::appends(&world.kafka, move |append| {
        appends += 1;
        let answer = append();
        if appends == 31 {
            // Meanwhile the log is trimmed past this record.
            let other = World {
                kafka: kafka.clone(),
                partition: partition.clone(),
            };
            let mut owner = other.claim(3).owner;
            add(&mut owner, b"b").unwrap();
            let next = owner.state().sequence;
            owner.checkpoint("m", [0; 32], 1, next).unwrap();
            owner.trimmer().run().unwrap();
        }
        answer
    });
    let mut slept = claim_through(cluster, &world, 1);
    fill(&mut slept, 29);
    world.kafka.lose_tail(&world.partition, 5);
    let ended = add(&mut slept, b"c");
    assert_eq!(ended, Err(Error::Succeeded { epoch: 6 }));
}

#[test]
fn a_claim_over_a_lost_tail_counts_for_everybody() {
    let world = World::new();
    let mut before = world.claim(1).owner;
    fill(&mut before, 9);
    // Of what the claim has read a part is lost before it is appended.
    let (kafka, partition) = (world.kafka.clone(), world.partition.clone());
    let mut reads = 0;
    let cluster = Hooked::reads(&world.kafka, move |_| {
        reads += 1;
        if reads == 1 {
            kafka.lose_tail(&partition, 4);
        }
    });
    let mut owner = claim_through(cluster, &world, 2);
    assert_eq!(history(&owner), ["a", "a", "a"]);
    add(&mut owner, b"b").unwrap();
    assert_eq!(history(&world.claim(3).owner), ["a", "a", "a", "b"]);
}
