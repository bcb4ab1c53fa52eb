//! The disk budget: how much all files take, and which writes wait or are refused.
//!
//! With a disk budget the directory works as a ring: [`crate::background`] removes
//! the oldest samples. If that is too slow, because the log grows during a flush
//! or blocks are added faster than old ones are removed, writers wait for a
//! bounded time. If no space is freed they are refused, so that the files do not
//! exceed the budget.
//!
//! With or without a budget, free space of less than [`SMALL_DISK_BYTES`] at the open determines
//! the log in the same way: else one segment could fill the disk, which stops all writes.
//!
//! All files of the directory count, in whole pages of the disk, including
//! prepared and recycled log segments, but for those without a name
//! ([`crate::keyspace::dense`]). The budget determines the size of segments
//! and the length of the log when the database is opened.
//!
//! Tested by `tests/disk_budget.rs` on a real directory, by `tests/merge` and below.

use crate::base::options::Options;
use crate::base::tally::{Tallied, Tally};
use crate::io::Env;
use crate::keyspace::core::Core;
use crate::storage::block::PartitionBlocks;
use crate::storage::files::Manifest;
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The size of a log segment is this part of the budget.
const SEGMENT_SHARE: u64 = 32;
/// Free space below which a disk is small.
const SMALL_DISK_BYTES: u64 = 2 << 30;
/// Minimum size of a segment, so that nearly any key with its labels fits.
const SEGMENT_BYTES_MIN: u64 = 512 << 10;
/// The log is flushed once it has grown by this part of the budget.
const LOG_SHARE: u64 = 8;
/// Writers measure the usage after taking this part of the budget.
const MEASURE_SHARE: u64 = 256;
/// Segments of the running log that a budget holds at least.
pub(crate) const SEGMENTS_MIN: u64 = 16;
/// Files take whole pages on disk.
const PAGE_BYTES: u64 = 4096;

/// The state and the counters of the disk budget.
#[derive(Debug, Default)]
pub(crate) struct DiskBudget {
    /// 0 means no limit.
    pub(crate) budget_bytes: AtomicU64,
    /// What was free at the open, if that was little.
    pub(crate) small_disk_bytes: OnceLock<u64>,
    /// Series files and the manifest.
    catalogue_bytes: AtomicU64,
    /// Files in quarantine.
    pub(crate) quarantine_bytes: AtomicU64,
    /// Bytes that writers took since the last measurement.
    grown_bytes: AtomicU64,
    is_spent: AtomicBool,
    /// A write waited in vain since the budget was used up.
    pub(crate) waited_in_vain: AtomicBool,
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_ns: AtomicU64,
    pub(crate) refused: Tally,
    pub(crate) turn: Mutex<()>,
    pub(crate) eased: Condvar,
}

/// Figures of the disk budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskBudgetStats {
    /// The budget; 0 means no limit.
    pub budget_bytes: u64,
    /// Bytes of all files of the directory.
    pub used_bytes: u64,
    /// Writes that waited for disk space.
    pub stalls: u64,
    /// Total time they waited.
    pub stalled_ns: u64,
    /// Writes refused because no space was freed.
    pub refused: Tallied,
}

/// Disk usage by kind of file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) blocks: u64,
    /// Segments of the log, prepared and kept ones included.
    pub(crate) log: u64,
    /// The part of `log` that is freed by the next write.
    log_given_up: u64,
    /// In memory and, without a log, on disk only once it is flushed.
    unflushed: u64,
    pub(crate) others: u64,
}

impl Usage {
    pub(crate) fn total(&self) -> u64 {
        self.blocks + self.log + self.others
    }

    /// What the ring counts: not what goes with the next write. What is no block
    /// counts for half of the budget at most: dropping samples makes nothing else
    /// shorter.
    pub(crate) fn of_ring(&self, budget_bytes: u64) -> u64 {
        self.blocks + (self.log_needed() + self.others).min(budget_bytes / 2)
    }

    fn log_needed(&self) -> u64 {
        self.log.saturating_sub(self.log_given_up)
    }

    fn is_over(&self, budget_bytes: u64) -> bool {
        let log = self.log_needed();
        let total = self.blocks + self.others + log;
        // A flush writes about half of what the log took for the same samples.
        log.max(2 * self.unflushed) > budget_bytes / 8 * 3
            || total > budget_bytes - budget_bytes / 16
    }
}

/// What a file of `len_bytes` takes on disk.
fn on_disk(len_bytes: u64) -> u64 {
    len_bytes.next_multiple_of(PAGE_BYTES)
}

/// The free space for the database in `dir`, if it is small.
pub(crate) fn small_disk_bytes(env: &Env, dir: &Path) -> Option<u64> {
    // A disk that does not say is taken for a large one.
    let free = env.disk.free_bytes(dir).ok().flatten();
    free.filter(|&free| free < SMALL_DISK_BYTES)
}

