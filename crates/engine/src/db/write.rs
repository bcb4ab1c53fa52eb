//! The writer side.

use crate::base::error::Result;
use crate::db::Db;
use crate::index::SeriesRef;
use crate::keyspace::creation::Create;
use crate::keyspace::expiry::ExpireIf;
use crate::keyspace::expiry::Expiry;
use crate::log::Position;
use crate::write::append::Outcome;
use crate::write::copy::Dump;
use crate::write::copy::Restored;
use crate::write::resolved::AppendTo;
use crate::write::scratch::Scratch;
use latewood_model::SeriesOptions;
use latewood_model::Timestamp;

impl Db {
    /// Creates an empty series.
    ///
    /// # Errors
    /// `KeyExists`, `Invalid` options, `Limit`, and those of the log.
    pub fn create(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        self.writer.create(key, options)
    }

    /// Sets all options of a series but its encoding of what is stored.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` options, and those of the log.
    pub fn alter(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        self.writer.alter(key, options)
    }

    /// As [`Db::alter`], with options that `change` makes of those in force;
    /// nothing comes between. `change` is called under a lock.
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

    /// Removes the samples of `from..=to`; how many of them a reader could see.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` where rules need what the retention has taken
    /// already, and those of the log. Where a block is damaged so that they
    /// cannot be counted, the samples are removed all the same and the error
    /// says so.
    pub fn delete_range(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(u64, Position)> {
        self.writer.delete_range(key, from, to)
    }

    /// Removes series; how many there were.
    ///
    /// # Errors
    /// Those of the log.
    pub fn remove(&self, keys: &[&[u8]]) -> Result<(u64, Position)> {
        self.writer.remove(keys)
    }

    /// Moves the series under `from` to `to`, with all it has. With `replace`
    /// a series under `to` goes; without, nothing happens then. Whether the
    /// series is under `to` now because of this.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit` for a key too long, and those of the log.
    pub fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        self.writer.rename(from, to, replace)
    }

    /// Appends the sum of the newest value of a series and `delta`, as of
    /// `timestamp` or, where that is `None`, of the clock. At the newest
    /// timestamp it takes the place of what was there. An empty or new series
    /// counts from 0.
    ///
    /// The outcome is the timestamp of the newest sample; it is refused with
    /// [`Refusal::OlderThanNewest`], [`Refusal::SumIsNan`] and where an append
    /// is. Refused increments create nothing.
    ///
    /// # Errors
    /// As [`Db::append`].
    pub fn increment(
        &self,
        key: &[u8],
        delta: f64,
        timestamp: Option<Timestamp>,
        create: Create<'_>,
    ) -> Result<(Outcome, Position)> {
        self.writer.increment(key, delta, timestamp, create)
    }

    /// The series under `key`, to be written to by [`Db::append_resolved`]
    /// until it is removed, renamed or expires.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn resolve(&self, key: &[u8]) -> Result<SeriesRef> {
        self.writer.resolve(key)
    }

    /// Appends a batch to series that were resolved before: as [`Db::append`],
    /// without a look for any key. A series that was removed or renamed since,
    /// or has expired, refuses its samples as [`Refusal::StaleSeries`], also
    /// where another one has its key now.
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
    /// expiry. With `replace` a series under `to` goes; without, nothing
    /// happens then. Whether there is a copy now. Linear in the samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit`, `Corrupt`, and those of the log. There is no copy
    /// then, and `to` is as it was.
    pub fn copy(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        self.writer.copy(from, to, replace)
    }

    /// The series under `key` as bytes that [`Db::restore`] takes: its samples,
    /// options and labels, not its expiry. Linear in the samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn dump(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.writer.dump(key)
    }

    /// The same, in at most `bytes_max` bytes: no more of the series is read
    /// than what fits.
    ///
    /// # Errors
    /// `Limit` where it is longer, and those of [`Db::dump`].
    pub fn dump_within(&self, key: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
        self.writer.dump_within(key, bytes_max)
    }

    /// Makes `dump` a series under `to` that expires at `expires_at_ms`,
    /// milliseconds since the Unix epoch. One whose time has passed is not
    /// made; with `replace` what was there goes all the same.
    ///
    /// # Errors
    /// `Corrupt` where the samples do not decode, `Limit`, and those of the
    /// log. There is no new series then, and `to` is as it was.
    pub fn restore(
        &self,
        to: &[u8],
        dump: Dump<'_>,
        expires_at_ms: Option<i64>,
        replace: bool,
    ) -> Result<(Restored, Position)> {
        self.writer.restore(to, dump, expires_at_ms, replace)
    }

    /// Lets the series under `key` expire at `at_ms`, milliseconds since the
    /// Unix epoch; at once where that has passed.
    ///
    /// # Errors
    /// `NoSuchKey` and those of the log.
    pub fn expire(&self, key: &[u8], at_ms: i64, only: ExpireIf) -> Result<(Expiry, Position)> {
        self.writer.expire(key, at_ms, only)
    }

    /// Lets a series live for ever; whether it did not before.
    ///
    /// # Errors
    /// `NoSuchKey` and those of the log.
    pub fn persist(&self, key: &[u8]) -> Result<(bool, Position)> {
        self.writer.persist(key)
    }

    /// Removes the series under `key` and tells of it, if its time has come and
    /// nobody has removed it yet.
    ///
    /// # Errors
    /// Those of the log.
    pub fn remove_expired(&self, key: &[u8]) -> Result<()> {
        self.writer.remove_expired(key)
    }

    /// When a series expires, milliseconds since the Unix epoch; `None` for one
    /// that does not.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn expires_at(&self, key: &[u8]) -> Result<Option<i64>> {
        self.writer.expires_at(key)
    }
}
