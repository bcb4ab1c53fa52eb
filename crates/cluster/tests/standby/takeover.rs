//! What becomes of nodes in single events.

use super::life::{Became, Nodes};
use super::plain::Plain;
use crate::tablet::away::{add, query, rows};
use crate::tablet::world::{increment, newest, once_here};
use latewood_cluster::kafka::Kafka;
use latewood_cluster::node::Role;
use latewood_cluster::standby::Ended;
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;
use latewood_model::DuplicatePolicy;
use std::time::Duration;

/// Two nodes, of which the first owns a log with a checkpoint, and the second follows it.
fn pair() -> Nodes {
    let mut nodes = Nodes::new(1, 2);
    nodes.start(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(0));
    nodes.start(1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    nodes
}

/// Time passes until it is so; returns how many milliseconds.
#[track_caller]
pub(super) fn until(nodes: &mut Nodes, is_so: impl Fn(&Nodes) -> bool) -> u32 {
    for step in 0..1_000 {
        for (i, became) in nodes.turn() {
            if let Became::Ended(ended) = became {
                panic!("node {i}: {ended:?}");
            }
        }
        if is_so(nodes) {
            return step * 100;
        }
        nodes.pass(100);
    }
    panic!("it does not become so");
}

/// Whether a follower has applied all that the owner wrote, and answers.
pub(super) fn is_even(nodes: &Nodes, i: usize) -> bool {
    let (Some(owner), Some(life)) = (nodes.owner(), &nodes.lives[i]) else {
        return false;
    };
    let is_applied = life.db().applied() == nodes.life(owner).db().position();
    is_applied && life.standby.node().takes_reads().is_ok()
}

pub(super) fn save(nodes: &Nodes, i: usize) {
    let life = nodes.life(i);
    let tablet = life.owned().unwrap();
    assert!(tablet.log().drain(Duration::from_secs(10)));
    life.db().flush().unwrap();
    tablet.checkpoint(life.db()).unwrap();
}

fn proven(nodes: &Nodes, i: usize) {
    let log = nodes.life(i).owned().unwrap().log().clone();
    assert!(log.drain(Duration::from_secs(10)));
}

#[test]
fn a_follower_answers_what_the_owner_wrote_and_takes_over_when_it_dies() {
    let mut nodes = pair();
    for at in 0..100 {
        increment(nodes.life(0).db(), b"sum", at);
        if at % 30 == 0 {
            proven(&nodes, 0);
            until(&mut nodes, |nodes| is_even(nodes, 1));
            save(&nodes, 0);
        }
    }
    until(&mut nodes, |nodes| is_even(nodes, 1));
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 100);
    assert_eq!(nodes.life(1).standby.node().role(), Role::Follower);
    nodes.kill(0);
    let took_ms = until(&mut nodes, |nodes| nodes.owner() == Some(1));
    assert!((2_500..5_000).contains(&took_ms), "{took_ms} ms");
    assert_eq!(nodes.life(1).standby.node().role(), Role::Owner);
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 100);
    // The other one comes back, and deposes nobody.
    nodes.start(0);
    increment(nodes.life(1).db(), b"sum", 100);
    until(&mut nodes, |nodes| is_even(nodes, 0));
    assert_eq!(newest(nodes.life(0).db(), b"sum"), 101);
    for _ in 0..200 {
        increment(nodes.life(1).db(), b"other", 1);
        nodes.turn();
        nodes.pass(100);
    }
    assert_eq!(nodes.owner(), Some(1));
}

