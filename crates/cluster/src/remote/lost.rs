//! The end of a log: because its records are gone, or because somebody gives it up.
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

    /// Why it ended, if it did.
    pub fn ended(&self) -> Option<OwnerError> {
        self.state.lock().ended.clone()
    }

    /// Whether it ended because the log lacks records that were acknowledged.
    pub fn has_lost_records(&self) -> bool {
        self.ended().is_some_and(|ended| ended.loses_records())
    }
}
