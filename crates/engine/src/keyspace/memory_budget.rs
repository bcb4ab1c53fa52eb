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
//! Databases of one process may share a budget: the limit holds for all of them
//! together. Where memory is short, the database with the most in memory that a flush
//! can write flushes first, then the one that has the most by then. One flush runs at
//! a time, so that memory for one has to be reserved.
//!
//! Tested by `tests/memory_budget.rs` and `tests/db_shared.rs` with simulated memory and by the server's tests
//! with real memory.

use crate::base::partition::PARTITION_BITS;
use crate::base::tally::Tallied;
use crate::io::Env;
use crate::keyspace::crowd::Crowd;
use crate::keyspace::flush_state::FlushState;
use crate::keyspace::memory_member::{Member, not_negative};
use crate::series::heads::Untold;
use latewood_model::limits::{LATE_HELD_MAX, REPLY_BYTES_MAX};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The share of the budget from which on writers wait for the flusher.
const SLOW_PERCENT: u64 = 90;
/// The share of what heads may take from which on the flusher writes them.
const FLUSH_PERCENT: u64 = 60;
/// Heads of less than this share of the budget are not worth a flush.
const FLUSH_WORTH: u64 = 32;
/// Size of the cache of blocks without a budget; with one, at most this share of it.
const CACHE_BYTES: u64 = 32 << 20;
const CACHE_SHARE: u64 = 8;
/// The share of the budget that one reply may take.
const REPLY_SHARE: u64 = 8;
/// What a flush takes for each series it finds something of, until that is on
/// disk; and the least that such a series holds.
const FROZEN_BYTES: u64 = 320;
const HEAD_BYTES_MIN: u64 = 64;
/// Interval between measurements of the memory.
pub(super) const MEASURE_INTERVAL_NS: u64 = 100_000_000;

/// How near the budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Open,
    Slow,
    Full,
}

#[derive(Debug)]
pub(crate) struct Budget {
    /// Times are those of this clock: the databases may have others.
    env: Env,
    pub(crate) flush: FlushState,
    /// 0 is no limit.
    pub(crate) limit_bytes: AtomicU64,
    measured_bytes: AtomicU64,
    /// What writers took since.
    grown_bytes: AtomicI64,
    measured_ns: AtomicU64,
    pub(super) head_bytes: AtomicI64,
    /// The most series that one flush may find something of. One that is under
    /// way has frozen some: what they take is measured, and they have no heads.
    flushable: AtomicU64,
    pub(crate) crowd: Crowd,
    level: AtomicU8,
    /// A write waited in vain since the budget was used up.
    pub(crate) waited_in_vain: AtomicBool,
    peak_bytes: AtomicU64,
    pub(crate) turn: Mutex<()>,
    pub(crate) eased: Condvar,
    /// The databases that share the budget.
    pub(super) members: Mutex<Vec<Arc<Member>>>,
    pub(super) shards: AtomicUsize,
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
    /// Bytes of samples of this database in memory and in no block.
    pub head_bytes: u64,
    /// Writes to this database that waited because memory was short.
    pub stalls: u64,
    /// How long they waited, all together.
    pub stalled_ns: u64,
    /// Writes to this database refused because memory was out.
    pub refused: Tallied,
}

impl Budget {
    /// A budget of `limit_bytes`; 0 means no limit.
    pub(crate) fn new(env: &Env, limit_bytes: u64) -> Self {
        Self {
            env: env.clone(),
            flush: FlushState::default(),
            limit_bytes: limit_bytes.into(),
            measured_bytes: AtomicU64::new(0),
            grown_bytes: AtomicI64::new(0),
            measured_ns: AtomicU64::new(0),
            head_bytes: AtomicI64::new(0),
            flushable: AtomicU64::new(0),
            crowd: Crowd::default(),
            level: AtomicU8::new(0),
            waited_in_vain: AtomicBool::new(false),
            peak_bytes: AtomicU64::new(0),
            turn: Mutex::default(),
            eased: Condvar::new(),
            members: Mutex::default(),
            shards: AtomicUsize::new(0),
        }
    }

