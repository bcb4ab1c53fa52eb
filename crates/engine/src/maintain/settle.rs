//! The settling thread, and settling everything at once.
//!
//! A settle takes its job under the shard's lock, works without it and comes
//! back to put the result in place, so writers wait for neither. Only one
//! thread settles at a time: whoever wants everything settled waits for the
//! one at work and goes on where it ends.

use super::IDLE_TURN;
use crate::core::Core;
use crate::error::Result;
use latewood_codec::Encoder;

/// Settles what is worth it at once and everything else after a while.
pub(super) fn run(core: &Core) {
    let mut encoder = Encoder::new();
    let mut turned_ns = core.env.clock.monotonic_ns();
    while core.signals.wait_settle(IDLE_TURN / 4) {
        let now_ns = core.env.clock.monotonic_ns();
        if u128::from(now_ns.saturating_sub(turned_ns)) >= IDLE_TURN.as_nanos() {
            turned_ns = now_ns;
            for shard in &core.shards {
                shard.lock().queue.turn();
            }
        }
        for shard in 0..core.shards.len() {
            // A failed settle is counted and leaves its operations in place.
            while core.settle_next(shard, true, &mut encoder).unwrap_or(true) {}
        }
    }
}

impl Core {
    /// Settles everything that waits in any shard.
    pub(crate) fn settle_all(&self) -> Result<()> {
        let mut encoder = Encoder::new();
        for shard in 0..self.shards.len() {
            // Twice: what waits now is fresh, then aged.
            self.shards[shard].lock().queue.turn();
            while self.settle_next(shard, true, &mut encoder)? {}
        }
        Ok(())
    }

    /// Settles one series of `shard`; false when none waits.
    fn settle_next(&self, shard: usize, idle: bool, encoder: &mut Encoder) -> Result<bool> {
        let _one_at_a_time = self.settler.lock();
        let (place, job) = {
            let mut state = self.shards[shard].lock();
            let Some(place) = state.queue.pop(idle) else {
                return Ok(false);
            };
            let Some(series) = state.slab.get_mut(place) else {
                return Ok(true);
            };
            series.queued = false;
            let Some(job) = series.begin_settle() else {
                return Ok(true);
            };
            (place, job)
        };
        let settled = job.run(encoder);
        let mut guard = self.shards[shard].lock();
        let state = &mut *guard;
        let settled = match settled {
            Ok(settled) => settled,
            Err(error) => {
                state.counters.settles_failed += 1;
                return Err(error);
            }
        };
        let work = settled.work;
        let Some(series) = state.slab.get_mut(place) else {
            return Ok(true);
        };
        if series.finish_settle(settled) {
            state.counters.note_settle(work);
        }
        if series.late_pending() > 0 {
            state.queue.wait(series, place);
        }
        Ok(true)
    }
}
