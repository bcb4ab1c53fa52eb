//! Nodes that cannot load the newest checkpoint: who owns the log then, and with which files.

use super::life::Nodes;
use super::takeover::{is_even, save, until};
use crate::tablet::away::{fill, query, rows};
use crate::tablet::world::{increment, newest};
use latewood_cluster::tablet::Error;
use latewood_engine::Db;
use std::sync::atomic::Ordering;

/// Longer than a checkpoint takes to come.
fn wait(nodes: &mut Nodes) {
    for _ in 0..120 {
        nodes.pass(100);
        nodes.turn();
    }
}

#[test]
fn who_cannot_load_the_newest_checkpoint_lets_others_own_the_log() {
    let mut nodes = Nodes::new(1, 3);
    nodes.start(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(0));
    nodes.start(1);
    nodes.start(2);
    until(&mut nodes, |nodes| is_even(nodes, 1) && is_even(nodes, 2));
    let id = |nodes: &Nodes, i: usize| nodes.life(i).standby.node().id();
    let (first, other) = if id(&nodes, 1) < id(&nodes, 2) {
        (1, 2)
    } else {
        (2, 1)
    };
    nodes.store_is_cut[first].store(true, Ordering::Relaxed);
    increment(nodes.life(0).db(), b"sum", 0);
    save(&nodes, 0);
    wait(&mut nodes);
    let standing = nodes.life(0).standby.node().standing();
    let caught_up = standing.members[1..].iter().map(|node| node.is_caught_up);
    assert_eq!(caught_up.filter(|is_so| *is_so).count(), 1, "the other one");
    nodes.kill(0);
    until(&mut nodes, |nodes| nodes.owner().is_some());
    assert_eq!(nodes.owner(), Some(other));
    // It catches up once it reaches the store, and takes the log over then.
    nodes.store_is_cut[first].store(false, Ordering::Relaxed);
    save(&nodes, other);
    wait(&mut nodes);
    nodes.kill(other);
    let took_ms = until(&mut nodes, |nodes| nodes.owner() == Some(first));
    assert!(took_ms < 5_000, "{took_ms} ms");
    assert_eq!(newest(nodes.life(first).db(), b"sum"), 1);
}

fn all(db: &Db) -> Vec<(i64, u64)> {
    rows(db, b"a", &query(0, i64::MAX)).unwrap()
}

/// The last node has files of which the owner before deleted some, and the store comes back.
#[test]
fn an_owner_without_the_newest_checkpoint_saves_its_own_or_loads_that() {
    for are_deleted in [false, true] {
        let mut nodes = Nodes::new(1, 2);
        nodes.start(0);
        until(&mut nodes, |nodes| nodes.owner() == Some(0));
        fill(nodes.life(0).db());
        save(&nodes, 0);
        nodes.start(1);
        until(&mut nodes, |nodes| is_even(nodes, 1));
        nodes.store_is_cut[1].store(true, Ordering::Relaxed);
        let before = nodes.world.held("/blocks/");
        nodes.life(0).db().merge().unwrap();
        increment(nodes.life(0).db(), b"sum", 0);
        save(&nodes, 0);
        let wanted = all(nodes.life(0).db());
        let held: Vec<String> = (nodes.life(0).db().blocks().iter())
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        let merged: Vec<String> = before
            .into_iter()
            .filter(|object| !held.iter().any(|name| object.contains(name)))
            .collect();
        assert!(!merged.is_empty(), "they are named no more");
        if are_deleted {
            nodes.world.lose(&merged);
        }
        wait(&mut nodes);
        nodes.kill(0);
        until(&mut nodes, |nodes| nodes.owner() == Some(1));
        let tablet = nodes.life(1).owned().unwrap().clone();
        assert!(tablet.lacks_checkpoint());
        increment(nodes.life(1).db(), b"sum", 1);
        let saved = tablet.checkpoint(nodes.life(1).db());
        assert!(saved.unwrap_err().is_temporary(), "the store is away");
        nodes.store_is_cut[1].store(false, Ordering::Relaxed);
        let saved = tablet.checkpoint(nodes.life(1).db());
        if are_deleted {
            assert!(matches!(saved, Err(Error::Overtaken { .. })), "{saved:?}");
            drop(tablet);
            // As the server does.
            nodes.kill(1);
            nodes.start(1);
            until(&mut nodes, |nodes| nodes.owner() == Some(1));
        } else {
            saved.unwrap();
            assert!(!tablet.lacks_checkpoint());
        }
        assert_eq!(all(nodes.life(1).db()), wanted, "deleted: {are_deleted}");
        assert_eq!(newest(nodes.life(1).db(), b"sum"), 2);
        save(&nodes, 1);
    }
}