#[test]
fn a_log_that_was_given_up_is_taken_over_at_once() {
    let mut nodes = pair();
    increment(nodes.life(0).db(), b"sum", 1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    save(&nodes, 0);
    nodes.life(0).farewell();
    let took_ms = until(&mut nodes, |nodes| nodes.owner() == Some(1));
    assert!(took_ms <= 500, "{took_ms} ms");
    let lease = nodes
        .life(1)
        .owned()
        .unwrap()
        .log()
        .lease()
        .unwrap()
        .clone();
    let took_ms = until(&mut nodes, |_| lease.covers(lease.now_ns()));
    assert!(took_ms <= 500, "{took_ms} ms");
}

#[test]
fn a_follower_that_must_not_own_the_log_does_not_until_an_operator_says_so() {
    let mut nodes = pair();
    nodes.life(1).standby.stand(false);
    nodes.turn();
    nodes.kill(0);
    for _ in 0..400 {
        nodes.turn();
        nodes.pass(100);
    }
    assert_eq!(nodes.owner(), None);
    nodes.life(1).standby.force();
    until(&mut nodes, |nodes| nodes.owner() == Some(1));
}

#[test]
fn a_suspended_owner_is_deposed_and_says_so() {
    let mut nodes = pair();
    increment(nodes.life(0).db(), b"sum", 1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    let life = nodes.lives[0].as_mut().unwrap();
    life.is_suspended = true;
    life.net.suspend(true);
    until(&mut nodes, |nodes| {
        nodes.lives[1].as_ref().unwrap().owned().is_some()
    });
    let life = nodes.lives[0].as_mut().unwrap();
    let lease = life.standby.tablet().unwrap().log().lease().unwrap();
    assert!(!lease.covers(lease.now_ns()));
    life.is_suspended = false;
    life.net.suspend(false);
    increment(life.db(), b"sum", 2);
    assert!(life.db().sync().is_err(), "it owns the log no more");
    let ended = loop {
        if let Some(Became::Ended(ended)) = nodes.turn_of(0).pop() {
            break ended;
        }
    };
    assert!(matches!(ended, Ended::LoadAnew(_)), "{ended:?}");
    let node = nodes.life(0).standby.node();
    assert_eq!(node.role(), Role::Loading);
    let owner = nodes.life(1).standby.node().id();
    assert_eq!(node.standing().owner, Some(owner), "clients are sent to it");
    nodes.kill(0);
    nodes.start(0);
    until(&mut nodes, |nodes| is_even(nodes, 0));
    assert_eq!(newest(nodes.life(0).db(), b"sum"), 1);
}

#[test]
fn a_follower_behind_the_trim_loads_anew() {
    let mut nodes = pair();
    nodes.lives[1].as_mut().unwrap().is_suspended = true;
    let end = nodes.world.kafka.bounds(&nodes.partition()).unwrap().1;
    for at in 0..50 {
        increment(nodes.life(0).db(), b"sum", at);
        proven(&nodes, 0);
        if at % 10 == 0 {
            save(&nodes, 0);
        }
        nodes.turn();
    }
    // The follower is waited for, and not for long.
    for step in 1.. {
        nodes.pass(100);
        nodes.turn();
        if step % 150 == 0 {
            save(&nodes, 0);
        }
        if nodes.world.kafka.records(&nodes.partition())[0].0 > end {
            break;
        }
    }
    nodes.lives[1].as_mut().unwrap().is_suspended = false;
    let ended = loop {
        match nodes.turn_of(1).pop() {
            Some(Became::Ended(ended)) => break ended,
            _ => nodes.pass(100),
        }
    };
    assert!(
        matches!(&ended, Ended::LoadAnew(why) if why.contains("are needed")),
        "{ended:?}"
    );
    nodes.kill(1);
    nodes.start(1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 50);
}

#[test]
fn a_checkpoint_whose_objects_are_gone_is_passed_over_for_the_next() {
    let mut nodes = pair();
    let before = nodes.world.held("");
    increment(nodes.life(0).db(), b"sum", 0);
    save(&nodes, 0);
    let new: Vec<String> = nodes
        .world
        .held("")
        .into_iter()
        .filter(|name| !before.contains(name) && name != "LATEST")
        .collect();
    let lost = nodes.world.lose(&new);
    increment(nodes.life(0).db(), b"sum", 1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 2);
    nodes.world.bring_back(lost);
    save(&nodes, 0);
    increment(nodes.life(0).db(), b"sum", 2);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 3);
    nodes.kill(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(1));
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 3);
}

