//! Tables of what is there and what is to be done.

use super::*;
use crate::storage::block::Family;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn block(
    family: Family,
    len_bytes: u64,
    first: Timestamp,
    last: Timestamp,
) -> BlockMeta {
    BlockMeta {
        number: 0,
        partition: 0,
        family,
        len_bytes,
        first,
        last,
        samples: len_bytes / 4,
        entries: 1 + len_bytes / 4096,
        series: 1,
        checksum: 0,
    }
}

fn window(sizes: &[u64], fan: usize) -> Option<Range<usize>> {
    merge_window(sizes, fan, 512 * MIB)
}

#[test]
fn merges_wait_for_enough_neighbours_of_one_size() {
    let cases: &[(&[u64], Option<Range<usize>>)] = &[
        (&[], None),
        (&[7, 7, 7], None),
        (&[7, 7, 7, 7], Some(0..4)),
        (&[7, 7, 7, 7, 7, 7], Some(0..6)),
        // A giant is not rewritten for the sake of scraps.
        (&[1000, 1, 1, 1], None),
        (&[1000, 1, 1, 1, 1], Some(1..5)),
        (&[1000, 64, 16, 4, 1], None),
        // Nor do giants part scraps for good.
        (&[1000, 1, 1000, 1, 1000, 1], Some(0..6)),
        // The small ones first.
        (&[50, 50, 50, 50, 3, 3, 3, 3], Some(4..8)),
        // As large as a file may be: left alone.
        (&[300 * MIB, 300 * MIB, 300 * MIB, 300 * MIB], None),
        (&[100 * MIB; 4], Some(0..4)),
    ];
    for (sizes, expected) in cases {
        assert_eq!(window(sizes, 4), *expected, "{sizes:?}");
    }
}

#[test]
fn sizes_that_never_fit_do_not_pile_up() {
    // Each half of the one before, over and over: no four neighbours are alike.
    let mut sizes: Vec<u64> = Vec::new();
    for step in 0..10_000u64 {
        sizes.push(1 << (20 - step % 21));
        while let Some(window) = window(&sizes, 4) {
            let sum = sizes[window.clone()].iter().sum();
            sizes.splice(window, [sum]);
        }
        assert!(sizes.len() <= 6 * 4 + 80, "{} after {step}", sizes.len());
    }
}

fn folds(groups: &[(usize, usize)]) -> Option<Job> {
    let groups = groups.iter().map(|&(start, end)| start..end);
    Some(Job::Fold(groups.collect()))
}

fn usage_of(base: &[(u64, u64, u64, u64)], late: &[(u64, u64)]) -> BlockUsage {
    BlockUsage {
        base: base
            .iter()
            .map(|&(dead, deleted, live, late)| BaseShare {
                dead_bytes: dead,
                deleted_bytes: deleted,
                live_bytes: live,
                late_bytes: late,
                late_entries: u64::from(late + deleted > 0),
            })
            .collect(),
        late: late
            .iter()
            .map(|&(dead, live)| LateShare {
                dead_bytes: dead,
                live_bytes: live,
                live_entries: u64::from(live > 0),
            })
            .collect(),
        ..BlockUsage::default()
    }
}

fn job(base: &[(u64, u64, u64, u64)], late: &[(u64, u64)], bounds: &Bounds) -> Option<Job> {
    let metas = |sizes: Vec<u64>, family| -> Vec<BlockMeta> {
        let sizes = sizes.into_iter().enumerate();
        sizes
            .map(|(at, size)| block(family, size, at as i64 * 10, at as i64 * 10 + 9))
            .collect()
    };
    let base_metas = metas(base.iter().map(|b| b.0 + b.1 + b.2).collect(), Family::Base);
    let late_metas = metas(late.iter().map(|l| l.0 + l.1).collect(), Family::Late);
    let lists = Lists {
        base: &base_metas,
        late: &late_metas,
    };
    usage_known(lists, &usage_of(base, late), bounds)
}

