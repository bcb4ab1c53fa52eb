//! Whether existing series leave memory for new ones.
//!
//! A flush does not free the memory of series. So new series are refused earlier
//! than samples: when what no flush frees fills [`SERIES_PERCENT`] of the budget.
//!
//! What the process holds beside heads is not all there to stay: a flush, a merge,
//! a reply and a replay take memory for a moment, and the allocator gives back late
//! what they freed. So the least that was held at a look of the last second counts,
//! and what new series took since. A look while a flush frees memory can only make
//! that less.
//!
//! Series that rest leave memory from [`NEAR_PERCENT`] on, which takes
//! longer than making new ones. So while that goes on, new ones wait from [`SLOW_PERCENT`] on, a moment
//! each for some thousand of them, sooner than they are refused.
//!
//! Tested below, by `tests/memory_budget.rs` and, with real memory, by the server's tests.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The share of the budget that what no flush frees, above all the series
/// themselves, may fill before new ones are refused: the rest is for samples of
/// those there are.
const SERIES_PERCENT: u64 = 85;
/// The share from which on series that rest are parked sooner than they would be.
const NEAR_PERCENT: u64 = 65;
/// The share from which on new series wait for others to be parked.
const SLOW_PERCENT: u64 = 75;
/// How long parking counts as under way after each partition.
const PARKING_NS: u64 = 5_000_000_000;
/// How long new series come after one has waited.
const RUN_NS: u64 = 5_000_000;
/// How long a look counts.
const LOOK_NS: u64 = 1_000_000_000;
/// How long memory must be there before a new series waits in vain again: at the edge it
/// comes and goes, and each wait may hold up an event loop.
const CALM_NS: u64 = 5_000_000_000;
/// Estimated bytes of a series after a replay, before the first look.
const SERIES_BYTES: u64 = 500;
/// What stays of a series' first flush in memory.
const STORED_BYTES: u64 = 160;

#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Memory that no flush frees leaves no room for new series.
    is_crowded: AtomicBool,
    /// It soon will: see [`NEAR_PERCENT`] and [`SLOW_PERCENT`].
    is_near: AtomicBool,
    is_slow: AtomicBool,
    /// When series of a partition left memory while it was short last, or began to; 0 where none did.
    parking_ns: AtomicU64,
    /// When a new series has waited for that last.
    slowed_ns: AtomicU64,
    /// When others than those that waited in vain were let wait again, since series left memory.
    forgiven_ns: AtomicU64,
    /// A new series has waited in vain, and memory was not there for [`CALM_NS`] since.
    waited_in_vain: AtomicBool,
    /// When the last look was, and the last one that found it crowded.
    looked_ns: AtomicU64,
    crowded_ns: AtomicU64,
    /// Those that count, by time; each held more than the one before.
    looks: Mutex<Vec<Look>>,
    /// What the first of them held.
    least_bytes: AtomicI64,
    /// What new series took since the start.
    new_bytes: AtomicI64,
    /// Memory that the first flushes of unflushed series will leave behind.
    unstored_bytes: AtomicU64,
}

/// What was held beside heads, without what new series had taken since the start.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    bytes: i64,
}

impl Crowd {
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Whether existing series will soon leave no memory for new ones.
    pub(crate) fn is_near(&self) -> bool {
        self.is_near.load(Ordering::Relaxed)
    }

