//! The floor: the oldest timestamp that the database keeps, by age and by disk.
//!
//! The manifest holds the floor. It only rises, until all series are removed.
//! Once it is published, readers see no samples below it and writes below it are
//! refused; merging deletes the files that hold nothing else. A remote log says it
//! durably before that, for those that follow. By age the floor
//! follows the time of [`crate::io::trusted`] in small steps. By disk it rises when the
//! files exceed the disk budget, far enough that removing the oldest blocks frees the
//! excess.
//!
//! The age of a block is the time before which nearly all of its bytes end, not
//! its newest sample: a single series with timestamps far in the future must not
//! change which blocks are removed.
//!
//! Tested by `tests/merge` and `tests/disk_budget.rs`.

use crate::background::merge::state::{Counters, Memory, Merger};
use crate::background::merge::step::Want;
use crate::base::error::Result;
use crate::io::trusted::Moment;
use crate::storage::block::Block;
use latewood_model::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The floor rises in this many steps per retention.
const STEPS: u64 = 64;
/// Maximum step.
const STEP_MS_MAX: u64 = 3_600_000;

/// A block that a higher floor would free, entirely or nearly.
struct Oldest {
    /// At this floor nearly nothing of the block is left.
    reach: Timestamp,
    frees_bytes: u64,
    partition: u32,
    /// The block holds newer samples and must be rewritten.
    is_mixed: bool,
}

impl Merger {
    /// Goes on from the published floor after a start. A shorter retention or the disk
    /// budget may have raised it further: then the samples say what time it was.
    pub(crate) fn begin_retention(&self) {
        let (floor, moment) = (self.core.store.blocks.floor(), self.moment());
        if floor == Timestamp::MIN {
            return;
        }
        let mut now_ms = floor.saturating_add(moment.retention_ms);
        if now_ms > moment.wall_ms {
            now_ms = now_ms.min(self.core.newest_agreed().unwrap_or(moment.wall_ms));
        }
        self.clock.lock().begin(now_ms, moment);
    }

    /// Raises the floor to `retention_ms` before the trusted time, if the difference
    /// is at least a step. Returns whether it was raised.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::publish`].
    pub(crate) fn expire_by_clock(&self) -> Result<bool> {
        let moment = self.moment();
        let mut clock = self.clock.lock();
        if moment.retention_ms == 0 {
            clock.forget();
            self.jump_ms.store(0, Ordering::Relaxed);
            return Ok(false);
        }
        let before = clock.jump;
        let now_ms = clock.now_ms(moment, || self.core.newest_agreed());
        self.jump_ms.store(clock.jump.ms(), Ordering::Relaxed);
        if !clock.jump.is_like(before) {
            let jump = clock.jump;
            self.core.observe.notices.say(format_args!("{jump}"));
        }
        drop(clock);
        let wanted = now_ms.map(|now_ms| now_ms.saturating_sub(moment.retention_ms));
        match wanted {
            Some(wanted) if wanted >= self.floor_after_a_step(moment) => {
                self.raise_floor(wanted, moment.epoch)
            }
            _ => Ok(false),
        }
    }

    fn floor_after_a_step(&self, moment: Moment) -> Timestamp {
        self.core
            .store
            .blocks
            .floor()
            .saturating_add(moment.step_ms)
    }

    /// Trusts the wall clock: retention and expiry follow it at once.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::publish`].
    pub(crate) fn accept_clock(&self) -> Result<()> {
        let moment = self.moment();
        self.clock.lock().begin(moment.wall_ms, moment);
        self.core.time.accept();
        self.expire_by_clock().map(|_| ())
    }

    /// By how many milliseconds the wall clock is ahead of the time that retention
    /// trusts, or expiry without retention; negative if it is behind, 0 if they agree.
    pub(crate) fn clock_jump_ms(&self) -> i64 {
        if self.core.store.retention_ms.load(Ordering::Relaxed) == 0 {
            self.core.time.jump_ms()
        } else {
            self.jump_ms.load(Ordering::Relaxed)
        }
    }

    fn moment(&self) -> Moment {
        let retention_ms = self.core.store.retention_ms.load(Ordering::Relaxed);
        Moment {
            wall_ms: self.core.env.clock.now_ms(),
            monotonic_ns: self.core.env.clock.monotonic_ns(),
            retention_ms: i64::try_from(retention_ms).unwrap_or(i64::MAX),
            step_ms: (retention_ms / STEPS).clamp(1, STEP_MS_MAX) as i64,
            epoch: self.core.store.epoch(),
        }
    }

    /// Raises the floor, unless all series were removed since `epoch`. Returns
    /// whether it was raised. A remote log says it first.
    fn raise_floor(&self, floor: Timestamp, epoch: u64) -> Result<bool> {
        let core = &self.core;
        let mut published = core.store.published.lock();
        if published.manifest.epoch != epoch {
            return Ok(false);
        }
        core.check_publishable()?;
        core.log_floor(&mut published, floor)?;
        core.publish_locked(&mut published, &mut |manifest| {
            manifest.floor = manifest.floor.max(floor);
            Ok(())
        })?;
        Ok(true)
    }

    /// Removes the oldest samples if the files exceed the disk budget. Returns
    /// whether any were removed. A block that cannot be read or rewritten does not
    /// stop the removal of others; the failure is counted and reported.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::publish`].
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

    /// Removes and rewrites blocks that hold removed samples. A partition whose job
    /// fails is skipped.
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

    /// The lowest floor above the current one that frees about `excess` bytes, or
    /// all there are, and the bytes freed; `None` if nothing can be freed.
    fn floor_that_frees(&self, excess: u64) -> Option<(Timestamp, u64)> {
        let mut memory = self.turn.lock();
        let set = self.core.store.blocks.get();
        let mut oldest = Vec::new();
        let mut there = BTreeSet::new();
        for (&partition, blocks) in &set.partitions {
            for block in blocks.all() {
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

    /// The floor that frees nearly all of a block; all of it if the block's index
    /// cannot be read, or is not on this machine.
    fn reach(&self, memory: &mut Memory, block: &Arc<Block>) -> Timestamp {
        let number = block.meta().number;
        if let Some(reach) = memory.reaches.get(&number) {
            return *reach;
        }
        if !block.is_here() {
            // A sixteenth more, and no wait.
            return block.meta().last.saturating_add(1);
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
