//! Settling late samples: one series, or everything.
//!
//! A settle takes its job under the lock of the shard, works without the lock and
//! takes it again to install the result, so writers hardly wait. One thread settles
//! at a time: a request to settle everything waits for the running one. Tested
//! below and through the database.

use crate::base::error::{Error, Result};
use crate::base::partition::partition_of;
use crate::base::text::shown_key;
use crate::keyspace::core::Core;
use crate::observe::notices::About;
use crate::observe::observer::Work;
use crate::observe::signals::Job;
use crate::series::Pressure;
use crate::series::settle_queue::Waiting;
use crate::series::shard::ShardState;
use latewood_codec::Encoder;
use latewood_model::SeriesId;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// Series checked under one hold of the shard's lock.
const SERIES_PER_LOCK_MAX: usize = 512;

/// Settling outside the shards' locks, one thread at a time.
pub(crate) struct Settler {
    core: Arc<Core>,
    lock: Mutex<()>,
}

impl Settler {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self {
            core: core.clone(),
            lock: Mutex::new(()),
        }
    }

    /// Waits for the running settle; no other starts while the guard is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Settles everything that waits in any shard.
    ///
    /// # Errors
    /// Of the first series that cannot be settled, once the others are.
    pub(crate) fn settle_all(&self) -> Result<()> {
        let settler = self.lock.lock();
        self.turn(&settler, 0);
        let (mut settled, mut encoder) = (Ok(()), Encoder::new());
        while let Err(error) = self.settle_ready(&settler, &mut encoder) {
            settled = settled.and(Err(error));
        }
        settled
    }

    /// Looks at every series that waits: those that got nothing since the last
    /// turn, or waited `turns_max` turns, are ready.
    pub(crate) fn turn(&self, _settler: &MutexGuard<'_, ()>, turns_max: u32) {
        for shard in &self.core.shards {
            let waiting = std::mem::take(&mut shard.lock().queue.waiting);
            for some in waiting.chunks(SERIES_PER_LOCK_MAX) {
                let mut state = shard.lock();
                for one in some {
                    self.look_at(&mut state, *one, turns_max);
                }
            }
        }
    }

    /// Settles the ready series of every shard.
    pub(crate) fn settle_ready(
        &self,
        settler: &MutexGuard<'_, ()>,
        encoder: &mut Encoder,
    ) -> Result<()> {
        // One series of each shard in turn: none waits for another to dry up.
        loop {
            let mut settled = false;
            for shard in 0..self.core.shards.len() {
                settled |= self.settle_next(settler, shard, encoder)?;
            }
            if !settled || self.core.observe.signals.stopped() {
                return Ok(());
            }
        }
    }

    /// Settles one series, unless somebody is settling.
    pub(crate) fn settle_one(&self, id: SeriesId) -> Result<()> {
        let Some(settler) = self.lock.try_lock() else {
            return Ok(());
        };
        let (shard, place) = (self.core.shards.shard_of(id), self.core.shards.place_of(id));
        self.settle_at(&settler, shard, place, &mut Encoder::new())
    }

    /// Settles one series of `shard`; false when none is ready.
    fn settle_next(
        &self,
        settler: &MutexGuard<'_, ()>,
        shard: usize,
        encoder: &mut Encoder,
    ) -> Result<bool> {
        let Some(place) = self.core.shards[shard].lock().queue.pop() else {
            return Ok(false);
        };
        self.settle_at(settler, shard, place, encoder)?;
        Ok(true)
    }

    /// Settles the series at `place`, if there is anything to settle.
    fn settle_at(
        &self,
        _settler: &MutexGuard<'_, ()>,
        shard: usize,
        place: usize,
        encoder: &mut Encoder,
    ) -> Result<()> {
        let job = {
            let mut state = self.core.shards[shard].lock();
            // awake: what has late operations does not park.
            let Some(series) = state.slab.get_mut(place) else {
                return Ok(());
            };
            series.ready = false;
            match series.begin_settle() {
                Some(job) => job,
                None => return Ok(()),
            }
        };
        let begun_ns = self.core.env.clock.monotonic_ns();
        let settled = job.run(encoder);
        let took_ns = self.core.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.core.observe.observer.note(Work::Settle, took_ns);
        let mut guard = self.core.shards[shard].lock();
        let state = &mut *guard;
        let settled = match settled {
            Ok(settled) => settled,
            Err(error) => {
                state.counters.settles_failed += 1;
                if let Some(series) = state.slab.get_mut(place) {
                    self.core.tell_unsettled(&series.key, &error);
                    series.cancel_settle();
                    state.queue.wait(series, place);
                }
                return Err(error);
            }
        };
        let work = settled.work;
        let Some(series) = state.slab.get_mut(place) else {
            return Ok(());
        };
        if series.finish_settle(settled) {
            state.counters.note_settle(work);
        }
        state.recount(place);
        state.note_rules(place);
        Ok(())
    }

    fn look_at(&self, state: &mut ShardState, mut one: Waiting, turns_max: u32) {
        let place = one.place;
        // awake: what has late operations does not park.
        let Some(series) = state.slab.get_mut(place) else {
            return;
        };
        let is_settled = series.late_pending() == 0;
        if is_settled && !series.has_deep_marks() {
            series.queued = false;
            return;
        }
        let pushed = series.late_pushed();
        if one.turns < turns_max && pushed != one.pushed {
            one.turns += 1;
            one.pushed = pushed;
            state.queue.waiting.push(one);
            return;
        }
        series.queued = false;
        if is_settled {
            series.rest_deep();
            state.note_rules(place);
        } else {
            state.queue.ready(series, place);
        }
    }
}

