//! Histories of years, played on blocks that are only sizes and spans.

use super::*;
use crate::background::merge::plan::tests::{MIB, block};
use crate::storage::block::Family;

/// A partition whose blocks are sizes and spans of time.
#[derive(Default)]
struct History {
    base: Vec<BlockMeta>,
    late: Vec<BlockMeta>,
    late_bytes_seen: u64,
    came_bytes: u64,
    written_bytes: u64,
    usage_bytes: u64,
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
        while self.merge_step() {}
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
    fn usage(&self) -> BlockUsage {
        let mut usage = BlockUsage::default();
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
            usage.base.push(BaseShare {
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
        usage.late = shares.collect();
        usage
    }

    fn merge_step(&mut self) -> bool {
        let bounds = Bounds::steady(512 * MIB);
        if usage_due(self.lists(), self.late_bytes_seen) {
            self.usage_bytes += (self.lists().base_bytes() + self.lists().late_bytes()) / 100;
            self.late_bytes_seen = self.lists().late_bytes();
            let usage = self.usage();
            if let Some(Job::Fold(groups)) = usage_known(self.lists(), &usage, &bounds) {
                self.fold(&groups, &usage);
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

    fn fold(&mut self, groups: &[Range<usize>], usage: &BlockUsage) {
        let mut left = self.lists().late_bytes();
        for group in groups.iter().rev() {
            let folded: u64 = usage.base[group.clone()].iter().map(|b| b.late_bytes).sum();
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
            self.usage_bytes as f64 / self.came_bytes as f64,
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
