//! Tables in memory, in files of the machine and on a simulated disk that fails.

use super::*;
use crate::io::Env;
use crate::io::sim::{Fault, Op, SimDisk, Trouble};
use std::collections::BTreeSet;
use std::path::Path;

/// Numbers that look random: xorshift (Marsaglia 2003).
fn random(seed: u64) -> impl FnMut(u64) -> u32 {
    let mut state = seed * 2 + 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 32) % below) as u32
    }
}

fn any(_: u32) -> bool {
    true
}

fn scratch(disk: Arc<dyn Disk>, dir: &Path, from_places: usize) -> Scratch {
    let path = dir.join("words");
    Scratch {
        disk,
        path,
        from_places,
    }
}

fn in_memory(parts: usize) -> Dense {
    let disk = Env::without_files().disk;
    Dense::new(parts, scratch(disk, Path::new("/"), 0))
}

#[test]
fn entries_come_and_go_as_in_a_set() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let mut below = random(seed);
        let from_places = [0, 20, 60, usize::MAX][below(4) as usize];
        let scratch = scratch(Env::real().disk, folder.path(), from_places);
        let (mut dense, mut model) = (Dense::new(4, scratch), BTreeSet::new());
        let mut had_file = false;
        // Few tags, many of them twice and more.
        let tags = [3, 50, 100_000][below(3) as usize];
        for step in 0..4_000 {
            let (tag, number) = (below(tags), below(50));
            let grows = step % 1_000 < 700;
            if below(4) < if grows { 3 } else { 1 } {
                if model.insert((tag, number)) {
                    dense.insert(tag, number).unwrap();
                }
            } else {
                let any = model.range((tag, number)..).next().copied();
                let (tag, number) = any.unwrap_or((tag, number));
                let was_there = model.remove(&(tag, number));
                let removed = dense.remove(tag, number).unwrap();
                assert_eq!(removed, was_there, "seed {seed}");
            }
            assert_eq!(dense.len(), model.len());
            let found = dense.find(tag, any).unwrap();
            let has_any = model.range((tag, 0)..=(tag, u32::MAX)).next().is_some();
            assert_eq!(found.is_some(), has_any, "seed {seed}, step {step}");
            assert!(found.is_none_or(|number| model.contains(&(tag, number))));
            had_file |= dense.len() > 100 && dense.memory_bytes() < dense.len() * 4;
        }
        if tags > 3 {
            assert_eq!(had_file, from_places <= 60, "seed {seed}");
        }
        for &(tag, number) in &model {
            assert!(dense.remove(tag, number).unwrap(), "seed {seed}");
        }
        assert_eq!((dense.len(), dense.find(1, any).unwrap()), (0, None));
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

const COUNT: u32 = 200_000;

fn tag(number: u32) -> u32 {
    number.wrapping_mul(0x85eb_ca6b)
}

#[test]
fn it_is_nearly_full_at_any_size() {
    let mut dense = in_memory(16);
    for number in 0..COUNT {
        dense.insert(tag(number), number).unwrap();
        let bytes = dense.memory_bytes();
        assert!(
            number < 20_000 || bytes <= number as usize * 25 / 2,
            "{bytes} for {number}"
        );
    }
    let found = |number: u32| dense.find(tag(number), any).unwrap() == Some(number);
    assert!((0..COUNT).all(found));
    let full = dense.memory_bytes();
    for number in 1_000..COUNT {
        assert!(dense.remove(tag(number), number).unwrap());
    }
    assert!(dense.memory_bytes() < full / 8);
    dense.clear();
    assert_eq!((dense.len(), dense.memory_bytes()), (0, 0));
}

