//! What each partition of a shard holds in memory, and from where it needs the log.
//!
//! A *head* is what series have in memory and not in a block. Its bytes are counted
//! as they change: an exact sum over hundreds of thousands of series would take
//! longer than a flush may wait. The bytes of a series are counted again when its
//! memory changes, about ten times for a frame of 512 samples.
//!
//! A partition *owes* from the first group of the log that has a record of one of
//! its series and was written after its last flush began: the log is needed from
//! there. Guarded by the shard's lock.

use crate::base::spread::Spread;
use crate::series::Series;

/// Partitions side by side: those of ids below 2^32.
const NEAR_PARTITIONS: usize = 1 << 16;

/// What partitions hold, by their numbers.
pub(crate) type ByPartition = Spread<Head, NEAR_PARTITIONS>;

/// The heads of a shard, by partition.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    partitions: ByPartition,
    /// Series that have, or had, samples in blocks.
    stored: usize,
    untold: Untold,
}

/// Changes that are not yet reported to the budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untold {
    pub(crate) head_bytes: i64,
    /// Bytes in total.
    pub(crate) bytes: i64,
}

/// The part of a partition that is in one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// Bytes in memory and not in a block.
    pub(crate) bytes: usize,
    /// From where it needs the log, if it does.
    pub(crate) owed: Option<Owed>,
    /// The newest group of the log that concerns one of its series, of this run.
    pub(crate) newest: u64,
    /// The same, before the flush in progress.
    flushing: Option<Owed>,
}

/// The point from which a partition needs the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Sequence number of the first group needed.
    pub(crate) position: u64,
    /// When that group was written, by the monotonic clock.
    pub(crate) since_ns: u64,
}

impl Head {
    /// Whether a flush would find anything.
    pub(crate) fn is_dirty(&self) -> bool {
        self.bytes > 0 || self.owed.is_some()
    }

    /// Adds what another shard holds of the partition.
    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.newest = self.newest.max(other.newest);
        self.owed = match (self.owed, other.owed) {
            (Some(one), Some(other)) => Some(Owed {
                position: one.position.min(other.position),
                since_ns: one.since_ns.min(other.since_ns),
            }),
            (one, other) => one.or(other),
        };
    }
}

impl Heads {
    /// Updates the counted bytes of a series of `partition`.
    pub(crate) fn note(&mut self, series: &mut Series, partition: u32) {
        let held = u32::try_from(series.held_bytes()).unwrap_or(u32::MAX);
        let noted = std::mem::replace(&mut series.head_noted, held);
        if held > noted {
            series.marks.note_changed();
        }
        if held != noted {
            self.count(partition, i64::from(held) - i64::from(noted));
        }
        if series.is_stored() && !series.marks.note_stored() {
            self.stored += 1;
        }
    }

    /// Stops counting a removed series.
    pub(crate) fn forget(&mut self, series: &Series, partition: u32) {
        self.count(partition, -i64::from(series.head_noted));
        self.stored -= usize::from(series.marks.is_stored_noted());
    }

    /// Series that have, or had, samples in blocks.
    pub(crate) fn stored(&self) -> usize {
        self.stored
    }

    fn count(&mut self, partition: u32, bytes: i64) {
        let head = self.head(partition);
        head.bytes = head.bytes.saturating_add_signed(bytes as isize);
        self.untold.head_bytes += bytes;
        self.untold.bytes += bytes;
    }

    /// Registers a partition with nothing in memory: without a log, every
    /// registered partition is flushed.
    pub(crate) fn know(&mut self, partition: u32) {
        self.head(partition);
    }

    /// Counts bytes that are in no head, such as those of a new series.
    pub(crate) fn grew(&mut self, bytes: usize) {
        self.untold.bytes += bytes as i64;
    }

    /// Records that the group at `position` has records of a series of `partition`.
    /// Calls `now_ns` only if the partition owed nothing before.
    pub(crate) fn owe(&mut self, partition: u32, position: u64, now_ns: impl FnOnce() -> u64) {
        let head = self.head(partition);
        head.newest = position;
        if head.owed.is_none() {
            head.owed = Some(Owed {
                position,
                since_ns: now_ns(),
            });
        }
    }

    /// The files hold all groups before `position`.
    pub(crate) fn need_from(&mut self, position: u64) {
        for (_, head) in self.partitions.iter_mut() {
            if let Some(owed) = &mut head.owed {
                owed.position = owed.position.max(position);
            }
        }
    }

    /// A flush of `partition` begins: it owes anew from here.
    pub(crate) fn begin_flush(&mut self, partition: u32) {
        let head = self.head(partition);
        head.flushing = head.flushing.or(head.owed);
        head.owed = None;
    }

    /// The flush of `partition` is on disk, or failed.
    pub(crate) fn end_flush(&mut self, partition: u32, is_done: bool) {
        let head = self.head(partition);
        let before = head.flushing.take();
        if !is_done {
            head.owed = before.or(head.owed);
        }
    }

    /// The first group of the log that is needed, if any, after the flush of
    /// `flushed` in progress is done.
    pub(crate) fn needed(&self, flushed: u32) -> Option<u64> {
        let owed = self.partitions.iter().flat_map(|(partition, head)| {
            let before = head.flushing.filter(|_| partition != flushed as usize);
            [head.owed, before]
        });
        owed.flatten().map(|owed| owed.position).min()
    }

    pub(crate) fn partitions(&self) -> &ByPartition {
        &self.partitions
    }

    /// The changes to report to the budget once they exceed `step`.
    #[inline]
    pub(crate) fn tell(&mut self, step: i64) -> Option<Untold> {
        if self.untold.bytes.abs() < step {
            return None;
        }
        Some(self.take_untold())
    }

    /// Takes the changes that are not yet reported to the budget.
    pub(crate) fn take_untold(&mut self) -> Untold {
        std::mem::take(&mut self.untold)
    }

    /// Resets everything: all series are removed.
    pub(crate) fn clear(&mut self) {
        let held: usize = self.partitions.iter().map(|(_, head)| head.bytes).sum();
        self.partitions = Spread::default();
        self.stored = 0;
        self.untold.head_bytes -= held as i64;
        self.untold.bytes -= held as i64;
    }

    fn head(&mut self, partition: u32) -> &mut Head {
        self.partitions.ensure(partition as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as no flush is in progress.
    fn needed(heads: &Heads) -> Option<u64> {
        heads.needed(u32::MAX)
    }

    #[test]
    fn the_log_is_needed_from_the_first_group_behind_the_last_flush() {
        let mut heads = Heads::default();
        heads.owe(1, 10, || 1);
        heads.owe(1, 11, || unreachable!("not asked again"));
        heads.owe(0, 12, || 2);
        assert_eq!(needed(&heads), Some(10));
        heads.begin_flush(1);
        heads.owe(1, 15, || 3);
        assert_eq!(needed(&heads), Some(10), "not on disk yet");
        assert_eq!(heads.needed(1), Some(12), "as good as on disk");
        heads.end_flush(1, true);
        assert_eq!(needed(&heads), Some(12));
        heads.begin_flush(0);
        heads.end_flush(0, true);
        assert_eq!(needed(&heads), Some(15), "written while the flush ran");
    }

    #[test]
    fn a_flush_that_failed_leaves_what_was_owed() {
        let mut heads = Heads::default();
        heads.owe(0, 10, || 1);
        heads.begin_flush(0);
        heads.owe(0, 20, || 2);
        heads.end_flush(0, false);
        assert_eq!(needed(&heads), Some(10));
        heads.begin_flush(0);
        heads.end_flush(0, true);
        assert_eq!(needed(&heads), None);
    }
}
