//! A log in segment files, made of groups that were kept elsewhere.
//!
//! The groups keep their numbers and records; their checksums are those of the segments they
//! come to. The result is a log that was closed in order behind its last group, so that a database
//! beside it is as one that was stopped there.
//!
//! Invariants: the first group is the one that was asked for, and none is missing behind it.
//! Nothing is durable before [`LogCopy::finish`]. Tested by `tests/log_remote.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::Env;
use crate::io::small::Context;
use crate::log::group::split_remote;
use crate::log::options::{LogOptions, Position};
use crate::log::record::RecordIter;
use crate::log::replay::Replay;
use crate::log::writer::LocalLog;
use std::path::{Path, PathBuf};

/// A log that is being made.
#[derive(Debug)]
pub struct LogCopy {
    env: Env,
    log: LocalLog,
    dir: PathBuf,
    copied: CopiedLog,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedLog {
    /// Segment files.
    pub segments: u64,
    /// Groups in them.
    pub groups: u64,
    /// Bytes of these groups.
    pub bytes: u64,
    /// The last group, or the one before the first where there is none.
    pub last: Position,
}

/// There is nothing to replay in a new log.
struct Nothing;

impl Replay for Nothing {
    fn workers(&self) -> usize {
        1
    }

    fn apply(&self, _: usize, _: Position, _: RecordIter<'_>) -> Result<()> {
        Ok(())
    }
}

impl LogCopy {
    /// Begins the log of the database that is made in `dir`, with the group `first`, which is at
    /// least 1.
    ///
    /// # Errors
    /// `Invalid` if there is a log; `Io`.
    pub fn begin(env: &Env, dir: &Path, first: Position) -> Result<Self> {
        let last = Position(first.0.saturating_sub(1));
        let options = LogOptions {
            known_durable: last,
            ..LogOptions::default()
        };
        let dir = names::log_dir(dir);
        let (log, report) = LocalLog::open(env, &dir, &options, &Nothing)?;
        if report.next != first || report.groups > 0 {
            return Err(Error::new(ErrorKind::Invalid, "there is a log").at(&dir));
        }
        let copied = CopiedLog {
            last,
            ..CopiedLog::default()
        };
        let env = env.clone();
        Ok(Self {
            env,
            log,
            dir,
            copied,
        })
    }

    /// Adds whole groups, as a [`crate::RemoteLog`] keeps them. Those before the first are passed
    /// over.
    ///
    /// # Errors
    /// `Corrupt` for damaged groups, and if one is missing; `Io`.
    pub fn groups(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let next = self.copied.last.0 + 1;
            let (header, payload, rest) = split_remote(bytes, next)?;
            let len_bytes = (bytes.len() - rest.len()) as u64;
            bytes = rest;
            if header.sequence < next && self.copied.groups == 0 {
                continue;
            }
            if header.sequence != next {
                return Err(missing_remote(next, header.sequence));
            }
            self.copied.last = self.log.append_sealed(&header, payload)?;
            self.copied.groups += 1;
            self.copied.bytes += len_bytes;
        }
        Ok(())
    }

    /// Makes the log durable, but for the name of its folder.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(mut self) -> Result<CopiedLog> {
        self.log.close_behind_last()?;
        let segments = self.log.pin().segments().to_vec();
        drop(self.log);
        self.copied.segments = segments.len() as u64;
        // Space was reserved that is not needed.
        if let Some((path, used_bytes)) = segments.last() {
            let file = self.env.disk.open_to_write(path);
            let cut = file.and_then(|file| {
                file.truncate(*used_bytes)?;
                file.sync()
            });
            cut.context("cannot cut the log's end", path)?;
        }
        let synced = self.env.disk.sync_dir(&self.dir);
        synced.context("cannot sync the log", &self.dir)?;
        Ok(self.copied)
    }
}

/// Counts the samples in whole groups, as a [`crate::RemoteLog`] keeps them, the first of which
/// has the number `first`.
///
/// # Errors
/// `Corrupt` for damaged groups and records, and if a group is missing.
pub fn count_samples(mut bytes: &[u8], first: Position) -> Result<u64> {
    let (mut samples, mut next) = (0, first.0);
    while !bytes.is_empty() {
        let (header, payload, rest) = split_remote(bytes, next)?;
        if header.sequence != next {
            return Err(missing_remote(next, header.sequence));
        }
        for record in RecordIter::new(payload, header.form()) {
            samples += u64::from(matches!(record?, crate::log::Record::Sample { .. }));
        }
        next += 1;
        bytes = rest;
    }
    Ok(samples)
}

/// That a group does not follow the one before it.
pub(crate) fn missing_remote(next: u64, found: u64) -> Error {
    let message = format!("group {next} of the remote log is missing before {found}");
    Error::new(ErrorKind::Corrupt, message)
}
