//! A log that is read beside its owner, and not trimmed meanwhile. Tested with backups of logs, by
//! `tests/tablet/`.

use super::{TabletLog, failed};
use crate::envelope::State;
use crate::kafka::Offset;
use latewood_engine::{Position, RemotePin, Result};

/// While it lives, the log is not trimmed: the next checkpoint does it.
pub(super) struct Pin<'a> {
    log: &'a TabletLog,
    begin: (Offset, State),
}

impl<'a> Pin<'a> {
    pub(super) fn new(log: &'a TabletLog) -> Self {
        let mut state = log.state.lock();
        state.pins += 1;
        let begin = state.begin;
        Self { log, begin }
    }
}

impl RemotePin for Pin<'_> {
    fn read(&self, last: Position, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for data in self.log.source.history(self.begin, last.0 + 1) {
            let data = data.map_err(|ended| failed(&ended))?;
            each(&data.payload)?;
        }
        Ok(())
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.log.state.lock().pins -= 1;
    }
}
