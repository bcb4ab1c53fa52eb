//! Who is there: nodes that leave, and two processes at one address.

use super::life::Nodes;
use super::takeover::{is_even, until};
use latewood_cluster::node::Twin;
use std::time::Duration;

const SHARED: &str = "same:6379";

fn twin(nodes: &Nodes, i: usize) -> Option<Twin> {
    nodes.life(i).standby.node().standing().twin
}

fn members(nodes: &Nodes, i: usize) -> usize {
    nodes.life(i).standby.node().standing().members.len()
}

/// An owner, and a follower at `address`.
fn pair(address: &str) -> Nodes {
    let mut nodes = Nodes::new(1, 2);
    nodes.start_at(0, Some(SHARED));
    until(&mut nodes, |nodes| nodes.owner() == Some(0));
    nodes.start_at(1, Some(address));
    until(&mut nodes, |nodes| is_even(nodes, 1));
    nodes
}

#[test]
fn two_living_processes_at_one_address_hear_each_other() {
    let mut nodes = pair(SHARED);
    until(&mut nodes, |nodes| (0..2).all(|i| twin(nodes, i).is_some()));
    let told = [twin(&nodes, 0).unwrap(), twin(&nodes, 1).unwrap()];
    assert_eq!(told.map(|twin| twin.is_older), [false, true]);
    let ids = [0, 1].map(|i| nodes.life(i).standby.node().id());
    assert_eq!(told.map(|twin| twin.id), [ids[1], ids[0]]);
    // Once one of them is gone the other has the address.
    nodes.kill(1);
    until(&mut nodes, |nodes| twin(nodes, 0).is_none());
}

#[test]
fn a_restart_at_an_address_is_no_second_process_there() {
    let mut nodes = pair("other:6379");
    let no_twins = |nodes: &mut Nodes, turns: u32| {
        for _ in 0..turns {
            nodes.turn();
            nodes.pass(100);
            let lives = (0..2).filter(|i| nodes.lives[*i].is_some());
            let twins: Vec<_> = lives.map(|i| twin(nodes, i)).collect();
            assert!(twins.iter().all(Option::is_none), "{twins:?}");
        }
    };
    for round in 0..20 {
        // Killed at other moments, and again before it is heard.
        no_twins(&mut nodes, round % 7);
        nodes.kill(1);
        no_twins(&mut nodes, round % 3);
        nodes.start_at(1, Some("other:6379"));
    }
    no_twins(&mut nodes, 200);
    // What was said before a stall arrives behind it.
    for (dead, own) in [(1, "other:6379"), (0, SHARED)] {
        nodes.stall.begin();
        no_twins(&mut nodes, 20);
        nodes.kill(dead);
        nodes.start_at(dead, Some(own));
        no_twins(&mut nodes, 20);
        let (kafka, partition) = (nodes.world.kafka.clone(), nodes.partition());
        nodes.stall.end(&kafka, &partition, |_| Some(0));
        no_twins(&mut nodes, 200);
    }
}

#[test]
fn a_node_that_is_stopped_is_a_member_no_more() {
    let mut nodes = pair("other:6379");
    until(&mut nodes, |nodes| members(nodes, 0) == 2);
    nodes.life(1).standby.leave(Duration::from_secs(60));
    // It did not own the log: nothing else follows.
    let took_ms = until(&mut nodes, |nodes| members(nodes, 0) == 1);
    assert!(took_ms <= 2_000, "{took_ms} ms");
    assert_eq!(nodes.owner(), Some(0));
    // One that is killed stays for a while.
    nodes.kill(1);
    nodes.start_at(1, Some("other:6379"));
    until(&mut nodes, |nodes| members(nodes, 0) == 2);
    nodes.kill(1);
    let took_ms = until(&mut nodes, |nodes| members(nodes, 0) == 1);
    assert!(took_ms >= 10_000, "{took_ms} ms");
}

#[test]
fn an_owner_that_is_stopped_is_a_member_no_more_and_remembered() {
    let mut nodes = pair("other:6379");
    until(&mut nodes, |nodes| members(nodes, 1) == 2);
    let owner = nodes.life(0).standby.node().id();
    nodes.life(1).standby.stand(false);
    nodes.turn();
    nodes.life(0).farewell();
    nodes.kill(0);
    let took_ms = until(&mut nodes, |nodes| members(nodes, 1) == 1);
    assert!(took_ms <= 500, "{took_ms} ms");
    let standing = nodes.life(1).standby.node().standing();
    assert_eq!(standing.owner, None);
    assert_eq!(standing.last_owner.as_ref().unwrap().id, owner);
}
