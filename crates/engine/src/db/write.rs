//! Writes: samples, series, copies and expiry.

use crate::base::cancelled::Cancelled;
use crate::base::error::Result;
use crate::db::Db;
use crate::index::SeriesRef;
use crate::keyspace::creation::Create;
use crate::keyspace::expiry::{ExpireIf, Expiry};
use crate::log::Position;
use crate::write::append::Outcome;
use crate::write::copy::{CopySource, Dump, Restored};
use crate::write::resolved::AppendTo;
use crate::write::scratch::Scratch;
use latewood_model::{SeriesOptions, Timestamp};

impl Db {
    /// Creates an empty series.
    ///
    /// # Errors
    /// `KeyExists`, `Invalid` options, `Limit`, errors of the log.
    pub fn create(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        self.writer.create(key, options)
    }

    /// Sets all options of a series. Stored samples keep their encoding.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` options, errors of the log.
    pub fn alter(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        self.writer.alter(key, options)
    }

    /// As [`Db::alter`], with the options that `change` makes from the current
    /// ones, atomically. `change` is called under a lock.
    ///
    /// # Errors
    /// Those of [`Db::alter`].
    pub fn alter_with(
        &self,
        key: &[u8],
        change: impl FnOnce(&mut SeriesOptions),
    ) -> Result<Position> {
        self.writer.alter_with(key, change)
    }

    /// Removes the samples of `from..=to`. Returns how many were visible to
    /// readers.
    ///
    /// # Errors
    /// `NoSuchKey`; `Invalid` if a rule needs samples that retention has already
    /// removed; errors of the log. If a damaged block prevents counting, the
    /// samples are removed and the error says so.
    pub fn delete_range(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(u64, Position)> {
        self.writer.delete_range(key, from, to)
    }

    /// Removes series. Returns how many existed.
    ///
    /// # Errors
    /// Errors of the log.
    pub fn remove(&self, keys: &[&[u8]]) -> Result<(u64, Position)> {
        self.writer.remove(keys)
    }

    /// Renames the series under `from` to `to`. If a series exists under `to`, it
    /// is removed with `replace`; without, nothing changes. Returns whether the
    /// series was renamed.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit` if the key is too long, errors of the log.
    pub fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        self.writer.rename(from, to, replace)
    }

    /// Appends the sum of the newest value of a series and `delta` at
    /// `timestamp`, or at the time of the clock if that is `None`. A sample at the
    /// newest timestamp is replaced. An empty or new series counts from 0.
    ///
    /// The outcome is the timestamp of the newest sample. An increment is refused
    /// with [`crate::Refusal::OlderThanNewest`], with [`crate::Refusal::SumIsNan`], or for the
    /// reasons an append is. A refused increment does not create a series.
    ///
    /// # Errors
    /// Those of [`Db::append`].
    pub fn increment(
        &self,
        key: &[u8],
        delta: f64,
        timestamp: Option<Timestamp>,
        create: Create<'_>,
    ) -> Result<(Outcome, Position)> {
        self.writer.increment(key, delta, timestamp, create)
    }

    /// Resolves `key` for [`Db::append_resolved`]. The result is valid until the
    /// series is removed, renamed or expires.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn resolve(&self, key: &[u8]) -> Result<SeriesRef> {
        self.writer.resolve(key)
    }

    /// Appends a batch to resolved series: as [`Db::append`], without key lookups.
    /// Samples of a series that has since been removed or renamed, or has expired,
    /// are refused with [`crate::Refusal::StaleSeries`], even if another series has its
    /// key now.
    ///
    /// # Errors
    /// Those of [`Db::append`].
    pub fn append_resolved(
        &self,
        batch: &[AppendTo<'_>],
        scratch: &mut Scratch,
    ) -> Result<Position> {
        self.writer.append_resolved(batch, scratch)
    }

    /// Copies the series under `from` to `to`: its samples, options, labels and
    /// expiry. If a series exists under `to`, it is removed with `replace`;
    /// without, nothing changes. Returns whether a copy was made. Linear in the
    /// samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit`, `Corrupt`, errors of the log. On error no copy is made
    /// and `to` does not change.
    pub fn copy(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        self.writer.copy(from, to, replace)
    }

    /// The series under `key` at this moment, for [`Db::copy_from`].
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn copy_source(&self, key: &[u8]) -> Result<CopySource> {
        self.writer.copy_source(key)
    }

    /// As [`Db::copy`], in two steps. `before` is called when the copy is complete,
    /// before anybody sees it.
    ///
    /// # Errors
    /// Those of [`Db::copy`].
    pub fn copy_from(
        &self,
        source: CopySource,
        to: &[u8],
        replace: bool,
        before: impl FnOnce(),
    ) -> Result<(bool, Position)> {
        self.writer.copy_from(source, to, replace, before)
    }

    /// Serializes the series under `key` for [`Db::restore`]: its samples, options
    /// and labels, not its expiry. Linear in the samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn dump(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.writer.dump(key)
    }

    /// As [`Db::dump`], in at most `bytes_max` bytes. Stops reading the series
    /// once the limit is exceeded, and once `cancelled` is true: then the dump may lack
    /// samples.
    ///
    /// # Errors
    /// `Limit` if the dump would be longer, and those of [`Db::dump`].
    pub fn dump_within(
        &self,
        key: &[u8],
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<u8>> {
        self.writer.dump_within(key, bytes_max, cancelled)
    }

    /// Creates a series under `to` from `dump`. It expires at `expires_at_ms`,
    /// milliseconds since the Unix epoch; if that time has passed, no series is
    /// created, but with `replace` an existing one is still removed.
    ///
    /// # Errors
    /// `Corrupt` if the samples cannot be decoded, `Limit`, errors of the log. On
    /// error no series is created and `to` does not change.
    pub fn restore(
        &self,
        to: &[u8],
        dump: Dump<'_>,
        expires_at_ms: Option<i64>,
        replace: bool,
    ) -> Result<(Restored, Position)> {
        self.writer.restore(to, dump, expires_at_ms, replace)
    }

    /// Sets the expiry of the series under `key` to `at_ms`, milliseconds since
    /// the Unix epoch. A time in the past removes the series at once.
    ///
    /// # Errors
    /// `NoSuchKey`, errors of the log.
    pub fn expire(&self, key: &[u8], at_ms: i64, only: ExpireIf) -> Result<(Expiry, Position)> {
        self.writer.expire(key, at_ms, only)
    }

    /// Removes the expiry of a series. Returns whether it had one.
    ///
    /// # Errors
    /// `NoSuchKey`, errors of the log.
    pub fn persist(&self, key: &[u8]) -> Result<(bool, Position)> {
        self.writer.persist(key)
    }

    /// Removes the series under `key` and reports the expiry, if the series has
    /// expired and is not yet removed.
    ///
    /// # Errors
    /// Errors of the log.
    pub fn remove_expired(&self, key: &[u8]) -> Result<()> {
        self.writer.remove_expired(key)
    }

    /// The expiry of a series, in milliseconds since the Unix epoch; `None` if it
    /// does not expire.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn expires_at(&self, key: &[u8]) -> Result<Option<i64>> {
        self.writer.expires_at(key)
    }
}
