//! What may be deleted, and what may not.

use crate::checkpoint::world::{
    DIR, block, bytes, database, load, objects, place, prefix, read, save,
};
use latewood_cluster::checkpoint::{Checkpoint, GRACE, Objects, Swept};
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_offsite::faulty::{Fault, FaultyStore};
use latewood_offsite::run;
use std::collections::BTreeSet;
use std::time::Duration;

fn names(store: &FaultyStore) -> BTreeSet<String> {
    let held = run(place(store).list()).unwrap();
    held.into_iter().map(|held| held.name).collect()
}

fn needed(checkpoint: &Checkpoint) -> BTreeSet<String> {
    let rows = checkpoint.listing.files.iter();
    let objects = rows.map(|row| row.object.clone());
    objects.chain([checkpoint.at.object.clone()]).collect()
}

/// Three checkpoints of one owner, each with another block.
fn three(store: &FaultyStore) -> Vec<Checkpoint> {
    let random = SimRandom::new(1);
    let mut files = database(&random, 2);
    let mut saved: Vec<Checkpoint> = Vec::new();
    for number in 3..6 {
        files.remove(&block(number - 1));
        files.insert(block(number + 10), bytes(&random, 1000));
        files.insert("MANIFEST".to_owned(), bytes(&random, 1000));
        saved.push(save(store, 7, &files, saved.last()).unwrap());
    }
    saved
}

#[test]
fn only_old_objects_that_nobody_needs_go() {
    let store = FaultyStore::good();
    let saved = three(&store);
    let objects = objects(&SimDisk::new(), &store);
    let all = names(&store);
    // Nothing is old, then nothing is unneeded, then no owner may.
    let keep: Vec<&Checkpoint> = saved.iter().collect();
    assert_eq!(
        objects.sweep(7, &keep[2..], GRACE).unwrap(),
        Swept::default()
    );
    store.age(GRACE * 2);
    // The newest object of the store is as old: time stands still without writes.
    assert_eq!(
        objects.sweep(7, &keep[2..], GRACE).unwrap(),
        Swept::default()
    );
    objects.put_latest(&saved[2].at, 12).unwrap();
    assert_eq!(objects.sweep(7, &keep, GRACE).unwrap(), Swept::default());
    assert_eq!(objects.sweep(7, &[], GRACE).unwrap(), Swept::default());
    assert_eq!(
        objects.sweep(6, &keep[2..], GRACE).unwrap(),
        Swept::default()
    );
    let longer = GRACE * 3;
    assert_eq!(
        objects.sweep(7, &keep[2..], longer).unwrap(),
        Swept::default()
    );
    // Of the first, what the other two do not need.
    let swept = objects.sweep(7, &keep[1..], GRACE).unwrap();
    let both: BTreeSet<String> = needed(keep[1]).union(&needed(keep[2])).cloned().collect();
    let mut wanted = both.clone();
    wanted.insert("LATEST".to_owned());
    assert_eq!(names(&store), wanted);
    assert_eq!(swept.objects as usize, all.difference(&both).count());
    assert!(swept.bytes > 0);
    // The next owner, that loaded the last.
    objects.sweep(9, &keep[2..], GRACE).unwrap();
    wanted = needed(keep[2]);
    wanted.insert("LATEST".to_owned());
    assert_eq!(names(&store), wanted);
    let disk = SimDisk::new();
    load(&disk, &store, keep[2]).unwrap();
    assert_eq!(read(&disk, DIR).len(), keep[2].listing.files.len());
}

#[test]
fn a_deposed_owner_leaves_what_its_successor_wrote() {
    let store = FaultyStore::good();
    let saved = three(&store);
    let files = database(&SimRandom::new(2), 3);
    let next = save(&store, 9, &files, Some(&saved[2])).unwrap();
    let place = place(&store);
    for name in ["notes", "0000000000000007", "zz/FORMAT"] {
        run(place.put(name, b"not ours".to_vec())).unwrap();
    }
    store.age(GRACE * 2);
    let objects = objects(&SimDisk::new(), &store);
    objects.put_latest(&next.at, 20).unwrap();
    let before = names(&store);
    let swept = objects.sweep(7, &[&saved[2]], GRACE).unwrap();
    assert!(swept.objects > 0);
    let gone: BTreeSet<String> = before.difference(&names(&store)).cloned().collect();
    assert!(
        gone.iter()
            .all(|name| name.starts_with("0000000000000007/")),
        "{gone:?}"
    );
    let disk = SimDisk::new();
    load(&disk, &store, &next).unwrap();
    assert_eq!(read(&disk, DIR), files);
}

#[test]
fn other_tablets_are_left_alone() {
    let store = FaultyStore::good();
    let saved = three(&store);
    let disk = SimDisk::new();
    let other = Objects::new(disk.env(1), &prefix(&store), "main", 30).unwrap();
    let refused = other.sweep(9, &[&saved[0]], Duration::ZERO).unwrap_err();
    assert!(
        refused.to_string().contains("tablet 3 of cluster"),
        "{refused}"
    );
    // A tablet whose number begins alike.
    let theirs = prefix(&store).below("main/000030");
    run(theirs.put("0000000000000001/FORMAT", b"x".to_vec())).unwrap();
    store.age(GRACE * 2);
    let objects = objects(&disk, &store);
    objects.put_latest(&saved[2].at, 12).unwrap();
    assert!(objects.sweep(7, &[&saved[2]], GRACE).unwrap().objects > 0);
    assert_eq!(run(theirs.list()).unwrap().len(), 1);
}

#[test]
fn a_sweep_cut_anywhere_is_repeated() {
    for number in 0..2 {
        for fault in [Fault::Unavailable, Fault::Broken, Fault::Denied] {
            let store = FaultyStore::good();
            let saved = three(&store);
            store.age(GRACE * 2);
            let disk = SimDisk::new();
            objects(&disk, &store).put_latest(&saved[2].at, 12).unwrap();
            let cut = store.with(move |request| {
                if request.number == number {
                    fault
                } else {
                    Fault::None
                }
            });
            let cut = objects(&disk, &cut)
                .sweep(7, &[&saved[2]], GRACE)
                .unwrap_err();
            assert_eq!(cut.is_temporary(), fault != Fault::Denied, "{cut}");
            load(&disk, &store, &saved[2]).unwrap();
            objects(&disk, &store)
                .sweep(7, &[&saved[2]], GRACE)
                .unwrap();
            let mut wanted = needed(&saved[2]);
            wanted.insert("LATEST".to_owned());
            assert_eq!(names(&store), wanted);
        }
    }
}
