//! The memory budget: how much the process holds, who waits, who is refused.
//!
//! The truth is what the operating system says of the process' anonymous
//! memory, asked about every tenth of a second. Between two looks the writers
//! add what they know to have taken, in steps, so that a burst of new series
//! is seen before the next look. From [`SLOW_PERCENT`] of the budget on writers
//! wait for the flusher, a bounded time; at the budget they are refused, unless
//! a flush makes room while they wait. Reads and deletes always go on.
//!
//! Tested by `tests/budget.rs` with simulated memory and by the server's tests
//! with real memory.

use crate::block::PARTITION_BITS;
use crate::core::Core;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::shard::ShardState;
use latewood_model::limits::LATE_HELD_MAX;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

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
/// What a flush takes for each series of a partition until it is on disk.
const FROZEN_BYTES: u64 = 320;
/// How old a look at the memory gets.
const LOOK_NS: u64 = 100_000_000;
/// How long a batch waits near the budget, and at it.
const SLOW_WAIT_NS: u64 = 100_000_000;
const FULL_WAIT_NS: u64 = 1_000_000_000;
/// How long between two looks of somebody who waits.
const TURN: Duration = Duration::from_millis(5);

/// How near the budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Open,
    Slow,
    Full,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// 0 is no limit.
    limit_bytes: AtomicU64,
    measured_bytes: AtomicU64,
    /// What writers took since.
    grown_bytes: AtomicI64,
    measured_ns: AtomicU64,
    head_bytes: AtomicI64,
    /// What a flush would take on top.
    reserved_bytes: AtomicU64,
    level: AtomicU8,
    /// Since the budget is spent somebody waited and found no room.
    waited_in_vain: AtomicBool,
    peak_bytes: AtomicU64,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
    refused: AtomicU64,
    turn: Mutex<()>,
    eased: Condvar,
}

