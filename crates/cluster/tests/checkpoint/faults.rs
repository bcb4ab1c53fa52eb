//! Requests, answers and disk operations that fail, each in its turn.

use crate::checkpoint::world::{
    DIR, Files, block, bytes, database, load, place, read, save, watched, write,
};
use latewood_cluster::checkpoint::Checkpoint;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::{Fault as DiskFault, SimDisk, SimRandom, Trouble};
use latewood_offsite::faulty::{Fault, FaultyStore, Request, Verb};
use latewood_offsite::run;
use std::io::ErrorKind;
use std::path::Path;

/// A store in which request `number` goes wrong.
fn failing(store: &FaultyStore, number: u64, fault: Fault) -> FaultyStore {
    store.with(move |request: Request<'_>| {
        if request.number == number {
            fault
        } else {
            Fault::None
        }
    })
}

fn is_database(disk: &SimDisk) -> bool {
    disk.open(&Path::new(DIR).join("FORMAT")).is_ok()
}

/// A file of two parts, so that uploads are cut between them.
fn large(random: &SimRandom) -> Files {
    let mut files = database(random, 1);
    files.insert(block(9), bytes(random, 1).repeat(9 << 20));
    files
}

#[test]
fn an_upload_cut_anywhere_ends_right_when_repeated() {
    let random = SimRandom::new(1);
    let files = large(&random);
    let whole = FaultyStore::good();
    save(&whole, 7, &files, None).unwrap();
    assert!(whole.asked() > 15, "{}", whole.asked());
    for number in 0..whole.asked() {
        for fault in [Fault::Unavailable, Fault::Unanswered] {
            let store = FaultyStore::good();
            let cut = save(&failing(&store, number, fault), 7, &files, None).unwrap_err();
            assert!(cut.is_temporary(), "{number}: {cut}");
            let (store, seen) = watched(&store);
            let held = run(place(&store).list()).unwrap();
            seen.lock().unwrap().clear();
            let saved = save(&store, 7, &files, None).unwrap();
            for (verb, object) in seen.lock().unwrap().drain(..) {
                let is_write = [Verb::Put, Verb::Begin].contains(&verb);
                let is_there = held.iter().any(|held| object.ends_with(&held.name));
                assert!(
                    !is_write || !is_there,
                    "{number}: {object} is written again"
                );
            }
            let disk = SimDisk::new();
            load(&disk, &store, &saved).unwrap();
            assert!(read(&disk, DIR) == files, "{number} {fault:?}");
        }
    }
}

#[test]
fn a_load_cut_anywhere_is_no_database_and_is_mended() {
    let random = SimRandom::new(2);
    let store = FaultyStore::good();
    let (old, new) = (database(&random, 3), database(&random, 4));
    let saved = save(&store, 7, &new, None).unwrap();
    let loaded = store.with(|_| Fault::None);
    load(&SimDisk::new(), &loaded, &saved).unwrap();
    for number in 0..loaded.asked() {
        for fault in [Fault::Unavailable, Fault::Cut, Fault::Broken] {
            let disk = SimDisk::new();
            write(&disk, DIR, &old);
            let failing = failing(&store, number, fault);
            match load(&disk, &failing, &saved) {
                Err(cut) if number == 0 && fault == Fault::Cut => {
                    assert!(!cut.is_temporary(), "wrong bytes of a listing: {cut}");
                }
                Err(cut) => assert!(cut.is_temporary(), "{number} {fault:?}: {cut}"),
                // FORMAT and series may equal those of the directory.
                Ok(_) => assert!(failing.asked() <= number),
            }
            match number {
                0 => assert_eq!(read(&disk, DIR), old),
                _ if failing.asked() > number => assert!(!is_database(&disk)),
                _ => {}
            }
            load(&disk, &store, &saved).unwrap();
            assert_eq!(read(&disk, DIR), new, "{number} {fault:?}");
        }
    }
}