#[test]
fn block_usage_leads_to_the_job_that_pays() {
    let steady = Bounds::steady(1000);
    let drop = |base: &[usize], late: &[usize]| {
        Some(Job::Drop {
            base: base.to_vec(),
            late: late.to_vec(),
        })
    };
    // (dead, deleted, live, late over it) of base blocks, (dead, live) of late ones.
    assert_eq!(job(&[(0, 0, 100, 0)], &[], &steady), None);
    assert_eq!(job(&[(0, 0, 100, 24)], &[(0, 24)], &steady), None);
    assert_eq!(
        job(&[(0, 0, 100, 25)], &[(0, 25)], &steady),
        folds(&[(0, 1)])
    );
    // Worth it for the block, not for what else would be rewritten.
    assert_eq!(
        job(&[(0, 0, 100, 25), (0, 0, 9000, 900)], &[(0, 925)], &steady),
        None
    );
    assert_eq!(
        job(
            &[
                (0, 0, 300, 90),
                (0, 0, 300, 90),
                (0, 0, 400, 0),
                (0, 0, 900, 800)
            ],
            &[(0, 980)],
            &steady
        ),
        folds(&[(0, 2), (3, 4)])
    );
    assert_eq!(
        job(&[(100, 0, 0, 0), (49, 0, 51, 0)], &[], &steady),
        drop(&[0], &[])
    );
    assert_eq!(
        job(&[(50, 0, 50, 0)], &[], &steady),
        Some(Job::MergeBase(0..1))
    );
    assert_eq!(
        job(&[(10, 40, 50, 0)], &[(0, 1)], &steady),
        folds(&[(0, 1)])
    );
    assert_eq!(
        job(&[(0, 0, 100, 1)], &[(20, 0), (0, 1)], &steady),
        drop(&[], &[0])
    );
    assert_eq!(
        job(&[(0, 0, 100, 1)], &[(0, 9), (20, 10)], &steady),
        Some(Job::MergeLate(1..2))
    );
    // Nothing below the late blocks.
    let late_only = BlockUsage {
        orphan_bytes: 9,
        orphan_entries: 1,
        ..usage_of(&[], &[(0, 9)])
    };
    let metas = [block(Family::Late, 9, 0, 1)];
    let lists = Lists {
        base: &[],
        late: &metas,
    };
    assert_eq!(usage_known(lists, &late_only, &steady), folds(&[(0, 0)]));
}

#[test]
fn asked_for_everything_is_folded() {
    let thorough = Bounds::thorough(1000);
    assert_eq!(
        job(
            &[(0, 0, 100, 1), (0, 0, 100, 0), (0, 0, 100, 1)],
            &[(0, 2)],
            &thorough
        ),
        folds(&[(0, 1), (2, 3)])
    );
    assert_eq!(job(&[(0, 0, 100, 0)], &[], &thorough), None);
    assert_eq!(
        job(&[(5, 0, 95, 0)], &[], &thorough),
        Some(Job::MergeBase(0..1))
    );
    let lists = [
        block(Family::Base, 10, 0, 9),
        block(Family::Base, 900, 10, 19),
    ];
    let lists = Lists {
        base: &lists,
        late: &[],
    };
    assert_eq!(merge(lists, &thorough), Some(Job::MergeBase(0..2)));
}

#[test]
fn blocks_before_the_floor_are_forgotten() {
    let base = [
        block(Family::Base, 10, 0, 9),
        block(Family::Base, 10, 0, 20),
    ];
    let late = [block(Family::Late, 10, 0, 19)];
    let lists = Lists {
        base: &base,
        late: &late,
    };
    assert_eq!(below_floor(lists, 9), None);
    assert_eq!(
        below_floor(lists, 20),
        Some(Job::Drop {
            base: vec![0],
            late: vec![0]
        })
    );
}
