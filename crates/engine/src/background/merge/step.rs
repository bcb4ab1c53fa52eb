//! One step of compaction: the next partition with something to do, and what.
//!
//! Partitions take turns. One that failed is left alone for a while, longer
//! each time, so that a damaged block does not keep the others waiting.

use crate::background::merge::living::Living;
use crate::background::merge::plan::{self, BlockUsage, Bounds, Job, Lists};
use crate::background::merge::rewrite::Rewrite;
use crate::background::merge::state::Merger;
use crate::background::merge::state::{Counters, Memory, PartitionMemory};
use crate::background::merge::usage::usage;
use crate::base::error::{Error, Result};
use crate::observe::notices::About;
use crate::storage::block::{Block, BlockMeta, PartitionBlocks};
use latewood_model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Nobody looks for garbage more often, nor faster than [`USAGE_RATE`].
const USAGE_INTERVAL: Duration = Duration::from_secs(600);
/// Bytes of index that idle usage_reads read in a second; an index is about a
/// hundredth of its block.
const USAGE_RATE: u64 = 1 << 20;
/// After a failure a partition is left alone for so long, doubled each time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What is wanted of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// What pays.
    Steady,
    /// Everything there is to do.
    All,
    /// Only what gives disk back.
    Disk,
}

/// One partition as a step found it.
pub(crate) struct PartitionState {
    pub(crate) partition: u32,
    pub(crate) epoch: u64,
    pub(crate) floor: Timestamp,
    pub(crate) blocks: PartitionBlocks,
    pub(crate) base: Vec<BlockMeta>,
    pub(crate) late: Vec<BlockMeta>,
}

/// A job with what led to it.
pub(crate) struct Chosen {
    pub(crate) job: Job,
    pub(crate) living: Option<Living>,
    pub(crate) usage: Option<BlockUsage>,
}

impl Merger {
    /// Does one job of one partition; false where none is due.
    ///
    /// # Errors
    /// `Io` and `Corrupt` where blocks cannot be read or written: the partition
    /// is left alone for a while. Those of [`Core::publish`].
    pub(crate) fn merge_step(&self, want: Want) -> Result<bool> {
        let mut memory = self.turn.lock();
        let epoch = self.core.store.epoch();
        let set = self.core.store.blocks.get();
        let partitions: Vec<u32> = set.partitions.keys().copied().collect();
        let after = memory.last;
        let start = partitions.partition_point(|&partition| Some(partition) <= after);
        let in_turn = partitions[start..].iter().chain(&partitions[..start]);
        let memory = &mut *memory;
        for &partition in in_turn {
            let blocks = set.partitions[&partition].clone();
            let found = PartitionState::new(partition, epoch, set.floor, blocks);
            let now_ns = self.core.env.clock.monotonic_ns();
            let known = memory
                .partitions
                .entry(partition)
                .or_insert_with(|| PartitionMemory {
                    usage_read_ns: Some(now_ns),
                    ..PartitionMemory::default()
                });
            let rests = now_ns < known.retry_ns && want != Want::All;
            if rests && want != Want::Disk {
                continue;
            }
            memory.last = Some(partition);
            match self.step_in(&found, known, want, rests) {
                Ok(false) => {}
                Ok(true) => {
                    known.failures = 0;
                    return Ok(true);
                }
                Err(error) => {
                    let wait = RETRY_AFTER * (1 << known.failures.min(8));
                    known.failures = known.failures.saturating_add(1);
                    known.retry_ns = now_ns.saturating_add(wait.as_nanos() as u64);
                    self.note_merge_failure(&error);
                    return Err(error);
                }
            }
        }
        forget_gone(memory, &partitions);
        Ok(false)
    }

    /// `rests`: only what reads and writes no block.
    fn step_in(
        &self,
        found: &PartitionState,
        known: &mut PartitionMemory,
        want: Want,
        rests: bool,
    ) -> Result<bool> {
        let chosen = match plan::below_floor(found.lists(), found.floor) {
            Some(job) => Some(Chosen::plain(job)),
            None if rests => None,
            None => self.choose(found, known, want)?,
        };
        let Some(chosen) = chosen else {
            return Ok(false);
        };
        self.busy.store(true, Ordering::Relaxed);
        let done = self.carry_out(found, chosen, known);
        self.busy.store(false, Ordering::Relaxed);
        done
    }

