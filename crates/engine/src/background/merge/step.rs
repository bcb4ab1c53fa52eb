//! One step of merging: chooses the next partition and its job.
//!
//! Partitions take turns. A partition whose job failed is skipped for a time that
//! doubles with each failure, so that a damaged block does not delay the others.
//! Tested by `tests/merge`.

use crate::background::merge::living::Living;
use crate::background::merge::plan::{self, BlockUsage, Bounds, Job, Lists};
use crate::background::merge::rewrite::Rewrite;
use crate::background::merge::state::{Counters, Memory, Merger, PartitionMemory};
use crate::background::merge::usage::usage;
use crate::base::error::{Error, Result};
use crate::io::waiting::no_wait;
use crate::observe::notices::About;
use crate::storage::block::{Block, BlockMeta, PartitionBlocks};
use latewood_model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Minimum interval between reads of a partition's block usage; see also
/// [`USAGE_RATE`].
const USAGE_INTERVAL: Duration = Duration::from_secs(600);
/// Bytes of index per second that idle reads of block usage may read; an index is
/// about a hundredth of its block.
const USAGE_RATE: u64 = 1 << 20;
/// Delay of a partition after a failure, doubled with each further failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Which jobs a step may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Jobs that pay.
    Steady,
    /// All jobs.
    All,
    /// Only jobs that free disk space.
    Disk,
}

/// The state of a partition at the start of a step.
pub(crate) struct PartitionState {
    pub(crate) partition: u32,
    pub(crate) epoch: u64,
    pub(crate) floor: Timestamp,
    pub(crate) blocks: PartitionBlocks,
    pub(crate) base: Vec<BlockMeta>,
    pub(crate) late: Vec<BlockMeta>,
}

/// A job and the facts it was chosen from.
pub(crate) struct Chosen {
    pub(crate) job: Job,
    pub(crate) living: Option<Living>,
    pub(crate) usage: Option<BlockUsage>,
}

impl Merger {
    /// Runs one job of one partition. Returns false if no job is due.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if blocks cannot be read or written: the partition is
    /// skipped for a while. Those of [`crate::keyspace::core::Core::publish`].
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
                    let error = found.named(error);
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

    /// With `rests`, only jobs that read and write no block. While a block is not on this machine,
    /// only those and merges, which read no more than they write, unless all jobs are wanted.
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
            None if want != Want::All && found.is_away() => self.merge_here(found, want),
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

    /// The merge that is due, once its blocks are here: those that are not are asked for.
    fn merge_here(&self, found: &PartitionState, want: Want) -> Option<Chosen> {
        let PartitionBlocks { base, late } = &found.blocks;
        let job = self.merge_due(found, want)?;
        let blocks = match &job {
            Job::MergeBase(places) => &base[places.clone()],
            Job::MergeLate(places) => &late[places.clone()],
            Job::Drop { .. } | Job::Fold(_) => &[],
        };
        let _no_wait = no_wait();
        let here = blocks.iter().filter(|block| block.fetch().is_ok()).count();
        (here == blocks.len()).then(|| Chosen::plain(job))
    }

    fn merge_due(&self, found: &PartitionState, want: Want) -> Option<Job> {
        plan::merge(found.lists(), &self.bounds(want)).filter(|_| want != Want::Disk)
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
            let living = self.living(found.partition, found.floor)?;
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
                // There may be more garbage.
                known.usage_read_ns = None;
                return Ok(Some(Chosen {
                    job,
                    living: Some(living),
                    usage: Some(usage),
                }));
            }
        }
        Ok(self.merge_due(found, want).map(Chosen::plain))
    }

    fn bounds(&self, want: Want) -> Bounds {
        let cap_bytes = self.block_bytes_max();
        match want {
            Want::All => Bounds::thorough(cap_bytes),
            Want::Steady | Want::Disk => Bounds::steady(cap_bytes),
        }
    }

    /// Maximum size of a merged block. Under a disk budget it is lower, so that
    /// the oldest block is a small part of the budget.
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

    /// The same error, naming a file. A frame that does not decode is searched for:
    /// frames of several blocks are joined.
    fn named(&self, error: Error) -> Error {
        if !error.is_damage() || error.path().is_some() {
            return error;
        }
        let found = self.blocks.all().find_map(|block| block.verify().err());
        found.unwrap_or(error)
    }

    fn is_away(&self) -> bool {
        self.blocks.all().any(|block| !block.is_here())
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

/// Drops what is remembered of removed blocks.
fn forget_gone(memory: &mut Memory, partitions: &[u32]) {
    let is_there = |partition: &u32| partitions.binary_search(partition).is_ok();
    memory.partitions.retain(|partition, _| is_there(partition));
}

impl Merger {
    /// Counts a failure, keeps its text for the figures and notifies the operator.
    pub(crate) fn note_merge_failure(&self, error: &Error) {
        Counters::add(&self.counters.failures, 1);
        *self.failure.lock() = Some(error.to_string());
        let text = format_args!("a merge failed and will be retried: {error}");
        self.core.observe.notices.tell(About::Merge, text);
    }
}
