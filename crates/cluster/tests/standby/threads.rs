//! Nodes with threads of their own, by the clock of this machine.

use super::life::open;
use crate::tablet::world::{World, increment, newest};
use latewood_cluster::kafka::Kafka;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::standby::{Change, Standby};
use latewood_cluster::tablet::Place;
use latewood_engine::RemoteLog;
use latewood_engine::io::Env;
use latewood_engine::io::clock::RealClock;
use latewood_engine::io::sim::SimDisk;
use latewood_offsite::faulty::Fault;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

fn start(world: &World, process: u32) -> (Standby, Receiver<Change>) {
    let kafka = Arc::clone(&world.kafka) as Arc<dyn Kafka>;
    let place = world.place_of(process, &SimDisk::new(), kafka);
    let env = Env {
        clock: Arc::new(RealClock::default()),
        ..place.env
    };
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let on_change = Box::new(move |change| {
        // Who asks no more is gone.
        let _ = tell.lock().unwrap().send(change);
    });
    let standby = open(Place { env, ..place }, process, on_change);
    standby.start().unwrap();
    (standby, told)
}

#[test]
fn a_new_log_is_owned_and_followed_and_taken_over_by_itself() {
    let world = World::new(1, Faults::default());
    let (first, told) = start(&world, 1);
    let follows = told.recv().unwrap();
    assert!(matches!(follows, Change::Follows));
    let Change::Owns(tablet) = told.recv().unwrap() else {
        panic!("it does not own the new log");
    };
    let (second, told_second) = start(&world, 2);
    assert!(matches!(told_second.recv().unwrap(), Change::Follows));
    for at in 0..100 {
        increment(first.db(), b"sum", at);
        if at == 50 {
            first.db().flush().unwrap();
            tablet.checkpoint(first.db()).unwrap();
        }
    }
    let end = first.db().sync().unwrap();
    RemoteLog::close(&**tablet.log()).unwrap();
    let Change::Owns(tablet) = told_second.recv().unwrap() else {
        panic!("it does not own the log that was given up");
    };
    assert!(second.db().position() >= end);
    assert_eq!(newest(second.db(), b"sum"), 100);
    increment(second.db(), b"sum", 100);
    second.db().sync().unwrap();
    drop(first);
    tablet.abandon();
    second.abandon();
}

#[test]
fn a_store_that_hangs_keeps_neither_the_log_nor_the_database() {
    let world = World::new(1, Faults::default());
    let (first, told) = start(&world, 1);
    assert!(matches!(told.recv().unwrap(), Change::Follows));
    let Change::Owns(tablet) = told.recv().unwrap() else {
        panic!("it does not own the new log");
    };
    let (hangs, hung) = (
        Arc::new(AtomicBool::new(false)),
        Arc::<AtomicUsize>::default(),
    );
    let (is_on, count) = (Arc::clone(&hangs), Arc::clone(&hung));
    let store = world.store.with(move |_| {
        if is_on.load(Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
            return Fault::Late(u32::MAX);
        }
        Fault::None
    });
    let hanging = World {
        kafka: Arc::clone(&world.kafka),
        clock: Arc::clone(&world.clock),
        store,
    };
    let (second, told_second) = start(&hanging, 2);
    assert!(matches!(told_second.recv().unwrap(), Change::Follows));
    hangs.store(true, Ordering::SeqCst);
    increment(first.db(), b"sum", 0);
    first.db().flush().unwrap();
    tablet.checkpoint(first.db()).unwrap();
    while hung.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    RemoteLog::close(&**tablet.log()).unwrap();
    drop(first);
    let Change::Owns(tablet) = told_second.recv().unwrap() else {
        panic!("it does not own the log that was given up");
    };
    assert!(tablet.lacks_checkpoint());
    assert_eq!(newest(second.db(), b"sum"), 1);
    // As a server that stops: it closes the database, which gives the log up.
    let db = Arc::clone(second.db());
    drop(second);
    while Arc::strong_count(&db) > 1 {
        std::thread::yield_now();
    }
    Arc::into_inner(db).unwrap().close().unwrap();
    let ended = tablet.log().ended();
    assert!(ended.is_some(), "it said farewell");
}
