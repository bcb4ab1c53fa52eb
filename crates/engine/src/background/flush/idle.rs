//! When series are parked: those that nobody wrote to for a while, and more of them where memory has
//! no room for new ones.
//!
//! Each partition is looked at twice in the time that a series has to be idle: one that was not
//! written to between two looks is idle. Where memory is near its limit that does not wait: partitions
//! are flushed and all series of them parked that nobody has written to for a few seconds, the one that
//! is silent longest first. New series are numbered as they come, so those that went together lie in
//! the same partitions. Where there is no room for new series any more, idle series of the others follow,
//! and then all that may park.
//!
//! Tested by `recovery/tests/parked_files.rs` and `tests/memory_budget.rs`.

use crate::background::flush::park::{Parked, Which};
use crate::background::flush::{Flusher, Turn};
use crate::base::error::Result;
use crate::observe::notices::About;
use crate::series::heads::Head;
use crate::series::shard::Shard;
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// Interval of the looks at a partition, at least.
const INTERVAL_MIN_NS: u64 = 1_000_000;
/// The interval doubles up to this while all series of a partition are parked: there may be thousands of
/// these. Nothing tells here of a series that a command woke without a write; it is found then.
const INTERVAL_MAX_NS: u64 = 60_000_000_000;
/// Delay of a pass after one that failed.
const RETRY_NS: u64 = 10_000_000_000;
/// Interval at which partitions are gone through while memory is short.
const ROUND_NS: u64 = 2_000_000_000;
/// How long nobody has written to a partition whose series are parked for want of memory: near the
/// limit. Twice as long each time that somebody soon writes to it again.
const SILENT_NS: u64 = 10_000_000_000;
const SILENT_MAX_NS: u64 = 3_600_000_000_000;
/// Soon: within this many times as long.
const SOON: u64 = 16;
/// This part of it is enough where new series wait for room already, and at the limit, where all of a
/// partition is parked at most once in this time.
const SHORT_SHARE: u64 = 4;
const CROWDED_REST_NS: u64 = 60_000_000_000;
/// So many series that leave since they are idle make room that new ones had better wait for.
const ROOM_SERIES: u64 = 1_000;

/// The looks for idle series.
#[derive(Debug, Default)]
pub(super) struct Looks {
    partitions: BTreeMap<u32, Seen>,
    /// What is left to do for want of memory, and when the next round may begin.
    round: VecDeque<(u32, Which)>,
    next_round_ns: u64,
    /// No pass before.
    retry_ns: u64,
}

/// What was seen of a partition.
#[derive(Debug)]
struct Seen {
    /// When it was looked at last, or seen first.
    looked_ns: u64,
    /// How many of the last looks, in a row, found none awake.
    idle_looks: u32,
    /// The newest group of the log that concerns it, and when that was seen first.
    newest: u64,
    written_ns: u64,
    /// How long nobody has to write to it before its series are parked for want of memory.
    silent_ns: u64,
    /// When they were last.
    parked_ns: Option<u64>,
    /// Nobody has written to it since.
    rests: bool,
}

impl Seen {
    fn new(now_ns: u64) -> Self {
        Self {
            looked_ns: now_ns,
            idle_looks: 0,
            newest: 0,
            written_ns: now_ns,
            silent_ns: SILENT_NS,
            parked_ns: None,
            rests: false,
        }
    }

    /// Notes the newest group that concerns it.
    fn note(&mut self, newest: u64, now_ns: u64) {
        if self.newest == newest {
            return;
        }
        (self.newest, self.written_ns) = (newest, now_ns);
        self.idle_looks = 0;
        if std::mem::take(&mut self.rests)
            && now_ns - self.parked_ns.unwrap_or(now_ns) < SOON * self.silent_ns
        {
            self.silent_ns = (2 * self.silent_ns).min(SILENT_MAX_NS);
        }
    }

    /// How long after the last look the next one is due.
    fn interval_ns(&self, shortest_ns: u64) -> u64 {
        let doubled_ns = shortest_ns.saturating_mul(1_u64 << self.idle_looks.min(u32::BITS - 1));
        doubled_ns.min(INTERVAL_MAX_NS).max(shortest_ns)
    }

    /// Whether nobody has written to it for long enough; sooner where memory `is_short`.
    fn is_silent(&self, is_short: bool, now_ns: u64) -> bool {
        let share = if is_short { SHORT_SHARE } else { 1 };
        // Reads may have woken some of those that rest.
        (!self.rests || self.is_rested(CROWDED_REST_NS, now_ns))
            && now_ns.saturating_sub(self.written_ns) >= self.silent_ns / share
    }

