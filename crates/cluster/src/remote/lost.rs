//! The end of a log whose records are gone: whoever has them in memory saves them.
//!
//! Tested by `tests/tablet/rescue.rs`.

use super::{OwnerError, TabletLog};

impl TabletLog {
    /// Ends the log as a killed process does, and returns once nothing is appended any more.
    pub fn give_up(&self) {
        self.cancel.cancel();
        let mut state = self.state.lock();
        state.must_end.get_or_insert(OwnerError::Cancelled);
        self.changed.notify_one();
        while state.ended.is_none() {
            self.done.wait(&mut state);
        }
    }

    /// Whether it ended because the log lacks records that were acknowledged.
    pub fn has_lost_records(&self) -> bool {
        let state = self.state.lock();
        let ended = state.ended.as_ref();
        ended.is_some_and(OwnerError::loses_records)
    }
}
