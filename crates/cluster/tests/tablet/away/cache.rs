//! A start with the blocks of an earlier one in its directory, a cache with a limit, a full disk.

use super::{BLOCKS, SAMPLES, add, blocks_on, fill, fill_from, history, query, rows};
use crate::tablet::restore::open_local;
use crate::tablet::world::{DIR, World, once_here};
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::tablet::Tablet;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::io::waiting::no_wait;
use latewood_engine::{Db, ErrorKind};
use latewood_model::DuplicatePolicy;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn a_start_reads_no_block_of_its_cache_and_no_wrong_one_is_served() {
    let (world, wrong, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    tablet.fetch_all(&db);
    while tablet.away_bytes() > 0 {
        std::thread::yield_now();
    }
    tablet.abandon();
    drop((tablet, db));
    let disk = disk.kill();
    let block = |number: usize| {
        let blocks = Path::new(DIR).join("blocks");
        let name = disk.list(&blocks).unwrap().swap_remove(number);
        blocks.join(name)
    };
    // The oldest has a wrong bit, the next is cut.
    let (path, next) = (block(0), block(1));
    let mut bytes = disk.bytes(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    disk.set_bytes(&path, bytes).unwrap();
    disk.set_bytes(&next, b"cut".to_vec()).unwrap();
    read.take();
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world
        .open_waiting(3, &disk, Duration::from_millis(30))
        .unwrap();
    assert_eq!(blocks_on(&disk), 2, "only a length is looked at");
    let last = (BLOCKS - 1) * SAMPLES;
    let found = once_here(|| rows(&db, b"a", &query(last, last + 9)));
    assert_eq!(found.len(), 10);
    assert_eq!(read.take(), [""; 0], "the store is not asked");
    for at in [10, SAMPLES + 10] {
        let refused = rows(&db, b"a", &query(at, at + 9)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Away);
    }
    wrong.store(0, Ordering::Relaxed);
    let all = once_here(|| rows(&db, b"a", &query(0, i64::MAX)));
    assert_eq!(all.len() as i64, BLOCKS * SAMPLES);
    assert_eq!(tablet.away_bytes(), 0);
    // What was verified or fetched is taken by the first checkpoint as it is, and what is removed
    // leaves the disk though it was not verified.
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop((tablet, db));
    let disk = disk.kill();
    let (tablet, db) = world.open(4, &disk).unwrap();
    db.flush_all().unwrap();
    db.flush().unwrap();
    assert_eq!(blocks_on(&disk), 0);
    tablet.abandon();
}

/// A limit under which no block stays that can leave.
const NONE: u64 = 1;

/// Waits until this many blocks have left since the start.
fn wait_for_evictions(tablet: &Tablet, evictions: u64) {
    while tablet.cache().figures().evictions < evictions {
        std::thread::yield_now();
    }
}

fn is_away(db: &Db, block: i64) -> bool {
    db.is_away(block * SAMPLES, block * SAMPLES + SAMPLES - 1)
}

fn assert_all(db: &Db) {
    let all = rows(db, b"a", &query(0, i64::MAX)).unwrap();
    assert_eq!(all.len() as i64, BLOCKS * SAMPLES);
}

#[test]
fn the_block_that_was_read_least_recently_leaves_and_comes_back() {
    let (world, _, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    let all_bytes = tablet.away_bytes();
    let at = |block: i64| query(block * SAMPLES, block * SAMPLES + 9);
    for block in [2, 1, 0] {
        rows(&db, b"a", &at(block)).unwrap();
    }
    assert_eq!(
        (tablet.cache().figures().bytes, read.take().len()),
        (all_bytes, 3)
    );
    tablet.cache().set_bytes_max(all_bytes - 1);
    wait_for_evictions(&tablet, 1);
    assert_eq!(blocks_on(&disk), 2);
    let away = || [0, 1, 2].map(|block| is_away(&db, block));
    assert_eq!(away(), [false, false, true]);
    // Nobody asked for it.
    tablet.fetch_all(&db);
    {
        let _event_loop = no_wait();
        let refused = rows(&db, b"a", &at(2)).unwrap_err();
        assert!(refused.is_away(), "{refused}");
    }
    assert_eq!(rows(&db, b"a", &at(2)).unwrap().len(), 10);
    assert_eq!(away(), [false, true, false]);
    assert_eq!(read.take().len(), 1);
    let figures = tablet.cache().figures();
    assert_eq!((figures.evictions, figures.bytes_max), (2, all_bytes - 1));
    assert!(figures.bytes < all_bytes && figures.evicted_bytes > 0);
    tablet.checkpoint(&db).unwrap();
    assert_all(&db);
    tablet.abandon();
}

#[test]
fn what_only_this_machine_has_stays() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    tablet.cache().set_bytes_max(NONE);
    fill(&db);
    assert_eq!(
        (blocks_on(&disk) as i64, tablet.cache().figures().bytes),
        (BLOCKS, 0)
    );
    tablet.checkpoint(&db).unwrap();
    assert_eq!(blocks_on(&disk), 0);
    assert_all(&db);
    tablet.cache().set_bytes_max(0);
    assert_all(&db);
    while tablet.away_bytes() > 0 {
        assert_all(&db);
        tablet.fetch_all(&db);
        let _ = rows(&db, b"a", &query(0, i64::MAX));
    }
    // An object is deleted: the file is the only copy until a checkpoint uploads it again.
    let lost = world.lose(&world.held("blocks/")[..1]);
    tablet.cache().set_bytes_max(NONE);
    while blocks_on(&disk) > 1 {
        std::thread::yield_now();
    }
    tablet.checkpoint(&db).unwrap();
    assert_eq!(blocks_on(&disk), 0);
    assert!(world.held("blocks/").contains(&lost[0].0));
    assert_all(&db);
    tablet.abandon();
}

#[test]
fn nothing_leaves_for_what_nobody_reads() {
    let (world, _, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    tablet.cache().set_bytes_max(tablet.away_bytes() - 1);
    tablet.fetch_all(&db);
    while (0..BLOCKS).filter(|&block| is_away(&db, block)).count() > 1 {
        std::thread::yield_now();
    }
    tablet.stop_fetching();
    assert_eq!(
        (read.take().len() as i64, blocks_on(&disk) as i64),
        (BLOCKS - 1, BLOCKS - 1)
    );
    assert_eq!(tablet.cache().figures().evictions, 0);
    tablet.abandon();
    drop((tablet, db));
    // Unverified ones leave, too.
    let disk = disk.kill();
    let (tablet, db) = world.open(3, &disk).unwrap();
    tablet.cache().set_bytes_max(NONE);
    wait_for_evictions(&tablet, BLOCKS as u64 - 1);
    assert_eq!(blocks_on(&disk), 0);
    assert_all(&db);
    tablet.abandon();
}

#[test]
fn merges_and_backups_have_what_left() {
    let (world, _, _) = history(|db| fill_from(db, 0, 8));
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    tablet.cache().set_bytes_max(NONE);
    db.backup(Path::new("/copy")).unwrap();
    let local = open_local(&disk.kill(), "/copy").unwrap();
    assert_eq!(
        rows(&local, b"a", &query(0, i64::MAX)).unwrap().len(),
        8_000
    );
    add(&db, b"b", 1, 1.0, DuplicatePolicy::Block).unwrap();
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    assert_eq!(blocks_on(&disk), 0);
    // They are asked for, and merged once they are here.
    tablet.cache().set_bytes_max(1 << 30);
    assert!(!db.merge_step().unwrap());
    while !db.merge_step().unwrap() {
        std::thread::yield_now();
    }
    assert_eq!(db.merge_stats().base_merges, 1);
    assert_eq!(rows(&db, b"a", &query(0, i64::MAX)).unwrap().len(), 8_000);
    tablet.abandon();
}

#[test]
fn a_block_that_found_no_room_comes_once_there_is_some() {
    let (world, _, _) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    // It is full for long: whoever is slow to hear of one attempt hears of another.
    for _ in 0..1_000 {
        disk.plan(Fault {
            op: Some(Op::Create),
            after: 0,
            trouble: Trouble::Fail(io::ErrorKind::StorageFull),
        });
    }
    let refused = rows(&db, b"a", &query(10, 20)).unwrap_err();
    assert!(refused.to_string().contains("cannot"), "{refused}");
    disk.heal();
    // No checkpoint comes meanwhile.
    let found = loop {
        if let Ok(found) = rows(&db, b"a", &query(10, 20)) {
            break found;
        }
        std::thread::yield_now();
    };
    assert_eq!(found.len(), 11);
    tablet.abandon();
}