#[test]
fn wrong_bytes_in_the_store_are_refused_by_name() {
    let store = FaultyStore::good();
    let files = database(&SimRandom::new(3), 2);
    let saved = save(&store, 7, &files, None).unwrap();
    let place = place(&store);
    let rows = saved.listing.files.iter();
    let names = rows.map(|row| &row.object).chain([&saved.at.object]);
    for name in names {
        let good = run(place.get(name, 1 << 20)).unwrap().unwrap();
        let mut wrong = good.clone();
        wrong[good.len() / 2] ^= 1;
        let longer = [&good[..], b"x"].concat();
        let shorter = good[..good.len() - 1].to_vec();
        for bad in [None, Some(wrong), Some(longer), Some(shorter)] {
            match bad {
                Some(bytes) => run(place.put(name, bytes)).unwrap(),
                None => run(place.delete(std::slice::from_ref(name))).unwrap(),
            }
            let disk = SimDisk::new();
            let refused = load(&disk, &store, &saved).unwrap_err();
            assert!(
                refused.to_string().contains(name.as_str()),
                "{name}: {refused}"
            );
            assert!(!refused.is_temporary(), "{refused}");
            assert!(!is_database(&disk), "{name}");
            run(place.put(name, good.clone())).unwrap();
            load(&disk, &store, &saved).unwrap();
            assert_eq!(read(&disk, DIR), files);
        }
    }
    // And on the way.
    let wrong = failing(&store, 1, Fault::WrongBit);
    let refused = load(&SimDisk::new(), &wrong, &saved).unwrap_err();
    assert!(
        refused.to_string().contains("does not match its SHA-256"),
        "{refused}"
    );
}

#[test]
fn missing_rights_are_for_good() {
    let store = FaultyStore::good();
    let files = database(&SimRandom::new(4), 2);
    let saved = save(&store, 7, &files, None).unwrap();
    let denied = store.with(|_| Fault::Denied);
    let disk = SimDisk::new();
    for refused in [
        save(&denied, 7, &files, None).unwrap_err(),
        load(&disk, &denied, &saved).unwrap_err(),
    ] {
        assert!(refused.to_string().contains("403"), "{refused}");
        assert!(!refused.is_temporary());
    }
}

#[test]
fn a_slow_store_changes_nothing() {
    let random = SimRandom::new(5);
    let files = large(&random);
    let store = FaultyStore::good();
    let slow = store.with(move |_| Fault::Late(random.below(50) as u32));
    let saved = save(&slow, 7, &files, None).unwrap();
    let disk = SimDisk::new();
    load(&disk, &slow, &saved).unwrap();
    assert!(read(&disk, DIR) == files);
}

/// A directory with an older checkpoint, some of it damaged, and the checkpoint that
/// is to replace it.
struct Change {
    store: FaultyStore,
    old: Files,
    new: Files,
    saved: Checkpoint,
}

impl Change {
    fn new(seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let store = FaultyStore::good();
        let new = database(&random, 3);
        let saved = save(&store, 7, &new, None).unwrap();
        let mut old = new.clone();
        old.remove(&block(2));
        old.insert(block(3), bytes(&random, 1000));
        old.insert(block(8), bytes(&random, 1000));
        old.insert("MANIFEST".to_owned(), bytes(&random, 1000));
        Self {
            store,
            old,
            new,
            saved,
        }
    }

    fn disk(&self) -> SimDisk {
        let disk = SimDisk::new();
        write(&disk, DIR, &self.old);
        disk
    }

    /// What is left is the old database, the new one, or none; and is mended.
    fn check(&self, disk: &SimDisk, what: &str) {
        if is_database(disk) {
            let found = read(disk, DIR);
            assert!(
                found == self.old || found == self.new,
                "{what}: {:?}",
                found.keys()
            );
        }
        load(disk, &self.store, &self.saved).unwrap();
        assert_eq!(read(disk, DIR), self.new, "{what}");
    }
}

#[test]
fn a_power_cut_or_kill_anywhere_in_a_load_is_mended() {
    let change = Change::new(6);
    let disk = change.disk();
    let before = disk.count_all();
    load(&disk, &change.store, &change.saved).unwrap();
    let operations = disk.count_all() - before;
    assert!(operations > 20, "{operations}");
    for after in 0..operations {
        let disk = change.disk();
        disk.plan(DiskFault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        load(&disk, &change.store, &change.saved).unwrap_err();
        change.check(&disk.kill(), &format!("kill at {after}"));
        for seed in 0..10 {
            change.check(&disk.crash(seed), &format!("cut at {after}, seed {seed}"));
        }
    }
    // And after the last.
    for seed in 0..10 {
        let disk = disk.crash(seed);
        assert_eq!(read(&disk, DIR), change.new, "seed {seed}");
    }
}

#[test]
fn a_disk_that_refuses_anything_is_told_of_and_mended() {
    let change = Change::new(7);
    let disk = change.disk();
    let before = disk.count_all();
    load(&disk, &change.store, &change.saved).unwrap();
    for after in 0..disk.count_all() - before {
        let disk = change.disk();
        disk.plan(DiskFault {
            op: None,
            after,
            trouble: Trouble::Fail(ErrorKind::StorageFull),
        });
        let refused = load(&disk, &change.store, &change.saved).unwrap_err();
        assert!(!refused.is_temporary(), "{refused}");
        change.check(&disk, &format!("refused at {after}"));
    }
}
