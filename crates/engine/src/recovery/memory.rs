//! Keeping a replay within the memory budget.
//!
//! A log may hold many times what memory does. When memory gets short the
//! replay stops between two groups: everything before is applied in every
//! shard, nothing behind is touched. That is a state which the database was in
//! once, so it is flushed as a running database is, with that group as the
//! position of each series. A crash finds the manifest of the last such flush
//! and goes on as after any other.
//!
//! Behind a hole of the log nothing is flushed before the end: which of two
//! series has a key is only decided there.
//!
//! Tested by `tests/recovery_budget.rs` on the simulated disk, with a crash at
//! every operation of such a recovery.

use crate::base::error::Result;
use crate::log::Position;
use crate::recovery::Replayer;
use std::sync::atomic::Ordering;

/// How long after a flush that failed the next one is tried.
const RETRY_NS: u64 = 1_000_000_000;

impl Replayer<'_> {
    /// Whether heads should go to disk before more is applied.
    pub(crate) fn is_short(&self) -> bool {
        let core = self.recovery.core;
        core.look_if_stale();
        core.budget.wants_flush()
            && !self.behind_hole.load(Ordering::Relaxed)
            && core.env.clock.monotonic_ns() >= self.retry_ns.load(Ordering::Relaxed)
    }

    /// Flushes until memory is not short, all groups up to `applied` being
    /// applied and durable, and none behind it. Where that fails the replay
    /// goes on: better a start beyond the budget than none.
    ///
    /// # Errors
    /// `Halted` and its cause where it is not known which manifest is in force.
    pub(crate) fn flush_heads(&self, applied: Position) -> Result<()> {
        let core = self.recovery.core;
        core.log.replayed.store(applied.0, Ordering::Relaxed);
        loop {
            match self.recovery.flusher.flush_if_due() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if core.check_writable().is_err() => return Err(error),
                Err(_) => {
                    let now_ns = core.env.clock.monotonic_ns();
                    let retry_ns = now_ns.saturating_add(RETRY_NS);
                    self.retry_ns.store(retry_ns, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
    }
}