    /// Whether new series wait while others leave memory.
    pub(crate) fn makes_wait(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// Whether a new series had better wait, since others leave memory and that takes longer than new
    /// ones take to come; and none has waited just before.
    pub(crate) fn is_slow(&self, now_ns: u64) -> bool {
        let slowed_ns = self.slowed_ns.load(Ordering::Relaxed);
        self.is_slower(now_ns) && now_ns.saturating_sub(slowed_ns) >= RUN_NS
    }

    /// The same for one that waits.
    pub(crate) fn is_slower(&self, now_ns: u64) -> bool {
        let parking_ns = self.parking_ns.load(Ordering::Relaxed);
        self.is_slow.load(Ordering::Relaxed)
            && parking_ns > 0
            && now_ns.saturating_sub(parking_ns) < PARKING_NS
    }

    /// A partition is about to be parked for want of memory.
    pub(crate) fn note_parking(&self, now_ns: u64) {
        self.parking_ns.store(now_ns.max(1), Ordering::Relaxed);
    }

    /// `series` of a partition left memory while it was short. A new series waits in vain again then, but
    /// not time and again.
    pub(crate) fn note_parked(&self, series: u64, now_ns: u64) {
        if series == 0 {
            self.parking_ns.store(0, Ordering::Relaxed);
            return;
        }
        self.note_parking(now_ns);
        let forgiven_ns = self.forgiven_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(forgiven_ns) >= CALM_NS {
            self.forgiven_ns.store(now_ns, Ordering::Relaxed);
            self.waited_in_vain.store(false, Ordering::Relaxed);
        }
    }

    /// A new series waits, or has waited: others may come now.
    pub(crate) fn note_slowed(&self, now_ns: u64) {
        self.slowed_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Whether a new series has waited in vain lately.
    pub(crate) fn waited_in_vain(&self) -> bool {
        self.waited_in_vain.load(Ordering::Relaxed)
    }

    /// A new series has waited in vain: others need not.
    pub(crate) fn note_waited_in_vain(&self) {
        self.waited_in_vain.store(true, Ordering::Relaxed);
    }

    /// New series took `bytes`.
    pub(crate) fn grew(&self, bytes: i64) {
        self.new_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `series` have no sample in a block yet.
    pub(crate) fn note_unstored(&self, series: u64) {
        let bytes = series * STORED_BYTES;
        self.unstored_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The process holds `bytes` beside heads. If `is_steady`, no flush has moved
    /// memory lately, and earlier looks can be outdated.
    pub(crate) fn look(&self, at_ns: u64, bytes: u64, is_steady: bool) {
        self.looked_ns.store(at_ns, Ordering::Relaxed);
        let bytes = bytes as i64 - self.new_bytes.load(Ordering::Relaxed);
        let mut looks = self.looks.lock();
        // A later look that held less stands for all before it.
        looks.retain(|look| {
            let is_outdated = is_steady && at_ns.saturating_sub(look.at_ns) >= LOOK_NS;
            look.bytes < bytes && !is_outdated
        });
        if is_steady || looks.is_empty() {
            looks.push(Look { at_ns, bytes });
        }
        let least = looks.first().map_or(bytes, |look| look.bytes);
        self.least_bytes.store(least, Ordering::Relaxed);
    }

    /// A replay made `series`; its other memory is freed without a flush.
    pub(crate) fn note_replayed(&self, at_ns: u64, series: u64) {
        self.looks.lock().clear();
        self.look(at_ns, series * SERIES_BYTES, true);
    }

    /// Compares with a budget of `limit_bytes`; 0 means no limit.
    pub(crate) fn compare(&self, limit_bytes: u64) {
        let least = self.least_bytes.load(Ordering::Relaxed);
        let new = self.new_bytes.load(Ordering::Relaxed);
        let unstored = self.unstored_bytes.load(Ordering::Relaxed);
        let stays = u64::try_from(least + new).unwrap_or(0) + unstored;
        let fills = |percent| limit_bytes > 0 && stays >= limit_bytes / 100 * percent;
        self.is_near.store(fills(NEAR_PERCENT), Ordering::Relaxed);
        self.is_slow.store(fills(SLOW_PERCENT), Ordering::Relaxed);
        let is_crowded = fills(SERIES_PERCENT);
        let was_crowded = self.is_crowded.swap(is_crowded, Ordering::Relaxed);
        if !is_crowded {
            return;
        }
        let now_ns = self.looked_ns.load(Ordering::Relaxed);
        let before_ns = self.crowded_ns.swap(now_ns, Ordering::Relaxed);
        if !was_crowded && now_ns.saturating_sub(before_ns) >= CALM_NS {
            self.waited_in_vain.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_series_wait_only_while_others_leave_memory() {
        const MS: u64 = 1_000_000;
        let crowd = Crowd::default();
        let hold = |bytes| {
            crowd.look(1, bytes, true);
            crowd.compare(100);
        };
        hold(80);
        assert!(crowd.is_near() && !crowd.is_crowded());
        // Nothing leaves memory yet.
        assert!(!crowd.is_slow(10 * MS));
        crowd.note_parking(10 * MS);
        assert!(crowd.is_slow(10 * MS));
        // One waits, others come meanwhile.
        crowd.note_slowed(10 * MS);
        assert!(crowd.is_slower(11 * MS) && !crowd.is_slow(11 * MS));
        assert!(crowd.is_slow(15 * MS));
        // It came to nothing.
        crowd.note_parked(0, 16 * MS);
        assert!(!crowd.is_slow(30 * MS));
        // Some left, and a new series waits once more where one did in vain, but not again at once.
        crowd.note_waited_in_vain();
        crowd.note_parked(7, CALM_NS);
        assert!(!crowd.waited_in_vain() && crowd.is_slow(CALM_NS));
        crowd.note_waited_in_vain();
        crowd.note_parked(7, CALM_NS + MS);
        assert!(crowd.waited_in_vain());
        assert!(!crowd.is_slow(CALM_NS + MS + PARKING_NS));
        // There is room again.
        hold(70);
        assert!(crowd.is_near() && !crowd.is_slow(CALM_NS + 2 * MS));
    }
}
