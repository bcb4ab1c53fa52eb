//! A command that is held back: rows of parked series that it needs are brought first.
//!
//! An event loop reads none from a file, where its other connections would wait. Before a command is
//! run that names parked series, or a group of them, these wake on a reader thread; its connection
//! waits in its place meanwhile, and the command is run from its beginning then.

use super::parked::{Arrived, Beside};
use super::session::Session;
use super::waiting::What;
use crate::state::Shared;
use latewood_model::SeriesId;

/// How often a command is held back. Then its event loop reads what is still not at hand: rows that
/// cannot be read, or series that parked again.
const ROUNDS_MAX: u8 = 3;

impl Session {
    /// Whether the next command may be held back.
    #[inline]
    pub(crate) fn may_hold_back(&self) -> bool {
        self.rounds < ROUNDS_MAX
    }

    /// Holds the next command back if one of `keys` is that of a parked series whose row is not at
    /// hand; whether it is held back.
    pub(crate) fn await_rows<'a>(
        &mut self,
        shared: &Shared,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> bool {
        let away = if self.may_hold_back() {
            shared.db.rows_away(keys)
        } else {
            Vec::new()
        };
        self.hold_back(shared, away)
    }

    /// Holds the next command back until `series` are awake; whether there are any.
    pub(crate) fn hold_back(&mut self, shared: &Shared, series: Vec<SeriesId>) -> bool {
        if series.is_empty() {
            self.rounds = 0;
            return false;
        }
        self.rounds += 1;
        self.read_beside(shared, Beside::BEFORE, 0, move |shared, _| {
            // What cannot be read is an error of the command.
            let _ = shared.db.wake_parked(&series);
            Arrived::default()
        });
        true
    }

    /// Whether a command waits that was not run yet: for the end of a pause, or for rows.
    pub(crate) fn is_held_back(&self) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.what);
        match waiting {
            Some(What::PauseEnd) => true,
            Some(What::Reply(parked)) => parked.beside.is_before,
            _ => false,
        }
    }
}
