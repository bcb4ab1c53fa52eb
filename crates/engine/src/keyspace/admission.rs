//! Who waits for memory, who is refused, and what makes room.
//!
//! A write asks before it takes any lock. Tested with [`crate::keyspace::memory_budget`].

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::Level;
use crate::observe::notices::About;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a batch waits near the budget, and at it.
const SLOW_WAIT_NS: u64 = 100_000_000;
const FULL_WAIT_NS: u64 = 1_000_000_000;
/// How long between two looks of somebody who waits.
const TURN: Duration = Duration::from_millis(5);

impl Db {
    /// Sets the memory budget; 0 is no limit. See
    /// [`crate::Options::memory_bytes`].
    pub fn set_memory_limit(&self, limit_bytes: u64) {
        self.core
            .budget
            .limit_bytes
            .store(limit_bytes, Ordering::Relaxed);
        self.core.budget.forget_crowd();
        let cache_bytes = self.core.budget.cache_bytes();
        self.core.store.cache.set_capacity(cache_bytes);
        self.core.look_at_memory();
        self.core.signals.wake_flusher();
    }

    /// The memory budget; 0 is no limit.
    pub fn memory_limit(&self) -> u64 {
        self.core.budget.limit_bytes()
    }

    /// Bytes that one reply may have: an eighth of the memory budget, and never
    /// more than [`REPLY_BYTES_MAX`](latewood_model::limits::REPLY_BYTES_MAX).
    pub fn reply_bytes_max(&self) -> usize {
        self.core.budget.reply_bytes()
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
        self.check_disk_budget()
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
            self.signals.wake_flusher();
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

    /// Refuses a new series where what is there to stay leaves no room for it.
    #[inline]
    pub(crate) fn check_crowd(&self) -> std::result::Result<(), Refusal> {
        match self.budget.is_crowded.load(Ordering::Relaxed) {
            true => {
                self.budget.refused.fetch_add(1, Ordering::Relaxed);
                let limit = self.budget.limit_bytes();
                let text = format_args!(
                    "new series are refused: those there are fill the memory budget of {limit} bytes"
                );
                self.notices.tell(About::Memory, text);
                Err(Refusal::OutOfMemory)
            }
            false => Ok(()),
        }
    }

    fn refuse_for_memory(&self) -> Error {
        self.budget.refused.fetch_add(1, Ordering::Relaxed);
        self.budget.waited_in_vain.store(true, Ordering::Relaxed);
        let used = self.budget.used_bytes();
        let limit = self.budget.limit_bytes();
        let message = format!("the process holds {used} bytes of memory, its budget is {limit}");
        let text = format_args!("writes are refused: {message}");
        self.notices.tell(About::Memory, text);
        Error::new(ErrorKind::OutOfMemory, message)
    }
}
