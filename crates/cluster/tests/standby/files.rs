//! Nodes that cannot load the newest checkpoint: who owns the log then, and with which files.

use super::life::Nodes;
use super::takeover::{is_even, save, until};
use crate::tablet::away::{fill, query, rows};
use crate::tablet::world::{NAME, increment, newest, once_here};
use latewood_cluster::checkpoint::{Checkpoint, GRACE, Objects};
use latewood_cluster::tablet::Error;
use latewood_engine::Db;
use latewood_engine::io::sim::{Fault as DiskFault, Op, SimDisk, Trouble};
use latewood_offsite::Place;
use latewood_offsite::faulty::{Fault, Verb};
use object_store::path::Path as Object;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

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

/// Asks again while a block does not come in the time that a read waits for it.
fn all(db: &Db) -> Vec<(i64, u64)> {
    once_here(|| rows(db, b"a", &query(0, i64::MAX)))
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

/// Two nodes: the second has all of the log, and the files of the first of three checkpoints. The
/// owner merged the blocks of it. Nothing of the first is young. Returns the other two.
fn far_behind() -> (Nodes, [Checkpoint; 2]) {
    let mut nodes = Nodes::new(1, 2);
    nodes.start(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(0));
    fill(nodes.life(0).db());
    save(&nodes, 0);
    nodes.start(1);
    until(&mut nodes, |nodes| is_even(nodes, 1));
    nodes.store_is_cut[1].store(true, Ordering::Relaxed);
    nodes.life(0).db().merge().unwrap();
    let saved = [0, 1].map(|at| {
        nodes.world.store.age(GRACE * 2);
        increment(nodes.life(0).db(), b"sum", at);
        save(&nodes, 0);
        let objects = &nodes.life(0).objects;
        let latest = objects.latest().unwrap().unwrap();
        objects.find(&latest.listing).unwrap()
    });
    wait(&mut nodes);
    (nodes, saved)
}

/// A process may be suspended between its question for all objects and its deletion of those that
/// nobody needs, and go on whenever it wants.
#[test]
fn a_suspended_owner_deletes_nothing_that_a_successor_names() {
    let (mut nodes, saved) = far_behind();
    let wanted = all(nodes.life(0).db());
    let epoch = nodes.life(0).owned().unwrap().epoch();
    let (asks, asked) = channel();
    let (goes, goes_on) = channel();
    let store = nodes.world.store.with(move |request| {
        if request.verb == Verb::Delete {
            asks.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        Fault::None
    });
    let prefix = Place::of(Arc::new(store), Object::from("data"), "x://data");
    let objects = Objects::new(SimDisk::new().env(9), &prefix, NAME, 0).unwrap();
    let sweep = thread::spawn(move || {
        let [before, newest] = &saved;
        objects.sweep(epoch, &[newest, before], GRACE).unwrap()
    });
    asked.recv().unwrap();
    nodes.kill(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(1));
    let tablet = nodes.life(1).owned().unwrap().clone();
    assert!(tablet.lacks_checkpoint());
    nodes.store_is_cut[1].store(false, Ordering::Relaxed);
    tablet.checkpoint(nodes.life(1).db()).unwrap();
    assert!(!tablet.lacks_checkpoint());
    goes.send(()).unwrap();
    assert!(sweep.join().unwrap().objects > 0);
    assert_eq!(all(nodes.life(1).db()), wanted, "of the new owner");
    save(&nodes, 1);
    drop(tablet);
    nodes.kill(1);
    let read_wait = Duration::from_secs(1);
    let opened = nodes.world.open_waiting(100, &SimDisk::new(), read_wait);
    let (tablet, db) = opened.unwrap();
    assert_eq!(all(&db), wanted, "of a start");
    assert_eq!(newest(&db, b"sum"), 2);
    tablet.log().give_up();
}

#[test]
fn an_owner_whose_disk_fails_does_not_say_that_objects_are_gone() {
    let (mut nodes, _) = far_behind();
    nodes.kill(0);
    until(&mut nodes, |nodes| nodes.owner() == Some(1));
    let tablet = nodes.life(1).owned().unwrap().clone();
    nodes.store_is_cut[1].store(false, Ordering::Relaxed);
    nodes.disks[1].plan(DiskFault {
        op: Some(Op::Create),
        after: 0,
        trouble: Trouble::Fail(ErrorKind::StorageFull),
    });
    let failed = tablet.checkpoint(nodes.life(1).db()).unwrap_err();
    assert!(matches!(failed, Error::Engine(_)), "{failed}");
    nodes.disks[1].heal();
    tablet.checkpoint(nodes.life(1).db()).unwrap();
    assert_eq!(newest(nodes.life(1).db(), b"sum"), 2);
}
