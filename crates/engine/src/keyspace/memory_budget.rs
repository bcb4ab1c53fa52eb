//! The memory budget: how much memory the process holds, and which writes wait or
//! are refused.
//!
//! The operating system reports the anonymous memory of the process; it is
//! measured about every tenth of a second. Between measurements writers add the
//! bytes they took, in steps, so that a burst of new series is noticed early. From
//! [`SLOW_PERCENT`] of the budget on, writers wait for the flusher for a bounded
//! time; at the budget they are refused, unless a flush frees memory while they
//! wait. Reads and deletes always continue.
//!
//! A flush takes memory before it frees any, so memory for it is reserved, per
//! series that has something to flush. New series are refused earlier than
//! samples ([`crate::keyspace::crowd`]).
//!
//! Tested by `tests/memory_budget.rs` with simulated memory and by the server's tests
//! with real memory.

use crate::base::partition::PARTITION_BITS;
use crate::base::tally::{Tallied, Tally};
use crate::keyspace::core::Core;
use crate::keyspace::crowd::Crowd;
use crate::series::shard::ShardState;
use latewood_model::limits::{LATE_HELD_MAX, REPLY_BYTES_MAX};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

/// The share of the budget from which on writers wait for the flusher.
const SLOW_PERCENT: u64 = 90;
/// The share of what heads may take from which on the flusher writes them.
const FLUSH_PERCENT: u64 = 60;
/// Heads of less than this share of the budget are not worth a flush.
const FLUSH_WORTH: u64 = 32;
/// Bytes of what was read from blocks that are kept at hand, without a budget;
/// with one no more than this share of it.
const CACHE_BYTES: u64 = 32 << 20;
const CACHE_SHARE: u64 = 8;
/// The share of the budget that one reply may take.
const REPLY_SHARE: u64 = 8;
/// What a flush takes for each series it finds something of, until that is on
/// disk; and the least that such a series holds.
const FROZEN_BYTES: u64 = 320;
const HEAD_BYTES_MIN: u64 = 64;
/// Interval between measurements of the memory.
const MEASURE_INTERVAL_NS: u64 = 100_000_000;

/// How long the allocator takes to give back what a flush freed.
const SETTLING_NS: u64 = 1_000_000_000;

/// How near the budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Open,
    Slow,
    Full,
}

/// What the flusher does at this moment, for those who wait for memory.
#[derive(Debug, Default)]
pub(crate) struct FlushState {
    /// A thread flushes, and its last flush went well.
    works: AtomicBool,
    /// Held while somebody flushes.
    running: Mutex<()>,
    /// When the last flush ended, by the monotonic clock.
    ended_ns: AtomicU64,
}

impl FlushState {
    /// Whether a flush may be hoped for.
    pub(crate) fn works(&self) -> bool {
        self.works.load(Ordering::Relaxed)
    }

    /// Says whether a flush may be hoped for.
    pub(crate) fn set_works(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
    }

    /// Whether somebody flushes at this moment.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_locked()
    }

    /// Whether a flush ended so lately that the allocator may still hold what
    /// it freed.
    pub(crate) fn has_just_ended(&self, now_ns: u64) -> bool {
        let ended_ns = self.ended_ns.load(Ordering::Relaxed);
        ended_ns > 0 && now_ns.saturating_sub(ended_ns) < SETTLING_NS
    }

    /// Somebody flushes until the guard is dropped.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.running.lock()
    }

    /// A partition was flushed.
    pub(crate) fn end(&self, now_ns: u64) {
        self.ended_ns.store(now_ns, Ordering::Relaxed);
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pub(crate) flush: FlushState,
    /// 0 is no limit.
    pub(crate) limit_bytes: AtomicU64,
    measured_bytes: AtomicU64,
    /// What writers took since.
    grown_bytes: AtomicI64,
    measured_ns: AtomicU64,
    head_bytes: AtomicI64,
    /// The most series that one flush may find something of. One that is under
    /// way has frozen some: what they take is measured, and they have no heads.
    flushable: AtomicU64,
    pub(crate) crowd: Crowd,
    level: AtomicU8,
    /// A write waited in vain since the budget was used up.
    pub(crate) waited_in_vain: AtomicBool,
    peak_bytes: AtomicU64,
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_ns: AtomicU64,
    pub(crate) refused: Tally,
    pub(crate) turn: Mutex<()>,
    pub(crate) eased: Condvar,
}

