//! Preparing the next segment on a slow disk does not block the log. Each wait in
//! these tests ends or fails the test.

use crate::db_support::{last_wins, sample};
use crate::log_support::{append, open};
use latewood_engine::io::sim::{Op, SimDisk};
use latewood_engine::{Db, Durability, Options, Scratch};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes; only a thread that is stuck takes longer.
const STUCK: Duration = Duration::from_secs(60);

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < STUCK, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn writers_go_on_while_the_next_segment_is_made_and_figures_are_asked_for() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let hold = disk.hold(Op::Create);
    let (told, heard) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| log.background_tick().unwrap());
        wait_until("nothing is made", || hold.waiting() == 1);
        // One asks for figures over and over, as INFO does, one writes.
        let log = &log;
        scope.spawn(move || {
            for n in 1..=5 {
                let stats = log.stats();
                told.send((stats.groups, append(log, n).unwrap().0))
                    .unwrap();
            }
        });
        let seen: Vec<_> = (0..5).map(|_| heard.recv_timeout(STUCK)).collect();
        drop(hold);
        let expected: Vec<_> = (0..5).map(|n| Ok((n, n + 1))).collect();
        assert_eq!(seen, expected);
    });
    assert_eq!(disk.count(Op::Create), 2, "one in use and one ahead");
}

#[test]
fn a_full_log_takes_the_segment_that_is_being_made() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let hold = disk.hold(Op::Create);
    thread::scope(|scope| {
        scope.spawn(|| log.background_tick().unwrap());
        wait_until("nothing is made", || hold.waiting() == 1);
        let writer = scope.spawn(|| {
            let mut n = 0;
            while log.stats().segments < 2 {
                n += 1;
                append(&log, n).unwrap();
            }
        });
        drop(hold);
        writer.join().unwrap();
    });
    let made = disk.count(Op::Create);
    assert!((2..=3).contains(&made), "{made} made, at most one ahead");
    log.close().unwrap();
    let (_, seen, report) = open(&disk.env(2)).unwrap();
    assert!(report.clean && seen.is_sorted() && seen.first() == Some(&1));
}

#[test]
fn the_next_segment_is_made_while_a_sync_takes_its_time() {
    let disk = SimDisk::new();
    let options = Options {
        durability: Durability::Interval,
        sync_interval_ms: 20,
        segment_bytes: 64 * 1024,
        shards: 2,
        ..Options::default()
    };
    let db = Db::open(&disk.env(1), Path::new("/db"), options, last_wins()).unwrap();
    let mut scratch = Scratch::new();
    let segments_on_disk = || db.stats().log.unwrap().bytes_on_disk / (64 * 1024);
    wait_until("no segment was made ahead", || segments_on_disk() == 2);
    let hold = disk.hold(Op::Sync);
    let mut timestamp = 0;
    db.append(&[sample(b"k", timestamp, 0.5)], &mut scratch)
        .unwrap();
    wait_until("nothing is synced", || hold.waiting() >= 1);
    let made = disk.count(Op::Create);
    let began = Instant::now();
    while db.stats().log.unwrap().segments < 2 {
        assert!(began.elapsed() < STUCK, "the log does not fill up");
        timestamp += 1;
        db.append(&[sample(b"k", timestamp, 0.1)], &mut scratch)
            .unwrap();
    }
    // Its own first sync is held up too; what counts is that it was begun.
    wait_until("the next segment waits for the sync", || {
        disk.count(Op::Create) > made
    });
    drop(hold);
    db.close().unwrap();
}
