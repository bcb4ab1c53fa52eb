//! The planner's tables, and histories of years on blocks that are only sizes.

use super::*;
use crate::block::Family;

const MIB: u64 = 1 << 20;

fn block(family: Family, len_bytes: u64, first: Timestamp, last: Timestamp) -> BlockMeta {
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

fn survey_of(base: &[(u64, u64, u64, u64)], late: &[(u64, u64)]) -> Survey {
    Survey {
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
        ..Survey::default()
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
    surveyed(lists, &survey_of(base, late), bounds)
}

#[test]
fn a_survey_leads_to_the_job_that_pays() {
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
        Some(Job::Fold(vec![0..1]))
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
        Some(Job::Fold(vec![0..2, 3..4]))
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
        Some(Job::Fold(vec![0..1]))
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
    let late_only = Survey {
        orphan_bytes: 9,
        orphan_entries: 1,
        ..survey_of(&[], &[(0, 9)])
    };
    let metas = [block(Family::Late, 9, 0, 1)];
    let lists = Lists {
        base: &[],
        late: &metas,
    };
    assert_eq!(
        surveyed(lists, &late_only, &steady),
        Some(Job::Fold(vec![0..0]))
    );
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
        Some(Job::Fold(vec![0..1, 2..3]))
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

/// A partition whose blocks are sizes and spans of time.
#[derive(Default)]
struct History {
    base: Vec<BlockMeta>,
    late: Vec<BlockMeta>,
    late_bytes_seen: u64,
    came_bytes: u64,
    written_bytes: u64,
    surveyed_bytes: u64,
    base_blocks_max: usize,
    late_blocks_max: usize,
    late_share_max: f64,
}

impl History {
    /// A flush of what is in order, and of what is late from `first` to `last`.
    fn flush(&mut self, in_order: u64, span: (i64, i64), late: u64, over: (i64, i64)) {
        self.came_bytes += in_order + late;
        self.written_bytes += in_order + late;
        if in_order > 0 {
            self.base
                .push(block(Family::Base, in_order, span.0, span.1));
        }
        if late > 0 {
            self.late.push(block(Family::Late, late, over.0, over.1));
        }
        while self.compact() {}
        self.base_blocks_max = self.base_blocks_max.max(self.base.len());
        self.late_blocks_max = self.late_blocks_max.max(self.late.len());
        let (base, late) = (self.lists().base_bytes(), self.lists().late_bytes());
        if base > 64 * MIB {
            self.late_share_max = self.late_share_max.max(late as f64 / base as f64);
        }
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            base: &self.base,
            late: &self.late,
        }
    }

    /// Late bytes over each base block, spread evenly over each late block's span.
    fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        for (place, block) in self.base.iter().enumerate() {
            let first = if place == 0 {
                i64::MIN / 4
            } else {
                block.first
            };
            let end = self
                .base
                .get(place + 1)
                .map_or(i64::MAX / 4, |next| next.first);
            let mut over = 0.0;
            for late in &self.late {
                let span = (late.last - late.first + 1) as f64;
                let met = (late.last + 1).min(end) - late.first.max(first);
                over += late.len_bytes as f64 * met.max(0) as f64 / span;
            }
            survey.base.push(BaseShare {
                live_bytes: block.len_bytes,
                late_bytes: over as u64,
                late_entries: u64::from(over >= 1.0),
                ..BaseShare::default()
            });
        }
        let shares = self.late.iter().map(|late| LateShare {
            live_bytes: late.len_bytes,
            live_entries: 1,
            ..LateShare::default()
        });
        survey.late = shares.collect();
        survey
    }

    fn compact(&mut self) -> bool {
        let bounds = Bounds::steady(512 * MIB);
        if survey_due(self.lists(), self.late_bytes_seen) {
            self.surveyed_bytes += (self.lists().base_bytes() + self.lists().late_bytes()) / 100;
            self.late_bytes_seen = self.lists().late_bytes();
            let survey = self.survey();
            if let Some(Job::Fold(groups)) = surveyed(self.lists(), &survey, &bounds) {
                self.fold(&groups, &survey);
                self.late_bytes_seen = self.lists().late_bytes();
                return true;
            }
        }
        match merge(self.lists(), &bounds) {
            Some(Job::MergeBase(window)) => {
                self.written_bytes += merge_metas(&mut self.base, window);
                true
            }
            Some(Job::MergeLate(window)) => {
                self.written_bytes += merge_metas(&mut self.late, window);
                true
            }
            _ => false,
        }
    }

    fn fold(&mut self, groups: &[Range<usize>], survey: &Survey) {
        let mut left = self.lists().late_bytes();
        for group in groups.iter().rev() {
            let folded: u64 = survey.base[group.clone()]
                .iter()
                .map(|b| b.late_bytes)
                .sum();
            left = left.saturating_sub(folded);
            let inputs = &self.base[group.clone()];
            let size = inputs.iter().map(|b| b.len_bytes).sum::<u64>() + folded;
            // What is older than all base blocks makes the first reach back.
            let reach = self.late.iter().map(|late| late.first).min().unwrap_or(0);
            let first = if group.start == 0 {
                inputs[0].first.min(reach)
            } else {
                inputs[0].first
            };
            let last = inputs.iter().map(|b| b.last).max().unwrap();
            self.written_bytes += size;
            let parts = size.div_ceil(512 * MIB) as i64;
            let step = (last - first + 1) / parts;
            let outputs: Vec<_> = (0..parts)
                .map(|part| {
                    let start = first + part * step;
                    let end = if part + 1 == parts {
                        last
                    } else {
                        start + step - 1
                    };
                    block(Family::Base, size / parts as u64, start, end)
                })
                .collect();
            self.base.splice(group.clone(), outputs);
        }
        self.written_bytes += left;
        let (first, last) = (
            self.late[0].first,
            self.late.iter().map(|l| l.last).max().unwrap(),
        );
        self.late.clear();
        if left > 0 {
            self.late.push(block(Family::Late, left, first, last));
        }
    }

    fn amplification(&self) -> f64 {
        self.written_bytes as f64 / self.came_bytes as f64
    }

    fn report(&self, name: &str) {
        println!(
            "{name}: {} MiB came, amplification {:.2}, base blocks {} (most {}), late blocks {} (most {}), \
             late bytes over base at most {:.2}, index bytes read {:.2} of what came",
            self.came_bytes / MIB,
            self.amplification(),
            self.base.len(),
            self.base_blocks_max,
            self.late.len(),
            self.late_blocks_max,
            self.late_share_max,
            self.surveyed_bytes as f64 / self.came_bytes as f64,
        );
    }
}

/// Merges a stretch; the bytes written.
fn merge_metas(blocks: &mut Vec<BlockMeta>, window: Range<usize>) -> u64 {
    let inputs = &blocks[window.clone()];
    let size = inputs.iter().map(|b| b.len_bytes).sum();
    let first = inputs.iter().map(|b| b.first).min().unwrap();
    let last = inputs.iter().map(|b| b.last).max().unwrap();
    let merged = block(inputs[0].family, size, first, last);
    blocks.splice(window, [merged]);
    size
}

#[test]
fn in_order_a_byte_is_written_about_thrice() {
    let mut history = History::default();
    for step in 0..4_000 {
        history.flush(8 * MIB, (step * 100, step * 100 + 99), 0, (0, 0));
    }
    history.report("in order");
    assert!(history.amplification() < 3.2);
    assert!(history.base_blocks_max < 4_000 * 8 / 256 + 16);
}

#[test]
fn ten_percent_late_stays_cheap() {
    // Late by up to all that came before.
    let mut history = History::default();
    for step in 1..4_000 {
        let span = (step * 100, step * 100 + 99);
        history.flush(8 * MIB * 9 / 10, span, 8 * MIB / 10, (0, step * 100));
    }
    history.report("10 % late over all time");
    assert!(history.amplification() < 4.0);
    assert!(history.late_blocks_max <= 24 && history.late_share_max < 0.5);
    // Late by an hour at most, a hundred flushes' worth.
    let mut history = History::default();
    for step in 1..4_000 {
        let span = (step * 100, step * 100 + 99);
        let over = ((step - 100).max(0) * 100, step * 100);
        history.flush(8 * MIB * 9 / 10, span, 8 * MIB / 10, over);
    }
    history.report("10 % late by little");
    assert!(history.amplification() < 4.0);
    assert!(history.late_blocks_max <= 24 && history.late_share_max < 0.5);
}

#[test]
fn ninety_nine_percent_late_stays_bounded() {
    let mut history = History::default();
    for step in 1..2_000 {
        let span = (step * 100, step * 100 + 99);
        history.flush(8 * MIB / 100, span, 8 * MIB * 99 / 100, (0, step * 100));
    }
    history.report("99 % late over all time");
    assert!(history.amplification() < 9.5);
    assert!(history.late_blocks_max <= 24 && history.late_share_max < 0.6);
    let mut history = History::default();
    for step in 1..2_000 {
        let span = (step * 100, step * 100 + 99);
        let over = ((step - 100).max(0) * 100, step * 100);
        history.flush(8 * MIB / 100, span, 8 * MIB * 99 / 100, over);
    }
    history.report("99 % late by little");
    assert!(history.amplification() < 9.5);
    assert!(history.late_blocks_max <= 24 && history.late_share_max < 0.6);
}

#[test]
fn a_backfill_in_reverse_stays_bounded() {
    let mut history = History::default();
    history.flush(MIB, (1_000_000, 1_000_099), 0, (0, 0));
    for step in 1..2_000i64 {
        let end = 1_000_000 - step * 100;
        history.flush(0, (0, 0), 8 * MIB, (end, end + 99));
    }
    history.report("reverse backfill");
    assert!(history.amplification() < 7.5);
    assert!(history.late_blocks_max <= 24);
}

#[test]
fn a_lone_late_sample_a_day_makes_no_heap_of_files() {
    let mut history = History::default();
    // A series of ten years at ten seconds, and one sample a day far back.
    for day in 1..3_650 {
        let span = (day * 86_400, day * 86_400 + 86_399);
        history.flush(
            20_000,
            span,
            600,
            (day * 4_321 % (day * 86_400), day * 4_321 % (day * 86_400)),
        );
    }
    history.report("a lone late sample a day");
    assert!(history.amplification() < 6.5);
    assert!(history.late_blocks_max <= 24 && history.base_blocks_max <= 48);
}

#[test]
fn histories_of_any_kind_stay_bounded() {
    for seed in 0..60u64 {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut history = History::default();
        history.flush(MIB, (0, 99), 0, (0, 0));
        for step in 1..600i64 {
            let in_order = 1 << below(24);
            let late = [0, 1 << below(24)][below(2) as usize];
            let first = below(step as u64 * 100 + 1) as i64;
            let last = first + below((step as u64 * 100 - first as u64) + 1) as i64;
            history.flush(in_order, (step * 100, step * 100 + 99), late, (first, last));
        }
        let depth = (history.base_blocks_max, history.late_blocks_max);
        assert!(
            history.amplification() < 16.0 && depth.0 <= 64 && depth.1 <= 26,
            "seed {seed}: amplification {}, blocks {depth:?}",
            history.amplification()
        );
    }
}
