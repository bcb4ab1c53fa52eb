//! What changed in what derived data was made of: for rules that are evaluated again where samples
//! changed after they were used. The steps of a rule are in [`crate::keyspace::watches`].

use crate::base::error::Result;
use crate::db::Db;
use crate::keyspace::watches::{Drained, ReaderId, ReaderState, Watcher};
use crate::log::Position;
use crate::rules::replace::Replaced;
use crate::series::watched::Span;
use latewood_model::{Sample, Timestamp};
use std::sync::Arc;

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
        self.begin_evaluations(&[(reader, at)])
    }

    /// As [`Db::begin_evaluation`], for many readers: one group of the log for all, unless it gets
    /// too long. The first time that a reader uses is its [`ReaderState::since`].
    ///
    /// # Errors
    /// `Invalid` if one of them does not exist, and then nothing is done; errors of the log.
    pub fn begin_evaluations(&self, all: &[(ReaderId, Timestamp)]) -> Result<()> {
        self.core.begin_evaluations(all)
    }

    /// All readers, by their numbers; none before the first call of [`Db::watch`].
    pub fn readers(&self) -> Vec<ReaderState> {
        self.core.readers()
    }

    /// One of them, as of the last drain or look of anybody: what the shards noted since is not
    /// pending yet.
    pub fn reader(&self, reader: ReaderId) -> Option<ReaderState> {
        self.core.reader(reader)
    }

    /// Sets [`ReaderState::since`], milliseconds: where older steps become final, or where a
    /// backfill begins. It outlives a restart.
    ///
    /// # Errors
    /// `Invalid` if there is no such reader; errors of the log.
    pub fn set_since(&self, reader: ReaderId, at: Timestamp) -> Result<()> {
        self.core.set_since(reader, at)
    }

    /// The steps at `from..=to`, in milliseconds, of a reader must be computed again: until they are
    /// done, [`Db::drain`] returns them as a change with the selector
    /// [`Change::STEPS`](crate::Change::STEPS). Spans that meet may be joined, so whoever adds one
    /// step after the other gives spans up to the millisecond before the next. They outlive a
    /// restart.
    ///
    /// # Errors
    /// `Invalid` if there is no such reader; errors of the log.
    pub fn add_pending(&self, reader: ReaderId, from: Timestamp, to: Timestamp) -> Result<()> {
        self.core.add_pending(reader, Span { from, to })
    }

    /// Replaces rows of derived data in a series: removes the samples of `gaps`, each from its first
    /// to its last millisecond, then writes `rows`, which ascend. A row takes the place of any
    /// sample at its time, also a NaN that of a number, whatever the policy of the series. Readers
    /// of the series are told. The lock of the series is given back after 4096 rows. What was done
    /// before an error stays.
    ///
    /// # Errors
    /// `NoSuchKey`; `Invalid` if a compaction rule writes the series; `OutOfMemory` and the like, as
    /// any write; errors of the log.
    pub fn replace_rows(
        &self,
        key: &[u8],
        gaps: &[(Timestamp, Timestamp)],
        rows: &[Sample],
    ) -> Result<Replaced> {
        self.rules.replace_rows(key, gaps, rows)
    }

    /// Says who has the series under `key` for itself, or with `None` that nobody does. Whether it is
    /// there or not, nobody else may write to it, change, remove, rename or replace it: the error is
    /// `series is written by` and this text. Only [`Db::replace_rows`] and [`Scratch::of_owner`] write
    /// to it; [`Db::flush_all`] is allowed. A write that is under way may still come through. A
    /// restart forgets it.
    ///
    /// [`Scratch::of_owner`]: crate::Scratch::of_owner
    pub fn own(&self, key: &[u8], owner: Option<&str>) {
        self.core.own(key, owner);
    }

    /// The keys of all series that somebody has for itself.
    pub fn owned(&self) -> Vec<Box<[u8]>> {
        self.core.owned.keys()
    }

    /// Who has the series under `key` for itself.
    pub fn owner(&self, key: &[u8]) -> Option<Arc<str>> {
        self.core.owned.owner(key)
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