    /// Now, by the clock of the budget.
    pub(crate) fn now_ns(&self) -> u64 {
        self.env.clock.monotonic_ns()
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

    /// When the memory was measured last, by the clock of the budget.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.measured_ns.load(Ordering::Relaxed)
    }

    fn head_bytes(&self) -> u64 {
        not_negative(&self.head_bytes)
    }

    /// The memory that a flush would need in addition.
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

    /// Whether heads should be flushed: they fill most of what is left for them, or
    /// writers wait for memory.
    pub(crate) fn wants_flush(&self) -> bool {
        let (limit, used, heads) = (self.limit_bytes(), self.used_bytes(), self.head_bytes());
        let others = used.saturating_sub(heads);
        let share = limit.saturating_sub(others);
        let is_due = heads > share / 100 * FLUSH_PERCENT || self.level() > Level::Open;
        limit > 0 && self.can_free() && is_due
    }

    /// Late operations that all series of a shard together may hold.
    pub(crate) fn late_held_max(&self) -> usize {
        let all = match self.limit_bytes() {
            0 => LATE_HELD_MAX,
            // An eighth of the budget, at 24 bytes each and as many again
            // while a flush brings them together.
            limit => LATE_HELD_MAX.min((limit / 8 / 48) as usize),
        };
        all / self.shards.load(Ordering::Relaxed).max(1)
    }

    /// The size of the cache of blocks.
    pub(crate) fn cache_bytes(&self) -> u64 {
        match self.limit_bytes() {
            0 => CACHE_BYTES,
            limit => CACHE_BYTES.min(limit / CACHE_SHARE),
        }
    }

    /// The maximum size of a reply, and of what is held while it is made.
    pub(crate) fn reply_bytes(&self) -> usize {
        match self.limit_bytes() {
            0 => REPLY_BYTES_MAX,
            limit => REPLY_BYTES_MAX.min((limit / REPLY_SHARE) as usize),
        }
    }

    /// How many bytes a shard takes before it tells.
    pub(super) fn step(&self) -> i64 {
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

    /// Adds what a shard of `member` took.
    #[cold]
    pub(super) fn add(&self, member: &Member, taken: Untold) {
        let Untold { head_bytes, bytes } = taken;
        member.head_bytes.fetch_add(head_bytes, Ordering::Relaxed);
        self.head_bytes.fetch_add(head_bytes, Ordering::Relaxed);
        self.grown_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.crowd.grew(bytes - head_bytes);
        self.set_level();
    }

    /// Measures the memory of the process.
    pub(super) fn measure(&self) -> Level {
        // Whatever comes while the system answers is counted twice until the
        // next look.
        self.grown_bytes.store(0, Ordering::Relaxed);
        let measured = self.env.process.anonymous_bytes();
        let measured = measured.unwrap_or_else(|| self.head_bytes());
        self.measured_bytes.store(measured, Ordering::Relaxed);
        let (mut unstored, mut flushable) = (0, 0);
        for member in self.members.lock().iter() {
            unstored += member.unstored.load(Ordering::Relaxed);
            // One flush at a time, of one partition.
            flushable = flushable.max(member.series().min(1 << PARTITION_BITS));
        }
        self.crowd.note_unstored(unstored);
        self.flushable.store(flushable, Ordering::Relaxed);
        let now_ns = self.now_ns();
        let is_steady = !self.flush.is_running() && !self.flush.has_just_ended(now_ns);
        let beside_bytes = measured.saturating_sub(self.head_bytes());
        self.crowd.look(now_ns, beside_bytes, is_steady);
        self.measured_ns.store(now_ns, Ordering::Relaxed);
        self.set_level()
    }

    /// The figures, of which some are of `member` alone.
    pub(crate) fn stats(&self, member: &Member) -> BudgetStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BudgetStats {
            limit_bytes: self.limit_bytes(),
            used_bytes: self.used_bytes(),
            peak_bytes: load(&self.peak_bytes),
            head_bytes: member.head_bytes(),
            stalls: load(&member.stalls),
            stalled_ns: load(&member.stalled_ns),
            refused: member.refused.get(),
        }
    }
}