/// Bytes of one log segment under a disk budget, or on a disk with little space.
pub(crate) fn segment_bytes(options: &Options, small_disk: Option<u64>) -> u64 {
    match smaller(options.disk_budget_bytes, small_disk) {
        None => options.segment_bytes,
        Some(budget) => {
            let share = (budget / SEGMENT_SHARE).max(SEGMENT_BYTES_MIN);
            options
                .segment_bytes
                .min(share.next_multiple_of(PAGE_BYTES))
        }
    }
}

/// The smaller of a budget, where 0 is none, and what is free, if that is little.
fn smaller(budget_bytes: u64, small_disk: Option<u64>) -> Option<u64> {
    let budget = (budget_bytes > 0).then_some(budget_bytes);
    // Less makes no segment smaller, but would flush all the time.
    let free = small_disk.map(|free| free.max(SEGMENT_BYTES_MIN * LOG_SHARE));
    budget.into_iter().chain(free).min()
}

impl DiskBudget {
    pub(crate) fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes: budget_bytes.into(),
            ..Self::default()
        }
    }

    /// The budget; 0 is none.
    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes.load(Ordering::Relaxed)
    }

    /// The size of the log at which it is flushed, at most `wanted`.
    pub(crate) fn log_bytes_max(&self, wanted: u64) -> u64 {
        match smaller(self.budget_bytes(), self.small_disk_bytes.get().copied()) {
            None => wanted,
            Some(bytes) => wanted.min(bytes / LOG_SHARE),
        }
    }

    /// Whether a log of `len_bytes` should be made shorter.
    pub(crate) fn is_log_long(&self, len_bytes: u64) -> bool {
        let budget = self.budget_bytes();
        budget > 0 && len_bytes > budget / 4
    }

    /// The limit of the ring: some space is left for files being written.
    pub(crate) fn ring_bytes(&self) -> u64 {
        let budget = self.budget_bytes();
        budget - budget / 8
    }

    /// Whether writers wait.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Records the files of a new manifest.
    pub(crate) fn note_catalogue(&self, manifest: &Manifest) {
        let files = manifest.series_files();
        let bytes: u64 = files.map(|file| on_disk(file.len_bytes)).sum();
        self.catalogue_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Core {
    /// Current usage of all files.
    pub(crate) fn disk_usage(&self) -> Usage {
        let set = self.store.blocks.get();
        let blocks = set.partitions.values();
        let blocks = blocks.flat_map(PartitionBlocks::all);
        let log = self.log().map(|log| log.stats()).unwrap_or_default();
        let disk = &self.store.disk_budget;
        Usage {
            blocks: blocks.map(|block| on_disk(block.meta().len_bytes)).sum(),
            log: log.bytes_on_disk,
            log_given_up: log.bytes_given_up,
            unflushed: match self.log() {
                Some(_) => 0,
                None => self.budget.stats(&self.member).head_bytes,
            },
            others: disk.catalogue_bytes.load(Ordering::Relaxed)
                + disk.quarantine_bytes.load(Ordering::Relaxed),
        }
    }

    /// Records bytes that a writer takes, and measures the usage once they are many.
    #[inline]
    pub(crate) fn note_growth(&self, bytes: usize) {
        let budget = self.store.disk_budget.budget_bytes();
        if budget > 0 {
            let grown = &self.store.disk_budget.grown_bytes;
            let before = grown.fetch_add(bytes as u64, Ordering::Relaxed);
            if before + bytes as u64 > budget / MEASURE_SHARE {
                self.look_at_disk();
            }
        }
    }

    /// Measures the usage of all files.
    pub(crate) fn look_at_disk(&self) {
        let (disk, budget) = (
            &self.store.disk_budget,
            self.store.disk_budget.budget_bytes(),
        );
        disk.grown_bytes.store(0, Ordering::Relaxed);
        let is_spent = (budget > 0 && self.disk_usage().is_over(budget))
            || self.log().is_some_and(|log| log.why_full().is_some());
        if disk.is_spent.swap(is_spent, Ordering::Relaxed) && !is_spent {
            disk.waited_in_vain.store(false, Ordering::Relaxed);
            disk.eased.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_smallest_one() {
        for disk_budget_bytes in [0, 1 << 30] {
            let options = Options {
                disk_budget_bytes,
                ..Options::default()
            };
            assert_eq!(segment_bytes(&options, Some(0)), SEGMENT_BYTES_MIN);
            let budget = DiskBudget::new(disk_budget_bytes);
            assert!(budget.log_bytes_max(1 << 30) >= 1 << 27);
            budget.small_disk_bytes.get_or_init(|| 0);
            assert_eq!(budget.log_bytes_max(1 << 30), SEGMENT_BYTES_MIN);
        }
    }

    #[test]
    fn a_log_that_goes_with_the_next_write_takes_no_space() {
        let usage = Usage {
            blocks: 500,
            log: 600,
            ..Usage::default()
        };
        assert_eq!(usage.of_ring(1_000), 1_000, "half of the budget at most");
        assert!(usage.is_over(1_000));
        let after_a_flush = Usage {
            log_given_up: 550,
            ..usage
        };
        assert_eq!(after_a_flush.of_ring(1_000), 550);
        assert!(!after_a_flush.is_over(1_000));
    }
}