#[test]
fn a_large_one_takes_little_memory_and_few_reads_say_what_is_not_there() {
    let disk = SimDisk::new();
    let scratch = scratch(Arc::new(disk.clone()), Path::new("/"), 1_000);
    // What a killed process left.
    disk.create(&scratch.path, 5).unwrap();
    let mut dense = Dense::new(16, scratch);
    (0..COUNT).for_each(|number| dense.insert(tag(number), number).unwrap());
    let bytes = dense.memory_bytes();
    assert!(bytes <= COUNT as usize * 3 / 2, "{bytes}");
    assert_eq!(disk.list(Path::new("/")).unwrap(), [""; 0]);
    let before = disk.count(Op::Read);
    let missing = (COUNT..2 * COUNT).all(|number| dense.find(tag(number), any).unwrap().is_none());
    let reads = disk.count(Op::Read) - before;
    assert!(missing && reads < u64::from(COUNT) / 10, "{reads}");
    let found = |number: u32| dense.find(tag(number), any).unwrap() == Some(number);
    assert!((0..COUNT).all(found));
}

#[test]
fn what_fails_changes_nothing() {
    let disk = SimDisk::new();
    let fail = |op| {
        let trouble = Trouble::Fail(ErrorKind::Other);
        let fault = |op| Fault {
            op: Some(op),
            after: 0,
            trouble,
        };
        disk.plan(fault(op));
    };
    let mut dense = Dense::new(1, scratch(Arc::new(disk.clone()), Path::new("/"), 100));
    // Words stay in memory where no file can be made, and go there later.
    fail(Op::Create);
    let mut next = 0;
    let mut add = |dense: &mut Dense| {
        next += 1;
        dense.insert(tag(next), next).map(|()| next)
    };
    let is_in_memory = |dense: &Dense| dense.memory_bytes() >= dense.len() * WORD_BYTES;
    while dense.len() < 90 {
        add(&mut dense).unwrap();
    }
    assert!(is_in_memory(&dense) && disk.count(Op::Create) == 1);
    while dense.len() < 150 {
        add(&mut dense).unwrap();
    }
    assert!(!is_in_memory(&dense));
    let len = dense.len();
    fail(Op::Write);
    assert!(add(&mut dense).is_err() && dense.len() == len);
    for _ in 0..2 {
        fail(Op::Read);
        assert!(dense.find(tag(1), any).is_err());
        assert_eq!(dense.find(tag(1), any).unwrap(), Some(1));
    }
    fail(Op::Read);
    assert!(dense.remove(tag(1), 1).is_err() && dense.len() == len);
    // What the disk did not take is no entry that is not there.
    let lost = Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Skip,
    };
    disk.plan(lost);
    let added = add(&mut dense).unwrap();
    assert_eq!(
        dense.find(tag(added), any).unwrap_err().kind(),
        ErrorKind::InvalidData
    );
    assert!(dense.remove(tag(added), added).is_err());
}

#[test]
fn a_part_that_cannot_grow_is_tried_again_after_a_while() {
    for op in [Op::Read, Op::Create, Op::Remove, Op::Write] {
        let disk = SimDisk::new();
        let mut dense = Dense::new(1, scratch(Arc::new(disk.clone()), Path::new("/"), 1));
        let mut next = 0;
        while dense.len() < 500 {
            next += 1;
            dense.insert(tag(next), next).unwrap();
        }
        let created = disk.count(Op::Create);
        while disk.count(Op::Create) == created && dense.insert(tag(next + 1), next + 1).is_ok() {
            next += 1;
            // One write is that of a word.
            let after = u64::from(op == Op::Write);
            let trouble = Trouble::Fail(ErrorKind::Other);
            disk.heal();
            disk.plan(Fault {
                op: Some(op),
                after,
                trouble,
            });
        }
        disk.heal();
        let (len, bytes) = (dense.len(), dense.memory_bytes());
        let tries = (1..).find(|_| dense.insert(tag(next + 1), next + 1).is_ok());
        assert!(tries > Some(PAUSE) || op == Op::Write, "{op:?}: {tries:?}");
        assert!(dense.len() == len + 1 && dense.memory_bytes() >= bytes);
        let found = |number: u32| dense.find(tag(number), any).unwrap() == Some(number);
        assert!((1..=next + 1).all(found), "{op:?}");
    }
}