    /// Whether its series have not been parked for that long.
    fn is_rested(&self, rest_ns: u64, now_ns: u64) -> bool {
        self.parked_ns
            .is_none_or(|at_ns| now_ns.saturating_sub(at_ns) >= rest_ns)
    }
}

impl Flusher {
    /// Parks the idle series of the partition whose turn it is, if a look is due. Returns whether
    /// there was one.
    pub(crate) fn park_if_due(&self) -> bool {
        let idle_ms = self.core.store.park_after_ms.load(Ordering::Relaxed);
        if idle_ms == 0 || !self.core.parks() || self.core.check_writable().is_err() {
            return false;
        }
        let mut turn = self.turn.lock();
        let now_ns = self.core.env.clock.monotonic_ns();
        if turn.failed.is_some() || now_ns < turn.looks.retry_ns {
            return false;
        }
        let interval_ns = (idle_ms.saturating_mul(1_000_000) / 2).max(INTERVAL_MIN_NS);
        self.see(&mut turn.looks, now_ns);
        if let Some(partition) = turn.looks.due(interval_ns, now_ns) {
            let parked = self.park_in_turn(&mut turn, partition, Which::Idle, now_ns);
            if let Some(series @ ROOM_SERIES..) = parked
                && self.is_pressed()
            {
                let budget = &self.core.budget;
                budget.crowd.note_parked(series, budget.now_ns());
            }
            return parked.is_some();
        }
        match self.next_of_round(&mut turn.looks, now_ns) {
            // What it freed is measured before another one is begun.
            Some((partition, which)) => {
                let budget = &self.core.budget;
                budget.crowd.note_parking(budget.now_ns());
                let parked = if self.flush_for_room(&mut turn, partition) {
                    self.park_in_turn(&mut turn, partition, which, now_ns)
                } else {
                    None
                };
                budget
                    .crowd
                    .note_parked(parked.unwrap_or(0), budget.now_ns());
                parked.is_some() && self.is_pressed()
            }
            None => false,
        }
    }

    /// Notes which partitions were written to.
    fn see(&self, looks: &mut Looks, now_ns: u64) {
        for (partition, head) in self.heads().iter() {
            // Partitions have 32 bits.
            let seen = looks.partitions.entry(partition as u32);
            let seen = seen.or_insert_with(|| Seen::new(now_ns));
            seen.note(head.newest, now_ns);
        }
    }

    /// What is to be done next for want of memory.
    fn next_of_round(&self, looks: &mut Looks, now_ns: u64) -> Option<(u32, Which)> {
        if !self.is_pressed() {
            looks.round.clear();
            return None;
        }
        if looks.round.is_empty() && now_ns >= looks.next_round_ns {
            looks.next_round_ns = now_ns + ROUND_NS;
            let is_crowded = self.is_crowded();
            let mut order: Vec<_> = looks.partitions.iter().collect();
            order.sort_by_key(|(_, seen)| seen.written_ns);
            let is_short = is_crowded || self.core.budget.crowd.makes_wait();
            let silent = order
                .iter()
                .filter(|(_, seen)| seen.is_silent(is_short, now_ns));
            let round = &mut looks.round;
            round.extend(silent.map(|&(&partition, _)| (partition, Which::All)));
            if is_crowded {
                let rested = order
                    .iter()
                    .filter(|(_, seen)| seen.is_rested(CROWDED_REST_NS, now_ns));
                for which in [Which::Idle, Which::All] {
                    let rested = rested.clone();
                    round.extend(rested.map(|&(&partition, _)| (partition, which)));
                }
            }
        }
        looks.round.pop_front()
    }

    /// Whether memory will soon have no room for new series, or for samples where no flush makes some.
    fn is_pressed(&self) -> bool {
        self.core.budget.crowd.is_near() || self.is_crowded()
    }

    fn is_crowded(&self) -> bool {
        let budget = &self.core.budget;
        budget.crowd.is_crowded() || budget.is_short() && !budget.can_free()
    }

    /// Writes what a partition has in memory alone: only then its series can leave. Returns whether
    /// it could.
    fn flush_for_room(&self, turn: &mut MutexGuard<'_, Turn>, partition: u32) -> bool {
        let is_dirty = |shard: &Shard| {
            let state = shard.lock();
            let head = state.heads.partitions().get(partition as usize);
            head.is_some_and(Head::is_dirty)
        };
        if !self.core.shards.iter().any(is_dirty) {
            return true;
        }
        let is_closing = || self.core.observe.signals.stopped();
        let Some(_running) = self.core.budget.flush.begin_unless(is_closing) else {
            return false;
        };
        // A failure is counted, reported in the figures and retried.
        self.flush_in_turn(turn, partition).is_ok()
    }