/// Figures of the memory budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetStats {
    /// The budget; 0 is none.
    pub limit_bytes: u64,
    /// Anonymous memory of the process.
    pub used_bytes: u64,
    /// The most of it seen so far.
    pub peak_bytes: u64,
    /// Bytes of samples in memory and in no block.
    pub head_bytes: u64,
    /// Writes that waited because memory was short.
    pub stalls: u64,
    /// How long they waited, all together.
    pub stalled_ns: u64,
    /// Writes refused because memory was out.
    pub refused: Tallied,
}

impl Budget {
    /// A budget of so many bytes; 0 is no limit.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes: limit_bytes.into(),
            ..Self::default()
        }
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Memory of the process: the last measurement and what writers took since.
    pub(crate) fn used_bytes(&self) -> u64 {
        let grown = self.grown_bytes.load(Ordering::Relaxed);
        let measured = self.measured_bytes.load(Ordering::Relaxed);
        measured.saturating_add_signed(grown)
    }

    /// When the memory was measured last, by the monotonic clock.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.measured_ns.load(Ordering::Relaxed)
    }

    fn head_bytes(&self) -> u64 {
        // Shards tell in steps, so for a moment it may be below zero.
        u64::try_from(self.head_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// What a flush would take on top.
    fn reserved_bytes(&self) -> u64 {
        let flushable = self.flushable.load(Ordering::Relaxed);
        flushable.min(self.head_bytes() / HEAD_BYTES_MIN) * FROZEN_BYTES
    }

    /// Whether the heads together are worth a flush.
    pub(crate) fn can_free(&self) -> bool {
        let freed = match self.level() {
            // Sooner than nothing is written, little is flushed.
            Level::Full => self.head_bytes() + self.reserved_bytes(),
            _ => self.head_bytes(),
        };
        freed > self.limit_bytes() / FLUSH_WORTH
    }

    /// Whether heads fill so much of what is left for them that they should go,
    /// or writers wait for it.
    pub(crate) fn wants_flush(&self) -> bool {
        let (limit, used, heads) = (self.limit_bytes(), self.used_bytes(), self.head_bytes());
        let others = used.saturating_sub(heads);
        let share = limit.saturating_sub(others);
        let is_due = heads > share / 100 * FLUSH_PERCENT || self.level() > Level::Open;
        limit > 0 && self.can_free() && is_due
    }

    /// Late operations that all series together may hold.
    pub(crate) fn late_held_max(&self) -> usize {
        match self.limit_bytes() {
            0 => LATE_HELD_MAX,
            // An eighth of the budget, at 24 bytes each and as many again
            // while a flush brings them together.
            limit => LATE_HELD_MAX.min((limit / 8 / 48) as usize),
        }
    }

    /// How much of what was read from blocks may be kept at hand.
    pub(crate) fn cache_bytes(&self) -> u64 {
        match self.limit_bytes() {
            0 => CACHE_BYTES,
            limit => CACHE_BYTES.min(limit / CACHE_SHARE),
        }
    }

    /// How long one reply may be, and what is held while it is made.
    pub(crate) fn reply_bytes(&self) -> usize {
        match self.limit_bytes() {
            0 => REPLY_BYTES_MAX,
            limit => REPLY_BYTES_MAX.min((limit / REPLY_SHARE) as usize),
        }
    }

    /// How many bytes a shard takes before it tells.
    fn step(&self) -> i64 {
        match self.limit_bytes() {
            0 => 1 << 20,
            limit => (limit / 4096).clamp(4 << 10, 1 << 20) as i64,
        }
    }

    /// Whether writers wait for memory, or soon will.
    pub(crate) fn is_short(&self) -> bool {
        self.level() != Level::Open
    }

    pub(crate) fn level(&self) -> Level {
        match self.level.load(Ordering::Relaxed) {
            0 => Level::Open,
            1 => Level::Slow,
            _ => Level::Full,
        }
    }

    fn set_level(&self) -> Level {
        let (limit, used) = (self.limit_bytes(), self.used_bytes());
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        self.crowd.compare(limit);
        let used = used + self.reserved_bytes();
        let level = match limit {
            0 => Level::Open,
            _ if used >= limit => Level::Full,
            _ if used >= limit / 100 * SLOW_PERCENT => Level::Slow,
            _ => Level::Open,
        };
        let before = self.level.swap(level as u8, Ordering::Relaxed);
        if before > level as u8 {
            self.waited_in_vain.store(false, Ordering::Relaxed);
            self.eased.notify_all();
        }
        level
    }

    #[cold]
    fn add(&self, (heads, all): (i64, i64)) {
        self.head_bytes.fetch_add(heads, Ordering::Relaxed);
        self.grown_bytes.fetch_add(all, Ordering::Relaxed);
        self.crowd.grew(all - heads);
        self.set_level();
    }

    pub(crate) fn stats(&self) -> BudgetStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BudgetStats {
            limit_bytes: self.limit_bytes(),
            used_bytes: self.used_bytes(),
            peak_bytes: load(&self.peak_bytes),
            head_bytes: self.head_bytes(),
            stalls: load(&self.stalls),
            stalled_ns: load(&self.stalled_ns),
            refused: self.refused.get(),
        }
    }
}

