//! Series whose late operations wait to be settled.
//!
//! Tested by the tests of late samples and by the model test.

use super::Series;
use std::collections::VecDeque;

/// The series of a shard with late operations that wait.
///
/// Invariant: a series with late operations is in at least one of the lists, or is
/// held by the owner of the settler's lock. A place with nothing to settle is
/// skipped at its turn.
#[derive(Default)]
pub(crate) struct SettleQueue {
    ready: VecDeque<usize>,
    pub(crate) waiting: Vec<Waiting>,
    /// Late operations of all series of the shard.
    pub(crate) held: usize,
}

/// A series that waits for more late operations, or for no more to arrive.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) place: usize,
    /// Turns it has waited.
    pub(crate) turns: u32,
    /// Its count of late operations at the last turn.
    pub(crate) pushed: u64,
}

impl SettleQueue {
    /// Notes a series that just staged a late sample. Returns `true` if its upkeep is due.
    #[inline]
    pub(crate) fn stage(&mut self, series: &mut Series, place: usize) -> bool {
        self.note(series);
        self.wait(series, place);
        series.late_upkeep_due()
    }

    /// Updates the counted operations of a series; call it after any change of
    /// them.
    pub(crate) fn note(&mut self, series: &mut Series) {
        // All series of a database together hold far fewer: LATE_HELD_MAX and a batch.
        let held = series.late_pending() as u32;
        let noted = std::mem::replace(&mut series.late_noted, held);
        self.held = self.held + held as usize - noted as usize;
    }

    /// Stops counting what a removed series held.
    pub(crate) fn forget(&mut self, series: &Series) {
        self.held -= series.late_noted as usize;
    }

    /// Adds a series with few operations to settle.
    pub(crate) fn wait(&mut self, series: &mut Series, place: usize) {
        if !series.queued {
            series.queued = true;
            self.waiting.push(Waiting {
                place,
                turns: 0,
                pushed: 0,
            });
        }
    }

    /// Adds a series worth settling; `true` if it was not in the list. The caller
    /// clears the flag at the turn of the series.
    pub(crate) fn ready(&mut self, series: &mut Series, place: usize) -> bool {
        if series.ready {
            return false;
        }
        series.ready = true;
        self.ready.push_back(place);
        true
    }

    /// The next series worth settling.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        self.ready.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