#[test]
fn what_comes_and_goes_takes_no_more_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut dense = Dense::new(1, scratch(Env::real().disk, folder.path(), 1));
    for number in 0..100_000 {
        dense.insert(tag(number), number).unwrap();
        if let Some(old) = number.checked_sub(1_000) {
            assert!(dense.remove(tag(old), old).unwrap());
        }
    }
    assert!(
        dense.len() == 1_000 && dense.memory_bytes() < 2_500,
        "{}",
        dense.memory_bytes()
    );
}

#[test]
fn what_was_gathered_is_as_if_it_had_come_one_by_one() {
    const SOME: u32 = 5_000;
    // Gathered in memory and in a file, settled in memory and in one.
    for from_places in [0, usize::MAX] {
        let disk = SimDisk::new();
        let scratch = scratch(Arc::new(disk.clone()), Path::new("/"), from_places);
        let mut dense = Dense::new(4, scratch);
        dense.insert(tag(1), SOME).unwrap();
        for number in 0..SOME {
            dense.gather(tag(number), number).unwrap();
        }
        dense.gather(tag(7), SOME + 1).unwrap();
        assert_eq!((dense.len(), dense.find(tag(7), any).unwrap()), (1, None));
        let (mut met, mut twins) = (Vec::new(), Vec::new());
        let settled = dense.settle(|_, number, is_twin| {
            met.push(number);
            twins.extend(is_twin.then_some(number));
        });
        settled.unwrap().unwrap();
        met.sort_unstable();
        twins.sort_unstable();
        assert!(met.into_iter().eq((0..SOME).chain([SOME + 1])));
        assert_eq!(twins, [1, SOME + 1]);
        assert_eq!(dense.len() as u32, SOME + 2);
        for number in 0..SOME {
            let found = dense.find(tag(number), |found| found == number).unwrap();
            assert_eq!(found, Some(number));
            assert!(dense.remove(tag(number), number).unwrap());
        }
        assert_eq!(disk.list(Path::new("/")).unwrap(), [""; 0]);
        dense.settle(|_, _, _| unreachable!()).unwrap().unwrap();
        assert_eq!(dense.len(), 2);
    }
}

#[test]
fn gathered_entries_stay_in_memory_where_no_file_is_and_lost_ones_are_an_error() {
    let trouble = Trouble::Fail(ErrorKind::StorageFull);
    for (op, trouble) in [
        (Op::Create, trouble),
        (Op::Write, trouble),
        (Op::Write, Trouble::Skip),
        (Op::Read, Trouble::Fail(ErrorKind::Other)),
    ] {
        let disk = SimDisk::new();
        let mut dense = Dense::new(1, scratch(Arc::new(disk.clone()), Path::new("/"), 100));
        let gather = |dense: &mut Dense| {
            (0..300)
                .filter(|&number| dense.gather(tag(number), number).is_err())
                .count()
        };
        disk.plan(Fault {
            op: Some(op),
            after: 0,
            trouble,
        });
        let refused = gather(&mut dense);
        let is_kept = matches!(trouble, Trouble::Fail(ErrorKind::StorageFull));
        assert_eq!(refused, usize::from(is_kept));
        let settled = dense.settle(|_, _, _| {});
        assert_eq!(settled.is_ok(), is_kept, "{op:?}");
        let found = |number: u32| dense.find(tag(number), any).unwrap() == Some(number);
        assert!(!is_kept || (0..300).all(found));
        assert_eq!(dense.len(), if is_kept { 300 } else { 0 });
    }
    // Nor is there a file for what is settled.
    let disk = SimDisk::new();
    let mut dense = Dense::new(1, scratch(Arc::new(disk.clone()), Path::new("/"), 100));
    (0..300).for_each(|number| dense.gather(tag(number), number).unwrap());
    disk.plan(Fault {
        op: Some(Op::Create),
        after: 0,
        trouble,
    });
    assert!(dense.settle(|_, _, _| {}).unwrap().is_err());
    assert_eq!(dense.find(tag(299), any).unwrap(), Some(299));
}
