//! How the databases of a memory budget tell it what they hold, and which flushes for it.
//!
//! Shards tell in steps what they took. About every tenth of a second the rest is
//! told and the memory of the process is measured, by one of the databases that share
//! the budget. Tested with [`crate::keyspace::memory_budget`].

use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::{Budget, Level, MEASURE_INTERVAL_NS};
use crate::keyspace::memory_member::Member;
use crate::observe::signals::Job;
use crate::series::shard::ShardState;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Budget {
    pub(super) fn join(&self, member: &Arc<Member>) {
        self.members.lock().push(member.clone());
        self.shards.fetch_add(member.shards, Ordering::Relaxed);
    }

    /// A database is closed: what it held is free.
    pub(super) fn leave(&self, member: &Arc<Member>) {
        self.set_flushes(member, false);
        self.members
            .lock()
            .retain(|held| !Arc::ptr_eq(held, member));
        self.shards.fetch_sub(member.shards, Ordering::Relaxed);
        let heads = member.head_bytes.swap(0, Ordering::Relaxed);
        self.head_bytes.fetch_sub(heads, Ordering::Relaxed);
    }

    /// Says whether `member` has a thread that flushes, and its last flush went well.
    pub(crate) fn set_flushes(&self, member: &Member, flushes: bool) {
        let before = member.flushes.swap(flushes, Ordering::Relaxed);
        match (before, flushes) {
            (false, true) => self.flush.workers.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.flush.workers.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// Whether `member` should write heads into blocks for want of memory: no other that
    /// can has more of them.
    pub(crate) fn wants_flush_of(&self, member: &Member) -> bool {
        self.wants_flush() && {
            let own = member.head_bytes();
            let has_more = |other: &Arc<Member>| other.flushes() && other.head_bytes() > own;
            !self.members.lock().iter().any(has_more)
        }
    }

    /// Wakes the flusher that is to free memory.
    pub(crate) fn wake_flusher(&self) {
        let members = self.members.lock();
        let next = members
            .iter()
            .max_by_key(|member| (member.flushes(), member.head_bytes()));
        if let Some(next) = next {
            next.signals.wake(Job::Flush);
        }
    }

    /// A replay is over: what it held beside the series of all databases goes by itself.
    pub(super) fn note_replayed(&self) {
        let series = self
            .members
            .lock()
            .iter()
            .map(|member| member.series())
            .sum();
        self.crowd.note_replayed(self.now_ns(), series);
    }
}

impl Core {
    /// Tells the budget what a shard took, once that is worth it.
    #[inline]
    pub(crate) fn tell_budget(&self, state: &mut ShardState) {
        if let Some(bytes) = state.heads.tell(self.budget.step()) {
            self.budget.add(&self.member, bytes);
            if self.log().is_none() {
                self.note_growth(self.budget.step() as usize);
            }
            if self.budget.wants_flush() {
                self.budget.wake_flusher();
            }
        }
    }

    /// Tells the budget what no shard has told, and measures the memory of the process.
    pub(crate) fn look_at_memory(&self) {
        self.tell_all();
        self.measure();
    }

    /// Does the parts of [`Core::look_at_memory`] that are outdated.
    pub(crate) fn look_if_stale(&self) {
        let now_ns = self.budget.now_ns();
        let is_stale = |at_ns| now_ns.saturating_sub(at_ns) >= MEASURE_INTERVAL_NS;
        if is_stale(self.member.told_ns.load(Ordering::Relaxed)) {
            self.tell_all();
        }
        if is_stale(self.budget.measured_ns()) {
            self.measure();
        }
    }

    pub(crate) fn note_replayed(&self) {
        self.tell_all();
        self.budget.note_replayed();
        self.measure();
    }

    fn tell_all(&self) {
        let (mut series, mut stored) = (self.series_count(), 0);
        for shard in &self.shards {
            let mut state = shard.lock();
            let untold = state.heads.take_untold();
            if self.keys.len() == 0 {
                // awake: a replay makes the map of keys last; the parked ones are counted.
                series += state.slab.len();
            }
            stored += state.heads.stored() + state.parked.len();
            drop(state);
            self.budget.add(&self.member, untold);
        }
        let unstored = series.saturating_sub(stored) as u64;
        let order = Ordering::Relaxed;
        self.member.series.store(series as u64, order);
        self.member.unstored.store(unstored, order);
        self.member.told_ns.store(self.budget.now_ns(), order);
    }

    /// What is in memory of parked series, their labels aside.
    pub(crate) fn parked_bytes(&self) -> usize {
        let shards = self.shards.iter();
        let rows: usize = shards.map(|shard| shard.lock().parked.memory_bytes()).sum();
        rows + self.parked_keys.memory_bytes() + self.store.parked.get().memory_bytes()
    }

    fn measure(&self) {
        if self.budget.measure() == Level::Full {
            // Sooner than a write is refused, reads have to go to the disk.
            self.store.cache.clear();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.budget.leave(&self.member);
    }
}
