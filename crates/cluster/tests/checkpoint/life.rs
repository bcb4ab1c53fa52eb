//! Random lives of a tablet over a store that fails again and again.

use crate::checkpoint::world::{DIR, Files, block, bytes, database, load, objects, read, save};
use latewood_cluster::checkpoint::{Checkpoint, GRACE, Result};
use latewood_engine::io::Random;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_offsite::faulty::{Fault, FaultyStore};

/// Calls until a call succeeds; each failure must say that trying again may help.
fn repeated<T>(seed: u64, mut call: impl FnMut() -> Result<T>) -> T {
    for _ in 0..200 {
        match call() {
            Ok(done) => return done,
            Err(error) => assert!(error.is_temporary(), "seed {seed}: {error}"),
        }
    }
    panic!("seed {seed}: no call succeeds");
}

/// Flushes and merges: a new block, perhaps one less, and another manifest.
fn change(random: &SimRandom, files: &mut Files, next_block: &mut u64) {
    files.insert(block(*next_block), bytes(random, 3000));
    *next_block += 1;
    if random.below(2) == 0 {
        let blocks = files.keys().filter(|path| path.starts_with("blocks/"));
        let blocks: Vec<String> = blocks.cloned().collect();
        files.remove(&blocks[random.below(blocks.len() as u64) as usize]);
    }
    files.insert("MANIFEST".to_owned(), bytes(random, 500));
    if random.below(4) == 0 {
        files.insert("METADATA".to_owned(), bytes(random, 500));
    }
}

fn live(seed: u64) {
    let random = SimRandom::new(seed);
    let faults = SimRandom::new(random.next_u64());
    let good = FaultyStore::good();
    let store = good.with(move |_| match faults.below(20) {
        0 => Fault::Unavailable,
        1 => Fault::Unanswered,
        2 => Fault::Broken,
        3 => Fault::Late(faults.below(9) as u32),
        _ => Fault::None,
    });
    let disk = SimDisk::new();
    let (mut epoch, mut next_block) = (1, 10);
    let mut files = database(&random, 3);
    // The newest checkpoint that counts, and its files.
    let mut newest: Option<(Checkpoint, Files)> = None;
    for _ in 0..25 {
        let previous = newest.as_ref().map(|(previous, _)| previous);
        match (random.below(4), previous) {
            (2, Some(newest)) => {
                good.age(GRACE * 2);
                repeated(seed, || objects(&disk, &store).put_latest(&newest.at, 1));
                let sweep = || objects(&disk, &store).sweep(epoch, &[newest], GRACE);
                repeated(seed, sweep);
            }
            // A new owner, on a disk with anything that was loaded before. The last
            // checkpoint of the one before it does not count, and the numbers of its
            // files are given again.
            (3, Some(newest)) => {
                let mut lost = files.clone();
                change(&random, &mut lost, &mut next_block.clone());
                let _ = save(&store, epoch, &lost, Some(newest));
                epoch += 1 + random.below(3);
                let load = || objects(&disk, &store).load(&newest.at, DIR.as_ref(), &mut |_| {});
                repeated(seed, load);
                files = read(&disk, DIR);
            }
            // The owner saves.
            _ => {
                change(&random, &mut files, &mut next_block);
                let saved = repeated(seed, || save(&store, epoch, &files, previous));
                newest = Some((saved, files.clone()));
            }
        }
        if let Some((newest, files)) = &newest {
            let fresh = SimDisk::new();
            load(&fresh, &good, newest).unwrap();
            assert_eq!(&read(&fresh, DIR), files, "seed {seed}");
        }
    }
}

#[test]
fn the_newest_checkpoint_is_always_there() {
    for seed in 0..12 {
        live(seed);
    }
}