/// What the memory budget has seen.
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
    pub refused: u64,
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

    /// What the process holds, by the last look and what is known to have come
    /// since.
    fn used_bytes(&self) -> u64 {
        let grown = self.grown_bytes.load(Ordering::Relaxed);
        let measured = self.measured_bytes.load(Ordering::Relaxed);
        measured.saturating_add_signed(grown)
    }

    fn head_bytes(&self) -> u64 {
        // Shards tell in steps, so for a moment it may be below zero.
        u64::try_from(self.head_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Whether the heads together are worth a flush.
    fn can_free(&self) -> bool {
        self.head_bytes() > self.limit_bytes() / FLUSH_WORTH
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
            // while they are sorted.
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

    fn level(&self) -> Level {
        match self.level.load(Ordering::Relaxed) {
            0 => Level::Open,
            1 => Level::Slow,
            _ => Level::Full,
        }
    }

    fn set_level(&self) -> Level {
        let (limit, used) = (self.limit_bytes(), self.used_bytes());
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        let used = used + self.reserved_bytes.load(Ordering::Relaxed);
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
            refused: load(&self.refused),
        }
    }
}

impl Db {
    /// Sets the memory budget; 0 is no limit. See
    /// [`crate::Options::memory_bytes`].
    pub fn set_memory_limit(&self, limit_bytes: u64) {
        self.core
            .budget
            .limit_bytes
            .store(limit_bytes, Ordering::Relaxed);
        let cache_bytes = self.core.budget.cache_bytes();
        self.core.store.cache.set_capacity(cache_bytes);
        self.core.look_at_memory();
        self.core.wake_flusher();
    }

    /// The memory budget; 0 is no limit.
    pub fn memory_limit(&self) -> u64 {
        self.core.budget.limit_bytes()
    }

    /// Lets somebody pass who is going to need memory, perhaps after a wait.
    ///
    /// # Errors
    /// `OutOfMemory`: writes that need memory are refused now.
    pub fn check_memory(&self) -> Result<()> {
        self.core.check_memory()
    }

    /// Whether writes that need memory are refused now: the budget is spent
    /// and no flush would help.
    pub fn is_out_of_memory(&self) -> bool {
        let core = &self.core;
        core.budget.level() == Level::Full && {
            core.look_if_stale();
            core.budget.level() == Level::Full && !core.may_free_memory()
        }
    }
}

impl Core {
    /// Lets a write that needs memory pass, perhaps after a wait.
    ///
    /// # Errors
    /// `OutOfMemory` at the budget; `DiskBudget` where the files may not grow;
    /// `Halted` once the log has failed. The caller holds no lock.
    #[inline]
    pub(crate) fn admit_write(&self) -> Result<()> {
        self.check_writable()?;
        self.check_memory()?;
        self.check_room()
    }

    #[inline]
    fn check_memory(&self) -> Result<()> {
        match self.budget.level() {
            Level::Open => Ok(()),
            _ => self.wait_for_memory(),
        }
    }

    /// Whether a flush is likely to make room.
    fn may_free_memory(&self) -> bool {
        let frees = self.budget.can_free() || self.is_flushing() || self.has_just_flushed();
        self.flusher_works() && frees
    }

    /// Tells the budget what a shard took, once that is worth it.
    #[inline]
    pub(crate) fn tell_budget(&self, state: &mut ShardState) {
        if let Some(bytes) = state.heads.tell(self.budget.step()) {
            self.budget.add(bytes);
            if self.wal.is_none() {
                self.note_growth(self.budget.step() as usize);
            }
            if self.budget.wants_flush() {
                self.wake_flusher();
            }
        }
    }

    /// Asks what the process holds now.
    pub(crate) fn look_at_memory(&self) {
        let mut series = self.keys.len();
        for shard in &self.shards {
            let mut state = shard.lock();
            let untold = state.heads.take_untold();
            if self.keys.len() == 0 {
                // A replay makes the map of keys last.
                series += state.slab.places();
            }
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
        let reserved = match self.is_flushing() {
            true => 0,
            false => series.min(1 << PARTITION_BITS) as u64 * FROZEN_BYTES,
        };
        budget.reserved_bytes.store(reserved, Ordering::Relaxed);
        let now_ns = self.env.clock.monotonic_ns();
        budget.measured_ns.store(now_ns, Ordering::Relaxed);
        if budget.set_level() == Level::Full {
            // Sooner than a write is refused, reads have to go to the disk.
            self.store.cache.clear();
        }
    }

    /// The same where the last look is a while ago.
    pub(crate) fn look_if_stale(&self) {
        let now_ns = self.env.clock.monotonic_ns();
        let measured_ns = self.budget.measured_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(measured_ns) >= LOOK_NS {
            self.look_at_memory();
        }
    }

    #[cold]
    fn wait_for_memory(&self) -> Result<()> {
        let budget = &self.budget;
        let begun_ns = self.env.clock.monotonic_ns();
        let mut waited_ns = 0;
        let outcome = loop {
            self.look_if_stale();
            let level = budget.level();
            let wait_max_ns = match level {
                Level::Open => break Ok(()),
                Level::Slow => SLOW_WAIT_NS,
                Level::Full => FULL_WAIT_NS,
            };
            // Somebody waits before the first is refused; the next ones need not.
            let is_new = level == Level::Full
                && self.options.background
                && !budget.waited_in_vain.load(Ordering::Relaxed);
            if !(self.may_free_memory() || is_new) || waited_ns >= wait_max_ns {
                break match level {
                    Level::Full => Err(self.refuse_for_memory()),
                    _ => Ok(()),
                };
            }
            self.wake_flusher();
            let mut turn = budget.turn.lock();
            budget.eased.wait_for(&mut turn, TURN);
            drop(turn);
            waited_ns = self.env.clock.monotonic_ns().saturating_sub(begun_ns);
        };
        if waited_ns > 0 {
            budget.stalls.fetch_add(1, Ordering::Relaxed);
            budget.stalled_ns.fetch_add(waited_ns, Ordering::Relaxed);
        }
        outcome
    }

    fn refuse_for_memory(&self) -> Error {
        self.budget.refused.fetch_add(1, Ordering::Relaxed);
        self.budget.waited_in_vain.store(true, Ordering::Relaxed);
        let used = self.budget.used_bytes();
        let limit = self.budget.limit_bytes();
        Error::new(
            ErrorKind::OutOfMemory,
            format!("the process holds {used} bytes of memory, its budget is {limit}"),
        )
    }
}