    fn choose(
        &self,
        found: &PartitionState,
        known: &mut PartitionMemory,
        want: Want,
    ) -> Result<Option<Chosen>> {
        let lists = found.lists();
        let bounds = self.bounds(want);
        if want == Want::All || self.usage_due(found, known, want) {
            let living = self.living(found.partition, found.floor);
            let blocks = &found.blocks;
            let usage = usage(&blocks.base, &blocks.late, &living)?;
            Counters::add(&self.counters.usage_reads, 1);
            known.usage_read_ns = Some(self.core.env.clock.monotonic_ns());
            known.late_bytes_seen = lists.late_bytes();
            let job = match want {
                Want::Disk => plan::garbage(lists, &usage, &bounds),
                _ => plan::usage_known(lists, &usage, &bounds),
            };
            if let Some(job) = job {
                // There may be more of it.
                known.usage_read_ns = None;
                return Ok(Some(Chosen {
                    job,
                    living: Some(living),
                    usage: Some(usage),
                }));
            }
        }
        let merge = plan::merge(lists, &bounds).filter(|_| want != Want::Disk);
        Ok(merge.map(Chosen::plain))
    }

    fn bounds(&self, want: Want) -> Bounds {
        let cap_bytes = self.block_bytes_max();
        match want {
            Want::All => Bounds::thorough(cap_bytes),
            Want::Steady | Want::Disk => Bounds::steady(cap_bytes),
        }
    }

    /// No block grows longer by compaction. Under a disk budget the oldest of
    /// many is a small part of it.
    pub(crate) fn block_bytes_max(&self) -> u64 {
        match self.core.store.disk_budget.budget_bytes() {
            0 => self.core.options.block_bytes_max,
            budget => self.core.options.block_bytes_max.min(budget / 16),
        }
    }

    fn usage_due(&self, found: &PartitionState, known: &PartitionMemory, want: Want) -> bool {
        let lists = found.lists();
        let Some(usage_read_ns) = known.usage_read_ns else {
            return true;
        };
        let index_bytes = (lists.base_bytes() + lists.late_bytes()) / 100;
        let interval = USAGE_INTERVAL.max(Duration::from_secs(index_bytes / USAGE_RATE));
        let now_ns = self.core.env.clock.monotonic_ns();
        u128::from(now_ns.saturating_sub(usage_read_ns)) >= interval.as_nanos()
            || want != Want::Disk && plan::usage_due(lists, known.late_bytes_seen)
    }
}

impl Chosen {
    fn plain(job: Job) -> Self {
        Self {
            job,
            living: None,
            usage: None,
        }
    }
}

impl PartitionState {
    fn new(partition: u32, epoch: u64, floor: Timestamp, blocks: PartitionBlocks) -> Self {
        let metas = |blocks: &[Arc<Block>]| -> Vec<BlockMeta> {
            blocks.iter().map(|block| block.meta().clone()).collect()
        };
        Self {
            partition,
            epoch,
            floor,
            base: metas(&blocks.base),
            late: metas(&blocks.late),
            blocks,
        }
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            base: &self.base,
            late: &self.late,
        }
    }

    pub(crate) fn rewrite<'a>(&'a self, living: &'a Living, late: &'a [Arc<Block>]) -> Rewrite<'a> {
        Rewrite {
            partition: self.partition,
            living,
            base: &self.blocks.base,
            late,
        }
    }
}

/// What was remembered of blocks that are gone goes too.
fn forget_gone(memory: &mut Memory, partitions: &[u32]) {
    let is_there = |partition: &u32| partitions.binary_search(partition).is_ok();
    memory.partitions.retain(|partition, _| is_there(partition));
}

impl Merger {
    /// Counts it, keeps it for who asks and tells the operator.
    pub(crate) fn note_merge_failure(&self, error: &Error) {
        let compaction = &self;
        Counters::add(&compaction.counters.failures, 1);
        *compaction.failure.lock() = Some(error.to_string());
        let text = format_args!("a compaction failed and is tried again later: {error}");
        self.core.observe.notices.tell(About::Compaction, text);
    }
}