    /// How many series it parked; `None` if it failed.
    fn park_in_turn(
        &self,
        turn: &mut MutexGuard<'_, Turn>,
        partition: u32,
        which: Which,
        now_ns: u64,
    ) -> Option<u64> {
        let looks = &mut turn.looks;
        if let Some(seen) = looks.partitions.get_mut(&partition) {
            match which {
                Which::Idle => seen.looked_ns = now_ns,
                Which::All => (seen.parked_ns, seen.rests) = (Some(now_ns), true),
            }
        }
        match self.park_and_count(partition, which, false) {
            Ok(parked) => {
                if let Some(seen) = looks.partitions.get_mut(&partition) {
                    seen.idle_looks = if parked.are_all_parked {
                        seen.idle_looks + 1
                    } else {
                        0
                    };
                }
                Some(parked.series)
            }
            Err(error) => {
                looks.retry_ns = now_ns + RETRY_NS;
                let text = format_args!(
                    "series could not be parked: {error}; they stay in memory, and a later pass tries again"
                );
                self.core.observe.notices.tell(About::Park, text);
                None
            }
        }
    }

    /// Parks all series that may be parked, or those of them that are idle. How many there were:
    /// none while a failed flush waits for another try.
    pub(crate) fn park_now(&self, which: Which) -> Result<u64> {
        if !self.core.parks() {
            return Ok(0);
        }
        self.core.check_publishable()?;
        let turn = self.turn.lock();
        if turn.failed.is_some() {
            return Ok(0);
        }
        let mut parked = 0;
        for (partition, _) in self.heads().iter() {
            // Partitions have 32 bits.
            parked += self.park_and_count(partition as u32, which, true)?.series;
        }
        Ok(parked)
    }

    fn park_and_count(&self, partition: u32, which: Which, is_asked: bool) -> Result<Parked> {
        let parked = self.park_partition(partition, which, is_asked);
        self.counters.note_parked(&parked);
        if parked.as_ref().is_ok_and(|parked| parked.series > 0) {
            self.core.look_at_memory();
        }
        parked
    }
}

impl Looks {
    /// The partition whose look is due longest.
    fn due(&self, interval_ns: u64, now_ns: u64) -> Option<u32> {
        let partitions = self.partitions.iter();
        let due = partitions.filter(|(_, seen)| {
            now_ns.saturating_sub(seen.looked_ns) >= seen.interval_ns(interval_ns)
        });
        let looked = due.map(|(&partition, seen)| (seen.looked_ns, partition));
        looked.min().map(|(_, partition)| partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_awake_series_is_looked_at_more_rarely_until_it_is_written_to() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut looks = Looks::default();
        looks.partitions.insert(3, Seen::new(0));
        let mut due_after_s = |idle_looks, interval_s| {
            looks.partitions.get_mut(&3).unwrap().idle_looks = idle_looks;
            let is_due =
                |at_s: &u64| looks.due(interval_s * SECOND_NS, at_s * SECOND_NS) == Some(3);
            (0..1000).find(is_due).unwrap()
        };
        let waits = [0, 1, 5, 6, 7, 40, u32::MAX].map(|count| due_after_s(count, 1));
        assert_eq!(waits, [1, 2, 32, 60, 60, 60, 60]);
        assert_eq!([0, 1, 9].map(|count| due_after_s(count, 450)), [450; 3]);
        let seen = looks.partitions.get_mut(&3).unwrap();
        seen.note(7, 1);
        assert_eq!(seen.interval_ns(SECOND_NS), SECOND_NS);
    }

    #[test]
    fn a_silent_partition_is_parked_sooner_where_memory_is_short_and_not_again_at_once() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut seen = Seen::new(0);
        let silent_from = |seen: &Seen, is_short| {
            let is_silent = |&tenth: &u64| seen.is_silent(is_short, tenth * SECOND_NS / 10);
            (0..10_000).find(is_silent).unwrap()
        };
        assert_eq!(
            [false, true].map(|is_short| silent_from(&seen, is_short)),
            [100, 25]
        );
        (seen.parked_ns, seen.rests) = (Some(3 * SECOND_NS), true);
        assert_eq!(
            [false, true].map(|is_short| silent_from(&seen, is_short)),
            [630, 630]
        );
        // Written to soon after: twice as long.
        seen.note(1, 4 * SECOND_NS);
        assert_eq!(
            [false, true].map(|is_short| silent_from(&seen, is_short)),
            [240, 90]
        );
    }
}
