//! What the flushers of the databases of a memory budget do at this moment, for those
//! who wait for memory. One flush runs at a time. Tested with
//! [`crate::keyspace::memory_budget`].

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long the allocator takes to give back what a flush freed.
const SETTLING_NS: u64 = 1_000_000_000;
/// Interval at which a waiting flush checks whether it was called off.
const TURN: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct FlushState {
    /// Databases with a thread that flushes and whose last flush went well.
    pub(super) workers: AtomicUsize,
    /// Held while somebody flushes.
    running: Mutex<()>,
    /// When the last flush ended, by the clock of the budget.
    ended_ns: AtomicU64,
}

impl FlushState {
    /// Whether a flush may be hoped for.
    pub(crate) fn works(&self) -> bool {
        self.workers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_locked()
    }

    /// Whether a flush ended so lately that the allocator may still hold what
    /// it freed.
    pub(crate) fn has_just_ended(&self, now_ns: u64) -> bool {
        let ended_ns = self.ended_ns.load(Ordering::Relaxed);
        ended_ns > 0 && now_ns.saturating_sub(ended_ns) < SETTLING_NS
    }

    /// Begins a flush, which ends when the guard is dropped. Waits for a running flush.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.running.lock()
    }

    /// The same; gives up once `is_called_off`.
    pub(crate) fn begin_unless(
        &self,
        is_called_off: impl Fn() -> bool,
    ) -> Option<MutexGuard<'_, ()>> {
        loop {
            if let Some(running) = self.running.try_lock_for(TURN) {
                return Some(running);
            }
            if is_called_off() {
                return None;
            }
        }
    }

    /// A partition was flushed.
    pub(crate) fn end(&self, now_ns: u64) {
        self.ended_ns.store(now_ns, Ordering::Relaxed);
    }
}
