//! The oldest timestamp there is for anyone: by age and by disk.
//!
//! The floor stands in the manifest and only rises, until everything is removed.
//! Readers see nothing before it and writers are refused there from the
//! publication on; the files go as compaction finds them to hold nothing else.
//! By age it follows the wall clock in small steps. By disk it rises once the
//! files outgrow their budget: far enough that the oldest blocks make room.
//!
//! What counts as the oldest block is decided by where nearly all of its bytes
//! end, not by its newest sample: a single series with timestamps far in the
//! future must not take everyone's samples with it.

use crate::background::merge::state::Merger;
use crate::background::merge::state::{Counters, Memory};
use crate::background::merge::step::Want;
use crate::base::error::Result;
use crate::storage::block::Block;
use latewood_model::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The floor moves in so many steps a retention.
const STEPS: u64 = 64;
/// But not rarer.
const STEP_MS_MAX: u64 = 3_600_000;

/// A block that a higher floor would free, nearly or wholly.
struct Oldest {
    /// Above this floor nearly nothing of it is left.
    reach: Timestamp,
    frees_bytes: u64,
    partition: u32,
    /// Something newer is in it, so it has to be rewritten.
    is_mixed: bool,
}

impl Merger {
    /// Raises the floor to what `retention_ms` before now says, where that is
    /// a step; whether it did.
    ///
    /// # Errors
    /// Those of [`Core::publish`].
    pub(crate) fn expire_by_clock(&self) -> Result<bool> {
        let (epoch, wanted) = (self.core.store.epoch(), self.core.store.floor_by_clock());
        let retention_ms = self.core.store.retention_ms.load(Ordering::Relaxed);
        let step_ms = (retention_ms / STEPS).clamp(1, STEP_MS_MAX) as i64;
        if wanted < self.core.store.blocks.floor().saturating_add(step_ms) {
            return Ok(false);
        }
        self.raise_floor(wanted, epoch)
    }

    /// Raises the floor, unless everything was removed since `epoch`; whether
    /// it did.
    fn raise_floor(&self, floor: Timestamp, epoch: u64) -> Result<bool> {
        let mut is_same = false;
        self.core.publish(&mut |manifest| {
            is_same = manifest.epoch == epoch;
            if is_same {
                manifest.floor = manifest.floor.max(floor);
            }
            Ok(())
        })?;
        Ok(is_same)
    }

    /// Drops the oldest samples where the files outgrow the disk budget;
    /// whether it did. A block that cannot be read or rewritten keeps nothing
    /// else from going: that failure is counted and kept for who asks.
    ///
    /// # Errors
    /// Those of [`Core::publish`].
    pub(crate) fn keep_disk_budget(&self) -> Result<bool> {
        let budget_bytes = self.core.store.disk_budget.budget_bytes();
        let target = self.core.store.disk_budget.ring_bytes();
        let used = || self.core.disk_usage().of_ring(budget_bytes);
        if budget_bytes == 0 || used() <= target {
            return Ok(false);
        }
        self.give_disk_back();
        let excess = used().saturating_sub(target);
        if excess == 0 {
            return Ok(true);
        }
        let epoch = self.core.store.epoch();
        let Some((floor, freed)) = self.floor_that_frees(excess) else {
            return Ok(false);
        };
        if !self.raise_floor(floor, epoch)? {
            return Ok(true);
        }
        let counters = &self.counters;
        Counters::add(&counters.floor_raised_by_budget, 1);
        Counters::add(&counters.bytes_dropped_by_budget, freed);
        self.core.observe.notices.say(format_args!(
            "the disk budget of {budget_bytes} bytes is spent: \
             samples older than {floor} are dropped to free {freed} bytes"
        ));
        self.give_disk_back();
        self.core.look_at_disk();
        Ok(true)
    }

    /// Removes and rewrites blocks that hold what is gone. A partition where
    /// that fails is left alone, the others have their turn.
    fn give_disk_back(&self) {
        let mut failures = 0;
        loop {
            match self.merge_step(Want::Disk) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) if failures < self.core.store.blocks.get().partitions.len() => failures += 1,
                Err(_) => return,
            }
        }
    }

    /// The lowest floor above the one in force that frees about `excess` bytes,
    /// or as many as there are, and how many; `None` where there are none.
    fn floor_that_frees(&self, excess: u64) -> Option<(Timestamp, u64)> {
        let mut memory = self.turn.lock();
        let set = self.core.store.blocks.get();
        let mut oldest = Vec::new();
        let mut there = BTreeSet::new();
        for (&partition, blocks) in &set.partitions {
            for block in blocks.base.iter().chain(&blocks.late) {
                there.insert(block.meta().number);
                let reach = self.reach(&mut memory, block);
                let len_bytes = block.meta().len_bytes;
                let is_mixed = block.meta().last >= reach;
                oldest.push(Oldest {
                    reach,
                    frees_bytes: len_bytes - len_bytes / 16 * u64::from(is_mixed),
                    partition,
                    is_mixed,
                });
            }
        }
        memory.reaches.retain(|number, _| there.contains(number));
        oldest.retain(|block| block.reach > set.floor);
        oldest.sort_by_key(|block| block.reach);
        let (mut freed, mut floor) = (0, None);
        for block in &oldest {
            if freed >= excess && Some(block.reach) != floor {
                break;
            }
            freed += block.frees_bytes;
            floor = Some(block.reach);
            if block.is_mixed
                && let Some(known) = memory.partitions.get_mut(&block.partition)
            {
                known.usage_read_ns = None;
            }
        }
        floor.map(|floor| (floor, freed))
    }

    /// The floor that frees nearly all of a block; all, where it cannot be told.
    fn reach(&self, memory: &mut Memory, block: &Arc<Block>) -> Timestamp {
        let number = block.meta().number;
        if let Some(reach) = memory.reaches.get(&number) {
            return *reach;
        }
        let found = reach(block).unwrap_or_else(|error| {
            self.note_merge_failure(&error);
            block.meta().last.saturating_add(1)
        });
        memory.reaches.insert(number, found);
        found
    }
}

/// The floor that frees nearly all of a block: 15 of 16 bytes end before it.
fn reach(block: &Arc<Block>) -> Result<Timestamp> {
    let mut ends = Vec::new();
    let mut scan = block.scan();
    while let Some(entry) = scan.advance()? {
        ends.push((entry.last, u64::from(entry.len_bytes)));
    }
    ends.sort_unstable();
    let total: u64 = ends.iter().map(|(_, bytes)| bytes).sum();
    let mut passed = 0;
    let end = ends.iter().find(|(_, bytes)| {
        passed += bytes;
        passed >= total - total / 16
    });
    let end = end.map_or(block.meta().last, |(last, _)| *last);
    Ok(end.saturating_add(1))
}
