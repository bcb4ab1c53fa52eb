//! A start with the blocks of an earlier one in its directory.

use super::{BLOCKS, SAMPLES, blocks_on, fill, history, query, rows};
use crate::tablet::world::DIR;
use latewood_engine::ErrorKind;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
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
    loop {
        match rows(&db, b"a", &query(last, last + 9)) {
            Ok(found) => break assert_eq!(found.len(), 10),
            Err(error) => assert!(error.is_away(), "{error}"),
        }
    }
    assert_eq!(read.take(), [""; 0], "the store is not asked");
    for at in [10, SAMPLES + 10] {
        let refused = rows(&db, b"a", &query(at, at + 9)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Away);
    }
    wrong.store(0, Ordering::Relaxed);
    let all = loop {
        match rows(&db, b"a", &query(0, i64::MAX)) {
            Ok(all) => break all,
            Err(error) => assert!(error.is_away(), "{error}"),
        }
    };
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