impl Core {
    /// Counts what a series with late samples holds, and settles it if it is due.
    pub(crate) fn late_upkeep(&self, state: &mut ShardState, place: usize) {
        // awake: it has late operations.
        let Some(series) = state.slab.get_mut(place) else {
            return;
        };
        state
            .heads
            .note(series, partition_of(self.shards.id_of(0, place)));
        let held_max = self.budget.late_held_max();
        match series.pressure(state.queue.held, held_max) {
            Pressure::None => {}
            Pressure::Ready => {
                if state.queue.ready(series, place) {
                    self.observe.signals.wake(Job::Settle);
                }
            }
            Pressure::Overdue => {
                match series.settle_now(&mut state.sealer) {
                    Ok(work) => state.counters.note_settle(work),
                    // The operations stay where they are; reads report the damage.
                    Err(error) => {
                        self.tell_unsettled(&series.key, &error);
                        state.counters.settles_failed += 1;
                    }
                }
                state.recount(place);
                state.note_rules(place);
            }
        }
    }

    /// Tells the operator that a settle failed.
    pub(crate) fn tell_unsettled(&self, key: &[u8], error: &Error) {
        let key = shown_key(key);
        let text = format_args!("late samples of series {key} cannot be settled: {error}");
        self.observe.notices.tell(About::Settle, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::io::sim::SimDisk;
    use crate::{Db, Defaults, Error, ErrorKind, NoticeHook, Options};
    use parking_lot::Mutex;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn a_key_that_cannot_be_settled_is_named_on_one_short_line() {
        let said = Arc::new(Mutex::new(String::new()));
        let hears = said.clone();
        let options = Options {
            background: false,
            on_notice: Some(NoticeHook::new(move |line| hears.lock().push_str(line))),
            ..Options::default()
        };
        let env = SimDisk::new().env(1);
        let db = Db::open(&env, Path::new("/db"), options, Defaults::default())
            .expect("an empty disk takes a database");
        let key = [&b"a\nall is well\x1b"[..], &[b'k'; 1000]].concat();
        let error = Error::new(ErrorKind::Corrupt, "the chunk is damaged");
        db.parts().core.tell_unsettled(&key, &error);
        let said = said.lock();
        assert!(said.contains("series a\\nall is well\\x1bk"), "{said}");
        assert!(said.contains("k... cannot be settled: the chunk"), "{said}");
        assert!(said.len() < 200 && !said.contains('\n'), "{said}");
    }
}
