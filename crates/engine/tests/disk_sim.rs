//! The simulated disk does what it says: it loses only what it may, and it
//! does lose it. A simulator that forgives proves nothing.

use latewood_engine::ErrorKind;
use latewood_engine::io::directory::open_directory;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::io::{Clock, Disk, Random, sim};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

const SEEDS: u64 = 200;

fn disk_with_file() -> (SimDisk, std::path::PathBuf) {
    let disk = SimDisk::new();
    let dir = Path::new("/d");
    disk.create_dir_all(dir).unwrap();
    let path = dir.join("file");
    let file = disk.create(&path, 2048).unwrap();
    file.write_at(&[1; 2048], 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(dir).unwrap();
    (disk, path)
}

#[test]
fn a_crash_keeps_what_was_synced_and_loses_keeps_and_tears_the_rest() {
    let (disk, path) = disk_with_file();
    disk.open_to_write(&path)
        .unwrap()
        .write_at(&[2; 512], 512)
        .unwrap();
    assert_eq!(disk.unsynced_sectors(), 1);
    let mut fates = BTreeSet::new();
    for seed in 0..SEEDS {
        let bytes = disk.crash(seed).bytes(&path).unwrap();
        assert_eq!(bytes[..512], [1; 512]);
        assert_eq!(bytes[1024..], [1; 1024]);
        let new = bytes[512..1024].iter().filter(|&&byte| byte == 2).count();
        fates.insert(match new {
            0 => "lost",
            512 => "kept",
            _ => "torn",
        });
    }
    assert_eq!(fates.len(), 3, "{fates:?}");
}

#[test]
fn a_killed_process_keeps_its_writes_but_does_not_make_them_durable() {
    let (disk, path) = disk_with_file();
    disk.open_to_write(&path)
        .unwrap()
        .write_at(&[2; 512], 0)
        .unwrap();
    let killed = disk.kill();
    assert_eq!(killed.bytes(&path).unwrap()[..512], [2; 512]);
    let lost = (0..SEEDS).any(|seed| killed.crash(seed).bytes(&path).unwrap()[..512] == [1; 512]);
    assert!(lost);
}

#[test]
fn names_wait_for_the_sync_of_their_directory() {
    let (disk, path) = disk_with_file();
    let moved = Path::new("/d/moved");
    disk.rename(&path, moved).unwrap();
    let names: BTreeSet<_> = (0..SEEDS)
        .map(|seed| disk.crash(seed).list(Path::new("/d")).unwrap())
        .collect();
    let both = [vec!["file".to_owned()], vec!["moved".to_owned()]];
    assert_eq!(names, BTreeSet::from(both));
    disk.sync_dir(Path::new("/d")).unwrap();
    for seed in 0..SEEDS {
        assert_eq!(disk.crash(seed).list(Path::new("/d")).unwrap(), ["moved"]);
    }
}

#[test]
fn a_failed_sync_loses_its_pages_for_good() {
    let (disk, path) = disk_with_file();
    disk.plan(Fault {
        op: Some(Op::Sync),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    let file = disk.open_to_write(&path).unwrap();
    file.write_at(&[2; 512], 0).unwrap();
    file.sync().unwrap_err();
    file.sync().unwrap();
    for seed in 0..SEEDS {
        assert_eq!(disk.crash(seed).bytes(&path).unwrap()[..512], [1; 512]);
    }
    // Memory still has them.
    let killed = disk.kill();
    killed.open_to_write(&path).unwrap().sync_again().unwrap();
    for seed in 0..SEEDS {
        assert_eq!(killed.crash(seed).bytes(&path).unwrap()[..512], [2; 512]);
    }
}

#[test]
fn a_power_cut_ends_everything() {
    let (disk, path) = disk_with_file();
    disk.plan(Fault {
        op: Some(Op::Write),
        after: 1,
        trouble: Trouble::PowerCut,
    });
    let file = disk.open_to_write(&path).unwrap();
    file.write_at(&[2], 0).unwrap();
    file.write_at(&[2], 1).unwrap_err();
    file.sync().unwrap_err();
    disk.open(&path).unwrap_err();
    let kept = (0..SEEDS).map(|seed| disk.crash(seed).bytes(&path).unwrap()[1]);
    assert_eq!(kept.collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
}

#[test]
fn seeds_repeat_and_time_stands_still() {
    let (disk, path) = disk_with_file();
    disk.open_to_write(&path)
        .unwrap()
        .write_at(&[2; 2048], 0)
        .unwrap();
    for seed in 0..20 {
        let [one, two] = [(); 2].map(|()| disk.crash(seed).bytes(&path).unwrap());
        assert_eq!(one, two);
    }
    let [one, two] = [(); 2].map(|()| sim::SimRandom::new(7).next_u64());
    assert_eq!(one, two);
    let clock = sim::SimClock::default();
    let before = (clock.now_ms(), clock.monotonic_ns());
    assert_eq!(before, (clock.now_ms(), clock.monotonic_ns()));
    clock.advance_ms(5);
    assert_eq!(clock.now_ms(), before.0 + 5);
    assert_eq!(clock.monotonic_ns(), before.1 + 5_000_000);
}

/// Opens a directory, then crashes; whether the next open finds it as it was.
fn directory_survives(skip: &[(Op, u64)]) -> bool {
    let dir = Path::new("/data");
    let disk = SimDisk::new();
    for &(op, after) in skip {
        disk.plan(Fault {
            op: Some(op),
            after,
            trouble: Trouble::Skip,
        });
    }
    let Ok(guard) = open_directory(&disk.env(1), dir) else {
        return false;
    };
    // What follows in a real directory: a durable log segment.
    let log = guard.log_dir();
    let name = "segment-0000000000000001.wal";
    disk.create(&log.join(name), 0).unwrap();
    disk.sync_dir(&log).unwrap();
    (0..SEEDS).all(|seed| {
        let crashed = disk.crash(seed);
        let opened = open_directory(&crashed.env(1), dir);
        if let Err(error) = &opened {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
        opened.is_ok_and(|_| crashed.bytes(&log.join(name)).is_ok())
    })
}

#[test]
fn every_sync_and_rename_of_a_new_directory_is_needed() {
    assert!(directory_survives(&[]));
    // What makes a directory is synced again when one inside it is made.
    let [made, again, log] = [0, 2, 3].map(|nth| (Op::SyncDir, nth));
    for skipped in [
        &[(Op::Sync, 0)][..],
        &[(Op::Rename, 0)],
        &[made, again],
        &[log],
    ] {
        assert!(!directory_survives(skipped), "{skipped:?}");
    }
}

/// What one life makes and another writes to: the process is killed at any operation of the
/// first, and then the power is cut.
#[test]
fn a_file_in_directories_that_a_killed_process_made_survives() {
    let (dir, path) = (Path::new("/a/b/c"), Path::new("/a/b/c/file"));
    for after in 0..7 {
        let disk = SimDisk::new();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let made = disk.create_dir_all(dir);
        assert_eq!(made.is_err(), after < 6, "operation {after}");
        let killed = disk.kill();
        killed.create_dir_all(dir).unwrap();
        killed.create(path, 8).unwrap().sync().unwrap();
        killed.sync_dir(dir).unwrap();
        for seed in 0..SEEDS {
            assert_eq!(killed.crash(seed).bytes(path).unwrap(), [0; 8]);
        }
    }
}

#[test]
fn a_directory_that_was_not_synced_takes_its_files_with_it() {
    let (dir, path) = (Path::new("/a"), Path::new("/a/file"));
    let disk = SimDisk::new();
    disk.plan(Fault {
        op: Some(Op::SyncDir),
        after: 0,
        trouble: Trouble::Skip,
    });
    disk.create_dir_all(dir).unwrap();
    disk.create(path, 8).unwrap().sync().unwrap();
    disk.sync_dir(dir).unwrap();
    let kept = (0..SEEDS).map(|seed| {
        let crashed = disk.crash(seed);
        assert_eq!(crashed.list(dir).is_ok(), crashed.bytes(path).is_ok());
        crashed.bytes(path).is_ok()
    });
    assert_eq!(kept.collect::<BTreeSet<_>>(), BTreeSet::from([false, true]));
}

/// As through a mapping: whole pages behind one that is lost.
#[test]
fn a_crash_keeps_and_loses_whole_pages_in_any_order() {
    let disk = SimDisk::new();
    let path = Path::new("/file");
    let file = disk.create(path, 4 * 4096).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(&[1; 4 * 4096], 0).unwrap();
    let fates = (0..20 * SEEDS).map(|seed| {
        let bytes = disk.crash(seed).bytes(path).unwrap();
        let pages = bytes.chunks(4096);
        pages
            .map(|page| page.iter().map(|&byte| usize::from(byte)).sum::<usize>())
            .filter_map(|kept| [0, 4096].iter().position(|&whole| whole == kept))
            .collect::<Vec<_>>()
    });
    let fates: BTreeSet<_> = fates.filter(|fates| fates.len() == 4).collect();
    assert_eq!(fates.len(), 16, "{fates:?}");
}

#[test]
fn a_directory_opens_after_a_power_cut_at_any_operation() {
    let dir = Path::new("/data");
    let whole = SimDisk::new();
    open_directory(&whole.env(1), dir).unwrap();
    for after in 0..=whole.count_all() {
        let disk = SimDisk::new();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let opened = open_directory(&disk.env(1), dir);
        assert_eq!(
            opened.is_err(),
            after < whole.count_all(),
            "operation {after}"
        );
        for seed in 0..SEEDS {
            open_directory(&disk.crash(seed).env(1), dir).unwrap();
        }
    }
}
