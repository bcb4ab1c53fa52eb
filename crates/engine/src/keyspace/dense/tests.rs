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
            let found = dense.find(tag).unwrap();
            let has_any = model.range((tag, 0)..=(tag, u32::MAX)).next().is_some();
            assert_eq!(found.is_some(), has_any, "seed {seed}, step {step}");
            assert!(found.is_none_or(|number| model.contains(&(tag, number))));
        }
        for &(tag, number) in &model {
            assert!(dense.remove(tag, number).unwrap(), "seed {seed}");
        }
        assert_eq!((dense.len(), dense.find(1).unwrap()), (0, None));
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
    let found = |number: u32| dense.find(tag(number)).unwrap() == Some(number);
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
    let missing = (COUNT..2 * COUNT).all(|number| dense.find(tag(number)).unwrap().is_none());
    let reads = disk.count(Op::Read) - before;
    assert!(missing && reads < u64::from(COUNT) / 10, "{reads}");
    let found = |number: u32| dense.find(tag(number)).unwrap() == Some(number);
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
        assert!(dense.find(tag(1)).is_err());
        assert_eq!(dense.find(tag(1)).unwrap(), Some(1));
    }
    fail(Op::Read);
    assert!(dense.remove(tag(1), 1).is_err() && dense.len() == len);
    // It cannot grow, and then it can.
    let mut last = add(&mut dense).unwrap();
    fail(Op::Read);
    last = loop {
        match add(&mut dense) {
            Ok(added) => last = added,
            Err(_) => break last,
        }
    };
    assert_eq!(dense.find(tag(last)).unwrap(), Some(last));
    assert_eq!(dense.find(tag(last + 1)).unwrap(), None);
    let added = add(&mut dense).unwrap();
    assert_eq!(dense.find(tag(added)).unwrap(), Some(added));
    disk.heal();
}
