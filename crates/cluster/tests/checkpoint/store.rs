//! A store that is no longer what it was when the next checkpoint is saved.

use crate::checkpoint::world::{
    DIR, FOLDER, block, bytes, database, load, objects, place, read, save, write,
};
use latewood_cluster::checkpoint::{Checkpoint, CheckpointError};
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_offsite::faulty::FaultyStore;
use latewood_offsite::run;
use std::path::Path;

fn listings(store: &FaultyStore) -> usize {
    let held = run(place(store).list()).unwrap();
    let names = held.iter().map(|held| &held.name);
    names.filter(|name| name.contains("CHECKPOINT")).count()
}

#[test]
fn objects_that_went_are_uploaded_again() {
    let random = SimRandom::new(1);
    let mut files = database(&random, 3);
    let count = files.len();
    for number in 0..count {
        for is_cut in [false, true] {
            let store = FaultyStore::good();
            let first = save(&store, 7, &files, None).unwrap();
            let name = &first.listing.files[number].object;
            if is_cut {
                run(place(&store).put(name, b"cut".to_vec())).unwrap();
            } else {
                run(place(&store).delete(std::slice::from_ref(name))).unwrap();
            }
            files.insert("MANIFEST".to_owned(), bytes(&random, 500));
            let next = save(&store, 7, &files, Some(&first)).unwrap();
            let disk = SimDisk::new();
            load(&disk, &store, &next).unwrap();
            assert_eq!(read(&disk, DIR), files, "{name}");
        }
    }
}

#[test]
fn a_store_without_the_newest_listing_takes_no_other() {
    let random = SimRandom::new(2);
    let files = database(&random, 3);
    // It alone, everything, and another store.
    for what in 0..3 {
        let mut store = FaultyStore::good();
        let first = save(&store, 7, &files, None).unwrap();
        let held = run(place(&store).list()).unwrap();
        let mut gone: Vec<String> = held.into_iter().map(|held| held.name).collect();
        match what {
            0 => gone.retain(|name| *name == first.at.object),
            1 => {}
            _ => store = FaultyStore::good(),
        }
        run(place(&store).delete(&gone)).unwrap();
        let refused = save(&store, 7, &files, Some(&first)).unwrap_err();
        assert!(
            matches!(refused, CheckpointError::Emptied { .. }) && !refused.is_temporary(),
            "{refused}"
        );
        assert!(refused.to_string().contains(&first.at.object), "{refused}");
        assert_eq!(listings(&store), 0);
    }
}

/// The rows of an old listing are of this epoch's owner, or of one that numbered its files
/// by itself.
#[test]
fn a_file_of_another_epoch_is_taken_for_equal_bytes_only() {
    let (random, store) = (SimRandom::new(3), FaultyStore::good());
    let files = database(&random, 2);
    let first = save(&store, 7, &files, None).unwrap();
    let mut other = files.clone();
    let same_length: Vec<u8> = files[&block(2)].iter().map(|byte| byte ^ 1).collect();
    other.insert(block(2), same_length);
    let next = save(&store, 9, &other, Some(&first)).unwrap();
    let rows = |checkpoint: &Checkpoint, number| checkpoint.listing.row(&block(number)).cloned();
    assert_ne!(rows(&next, 2), rows(&first, 2));
    assert_eq!(rows(&next, 3), rows(&first, 3), "the same bytes");
    let disk = SimDisk::new();
    load(&disk, &store, &next).unwrap();
    assert_eq!(read(&disk, DIR), other);
    // In one epoch, and where this process verified them, they are not read again.
    for (epoch, is_loaded) in [(7, false), (9, true)] {
        let disk = SimDisk::new();
        let objects = objects(&disk, &store);
        if is_loaded {
            objects
                .load(&first.at, Path::new(DIR), &mut |_| {})
                .unwrap();
        }
        write(&disk, FOLDER, &other);
        let next = objects.save(epoch, Path::new(FOLDER), Some(&first));
        assert_eq!(rows(&next.unwrap(), 2), rows(&first, 2));
    }
}