impl Core {
    /// Tells the budget what a shard took, once that is worth it.
    #[inline]
    pub(crate) fn tell_budget(&self, state: &mut ShardState) {
        if let Some(bytes) = state.heads.tell(self.budget.step()) {
            self.budget.add(bytes);
            if self.log().is_none() {
                self.note_growth(self.budget.step() as usize);
            }
            if self.budget.wants_flush() {
                self.observe.signals.wake_flusher();
            }
        }
    }

    /// Measures the memory of the process.
    pub(crate) fn look_at_memory(&self) {
        let (mut series, mut stored) = (self.keys.len(), 0);
        for shard in &self.shards {
            let mut state = shard.lock();
            let untold = state.heads.take_untold();
            if self.keys.len() == 0 {
                // A replay makes the map of keys last.
                series += state.slab.len();
            }
            stored += state.heads.stored();
            drop(state);
            self.budget.add(untold);
        }
        let budget = &self.budget;
        // Whatever comes while the system answers is counted twice until the
        // next look.
        budget.grown_bytes.store(0, Ordering::Relaxed);
        let measured = self.env.process.anonymous_bytes();
        let measured = measured.unwrap_or_else(|| budget.head_bytes());
        budget.measured_bytes.store(measured, Ordering::Relaxed);
        budget.crowd.note_unstored(series.saturating_sub(stored));
        let flushable = series.min(1 << PARTITION_BITS) as u64;
        budget.flushable.store(flushable, Ordering::Relaxed);
        let now_ns = self.env.clock.monotonic_ns();
        let is_steady = !budget.flush.is_running() && !budget.flush.has_just_ended(now_ns);
        let beside_bytes = measured.saturating_sub(budget.head_bytes());
        budget.crowd.look(now_ns, beside_bytes, is_steady);
        budget.measured_ns.store(now_ns, Ordering::Relaxed);
        if budget.set_level() == Level::Full {
            // Sooner than a write is refused, reads have to go to the disk.
            self.store.cache.clear();
        }
    }

    /// Measures if the last measurement is outdated.
    pub(crate) fn look_if_stale(&self) {
        let now_ns = self.env.clock.monotonic_ns();
        let measured_ns = self.budget.measured_ns();
        if now_ns.saturating_sub(measured_ns) >= MEASURE_INTERVAL_NS {
            self.look_at_memory();
        }
    }
}