/// What an owner flushed and did not publish is not what its successor gives these names.
#[test]
fn files_of_a_deposed_owner_are_not_taken_for_those_of_its_successor() {
    let mut nodes = pair();
    increment(nodes.life(0).db(), b"sum", 0);
    save(&nodes, 0);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    increment(nodes.life(0).db(), b"sum", 1);
    proven(&nodes, 0);
    nodes.life(0).db().flush().unwrap();
    nodes.kill(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(1));
    for _ in 0..20 {
        nodes.pass(100);
        nodes.turn();
    }
    increment(nodes.life(1).db(), b"sum", 7);
    save(&nodes, 1);
    nodes.start(0);
    until(&mut nodes, |nodes| is_even(nodes, 0));
    let all = |db: &Db| once_here(|| rows(db, b"sum", &query(i64::MIN, i64::MAX)));
    let wanted = [(0, 1.0_f64), (1, 2.0), (7, 3.0)].map(|(at, value)| (at, value.to_bits()));
    for i in 0..2 {
        assert_eq!(all(nodes.life(i).db()), wanted, "node {i}");
    }
}

/// Samples of many series.
fn load(db: &Db, round: i64) {
    for series in 0..200 {
        let key = format!("series-{series}");
        for at in 0..20 {
            let value = (series * 7 + at) as f64;
            add(
                db,
                key.as_bytes(),
                round * 1_000 + at,
                value,
                DuplicatePolicy::Last,
            )
            .unwrap();
        }
    }
}

#[test]
fn the_first_checkpoint_behind_a_takeover_uploads_no_more_than_an_ordinary_one() {
    // The owner dies before its flush, behind it, and behind the uploads of its checkpoint.
    for dies in 0..3 {
        let mut nodes = pair();
        let mut ordinary = 0;
        for round in 0..6 {
            load(nodes.life(0).db(), round);
            let uploads = nodes.life(0).objects.uploads().clone();
            let before = uploads.total_bytes();
            save(&nodes, 0);
            ordinary = uploads.total_bytes() - before;
            until(&mut nodes, |nodes| is_even(nodes, 1));
        }
        load(nodes.life(0).db(), 6);
        proven(&nodes, 0);
        if dies > 0 {
            nodes.life(0).db().flush().unwrap();
        }
        if dies > 1 {
            nodes.world.kafka.set_away(true);
            let (db, tablet) = (
                nodes.life(0).standby.db().clone(),
                nodes.life(0).owned().unwrap().clone(),
            );
            let saving = std::thread::spawn(move || tablet.checkpoint(&db).map(drop));
            let log = nodes.life(0).owned().unwrap().log().clone();
            while log.checkpoints_asked() < 7 + 1 {
                std::thread::yield_now();
            }
            nodes.kill(0);
            assert!(saving.join().unwrap().is_err());
            nodes.world.kafka.set_away(false);
        } else {
            nodes.kill(0);
        }
        until(&mut nodes, |nodes| nodes.owner() == Some(1));
        for _ in 0..20 {
            nodes.pass(100);
            nodes.turn();
        }
        save(&nodes, 1);
        let uploaded = nodes.life(1).objects.uploads().total_bytes();
        println!("dies {dies}: {uploaded} bytes, ordinary {ordinary}");
        assert!(
            uploaded <= ordinary + ordinary / 10,
            "dies {dies}: {uploaded}, ordinary {ordinary}"
        );
        // All of it is there.
        let held = Plain::of(nodes.life(1).db()).unwrap();
        nodes.kill(1);
        let (tablet, db) = nodes.world.open(100, &SimDisk::new()).unwrap();
        assert_eq!(Plain::of(&db).unwrap(), held);
        let samples = once_here(|| rows(&db, b"series-7", &query(i64::MIN, i64::MAX)));
        assert_eq!(samples.len(), 7 * 20);
        tablet.log().give_up();
    }
}
