//! What changed in what derived data was made of: for rules that are evaluated again where samples
//! changed after they were used. The steps of a rule are in [`crate::keyspace::watches`].

use crate::base::error::Result;
use crate::db::Db;
use crate::keyspace::watches::{Drained, ReaderId, Watcher};
use crate::log::Position;
use latewood_model::Timestamp;

impl Db {
    /// Sets all readers. Those that were there before under the same number keep their horizon and
    /// what is pending, also over a restart; the others are forgotten. Call it after each start,
    /// without readers too: until then the log is kept for those of before.
    ///
    /// # Errors
    /// Errors of the log.
    pub fn watch(&self, watchers: Vec<Watcher>) -> Result<()> {
        self.core.watch(watchers)
    }

    /// A reader is about to read what is up to `at`, in milliseconds. From the return of this call
    /// on, changes up to that time that it cannot see are kept for [`Db::drain`]. What it read
    /// before at a newer time counts as used as well.
    ///
    /// # Errors
    /// `Invalid` if there is no such reader; errors of the log.
    pub fn begin_evaluation(&self, reader: ReaderId, at: Timestamp) -> Result<()> {
        self.core.begin_evaluation(reader, at)
    }

    /// What changed in what a reader has used, since it was last said to be done. Reads after this
    /// call see the changes. Retention, the floor of the disk budget and expiry change nothing;
    /// the removal of an expired series is told.
    ///
    /// # Errors
    /// `Invalid` if there is no such reader.
    pub fn drain(&self, reader: ReaderId) -> Result<Drained> {
        self.core.drain(reader)
    }

    /// All that follows from what [`Db::drain`] returned last, with this position, is written.
    ///
    /// # Errors
    /// `Invalid` if there is no such reader; errors of the log.
    pub fn done(&self, reader: ReaderId, position: Position) -> Result<()> {
        self.core.done(reader, position)
    }
}
