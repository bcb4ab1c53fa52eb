//! A series made whole from another one or from bytes: COPY, DUMP, RESTORE.
//!
//! The new series is built without a key ([`build`]), a few hundred samples under
//! each lock, and gets its key when it is complete, in one group of the log. So no
//! reader sees half of it, before or after a crash, and no writer waits for a long
//! copy. Samples come from a snapshot of the source: later writes are not in the
//! copy.
//!
//! The format here is Latewood's own ([`dump`]); that of Redis is translated outside.
//!
//! Tested by `tests/db_copy.rs`, `tests/dump.rs` and the model test.

mod build;
mod dump;

pub use dump::{Dump, DumpFault, DumpWriter};

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::keyspace::admission::admit_write;
use crate::keyspace::defaults::check_options;
use crate::log::Position;
use crate::query::Source;
use crate::rules::backfill::Wanted;
use crate::series::Snapshot;
use crate::series::merge::MergeSource;
use build::Build;
use latewood_model::limits::{FRAME_SAMPLES_MAX, RESTORE_SAMPLES_MAX};
use latewood_model::{SeriesOptions, Timestamp};

/// What [`crate::Db::restore`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The series was created.
    Made,
    /// Its expiry time had passed; no series was under the key.
    Past,
    /// Its expiry time had passed; the series under the key was removed.
    Removed,
    /// Another series is under the key and stays.
    Taken,
}

/// A series at one moment, as a copy takes it.
pub struct CopySource {
    options: SeriesOptions,
    snapshot: Snapshot,
    expires_at_ms: Option<i64>,
}

impl CopySource {
    /// Estimates how many samples it has.
    pub fn samples(&self) -> u64 {
        self.snapshot.samples()
    }
}

impl Db {
    /// Copies the series under `from` to `to`: its samples, options, labels and
    /// expiry. If a series exists under `to`, it is removed with `replace`;
    /// without, nothing changes. Returns whether a copy was made. Linear in the
    /// samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit`, `Corrupt`, `Invalid` if somebody owns `to`, errors of the log. On error no copy is made
    /// and `to` does not change.
    pub fn copy(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        admit_write(&self.core)?;
        self.core.check_key(to)?;
        self.core.check_not_owned(to)?;
        self.copy_from(self.copy_source(from)?, to, replace, || ())
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
        admit_write(&self.core)?;
        self.core.check_key(to)?;
        self.core.check_not_owned(to)?;
        if !replace && self.contains(to) {
            return Ok((false, Position::default()));
        }
        let mut build = Build::begin(self, to, &source.options)?;
        each_batch(source.snapshot, None, |timestamps, values| {
            build.push(timestamps, values)
        })?;
        before();
        build.publish(to, source.options, source.expires_at_ms, replace)
    }

    /// Serializes the series under `key` for [`Db::restore`]: its samples, options
    /// and labels, not its expiry. Linear in the samples.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn dump(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.dump_within(key, usize::MAX, None)
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
        let source = self.copy_source(key)?;
        let mut writer = DumpWriter::new(&source.options, bytes_max)?;
        each_batch(source.snapshot, cancelled, |timestamps, values| {
            writer.samples(timestamps, values)
        })?;
        Ok(writer.finish())
    }

    /// Creates a series under `to` from `dump`. It expires at `expires_at_ms`,
    /// milliseconds since the Unix epoch; if that time has passed, no series is
    /// created, but with `replace` an existing one is still removed.
    ///
    /// # Errors
    /// `Corrupt` if the samples cannot be decoded, `Limit`, `Invalid` if somebody owns `to`, errors of
    /// the log. On
    /// error no series is created and `to` does not change.
    pub fn restore(
        &self,
        to: &[u8],
        mut dump: Dump<'_>,
        expires_at_ms: Option<i64>,
        replace: bool,
    ) -> Result<(Restored, Position)> {
        admit_write(&self.core)?;
        self.core.check_key(to)?;
        self.core.check_not_owned(to)?;
        let options = dump.options().clone();
        check_options(&options)?;
        // A short payload can hold very many: the caller should not wait for long.
        if dump.count().map_err(damaged)? > RESTORE_SAMPLES_MAX {
            let text = format!("a payload must have at most {RESTORE_SAMPLES_MAX} samples");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        if !replace && self.contains(to) {
            return Ok((Restored::Taken, Position::default()));
        }
        let is_past = expires_at_ms.is_some_and(|at_ms| at_ms <= self.core.time.now_ms());
        let mut build = if is_past {
            None
        } else {
            Some(Build::begin(self, to, &options)?)
        };
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while dump.next(&mut timestamps, &mut values).map_err(damaged)? {
            if let Some(build) = &mut build {
                build.push(&timestamps, &values)?;
            }
        }
        let Some(build) = build else {
            // Without `replace`, a series created under `to` meanwhile stays.
            let removed: &[&[u8]] = if replace { &[to] } else { &[] };
            let (count, position) = self.remove(removed)?;
            let restored = match count {
                0 => Restored::Past,
                _ => Restored::Removed,
            };
            return Ok((restored, position));
        };
        let (is_made, position) = build.publish(to, options, expires_at_ms, replace)?;
        if is_made {
            Ok((Restored::Made, position))
        } else {
            Ok((Restored::Taken, position))
        }
    }

    /// The series under `key` at this moment, for [`Db::copy_from`].
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn copy_source(&self, key: &[u8]) -> Result<CopySource> {
        let core = &self.core;
        let all = Wanted::Rows(Timestamp::MIN, Timestamp::MAX);
        loop {
            let (id, read, snapshot, options) =
                self.read_rows(key, all, |series, id, failed| {
                    let read = failed.check(Timestamp::MIN, Timestamp::MAX);
                    let snapshot = series.snapshot(core.store.blocks.floor(), Timestamp::MAX);
                    (id, read, snapshot, series.options(core.labels_of(id)))
                })?;
            read?;
            let state = core.shards.lock_of(id);
            let place = core.shards.place_of(id);
            // Removed meanwhile: its expiry time is unknown.
            if core.is_there(&state, id) {
                return Ok(CopySource {
                    options,
                    snapshot,
                    expires_at_ms: state.expiries.get(place),
                });
            }
        }
    }
}

/// Gives the samples of a snapshot to `take`, ascending, at most a frame's
/// worth at a time.
fn each_batch(
    snapshot: Snapshot,
    cancelled: Cancelled<'_>,
    mut take: impl FnMut(&[Timestamp], &[f64]) -> Result<()>,
) -> Result<()> {
    let from = snapshot.from;
    let mut source = MergeSource::new(snapshot, false)?;
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    while !is_cancelled(cancelled) && source.next(&mut timestamps, &mut values)? {
        let start = timestamps.partition_point(|&at| at < from);
        let timestamps = timestamps[start..].chunks(FRAME_SAMPLES_MAX);
        for (timestamps, values) in timestamps.zip(values[start..].chunks(FRAME_SAMPLES_MAX)) {
            take(timestamps, values)?;
        }
    }
    Ok(())
}

fn damaged(fault: DumpFault) -> Error {
    Error::new(ErrorKind::Corrupt, fault.to_string())
}
