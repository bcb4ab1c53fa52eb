//! Keeping a replay within the memory budget.
//!
//! A log may hold many times more than fits in memory. When replay memory is short
//! the replay stops between two groups: all groups before are applied in every
//! shard, none after. The database was in that state before, so it is flushed as a
//! running database is, with the group as the position of each series. After a
//! crash, recovery continues from the manifest of the last such flush.
//!
//! After a hole in the log nothing is flushed before the end of the replay, because
//! only then is it known which of two series has a key.
//!
//! Tested by `tests/recovery_budget.rs` on the simulated disk, with a crash at
//! every operation of such a recovery.

use crate::base::error::Result;
use crate::log::Position;
use crate::recovery::Replayer;
use std::sync::atomic::Ordering;

/// Delay of the next flush after a failed one.
const RETRY_NS: u64 = 1_000_000_000;

impl Replayer<'_> {
    /// Whether heads should go to disk before more is applied.
    pub(crate) fn is_short(&self) -> bool {
        let core = self.recovery.core;
        core.look_if_stale();
        core.budget.wants_flush_of(&core.member)
            && !self.behind_hole.load(Ordering::Relaxed)
            && core.env.clock.monotonic_ns() >= self.retry_ns.load(Ordering::Relaxed)
    }

    /// Flushes until replay memory is no longer short. All groups up to `applied` are
    /// applied and durable, none after. If a flush fails the replay continues beyond
    /// the budget.
    ///
    /// # Errors
    /// `Halted` and its cause where it is not known which manifest is in force.
    pub(crate) fn flush_heads(&self, applied: Position) -> Result<()> {
        let core = self.recovery.core;
        core.log.replayed.store(applied.0, Ordering::Relaxed);
        if core.log.is_remote() {
            core.store.begin_numbers(applied);
        }
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
