//! A log that is kept elsewhere than in files of this database, such as in a partition of Kafka.
//!
//! The engine numbers and seals groups; [`RemoteLog`] brings them to where they are kept and
//! says up to which one they are there. A group has the bytes of a segment's, under a salt of 0:
//! whoever keeps them guards against mixing logs by other means.
//!
//! Invariants: groups are handed over in the order of their numbers, each once; `durable` is
//! what the remote end says. The first error of the remote end stops all writes.
//!
//! Tested by `tests/log_remote.rs` with a log in memory.

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::log::copy::missing_remote;
use crate::log::group::{GroupBuilder, HEADER_BYTES, REMOTE_SALT, split_remote};
use crate::log::latch::{Latch, check_len};
use crate::log::options::{LogStats, Position};
use crate::log::replay::{Dispatcher, LogStart, Replay, with_workers};
use crate::log::report::RecoveryReport;
use crate::observe::stages::{Stage, Timer};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of records between two questions to the sink.
const ASK_BYTES: usize = 32 * 1024;

/// Where the groups of a remote log are kept. Methods are called on any thread; an error is for
/// good.
pub trait RemoteLog: Send + Sync + Debug {
    /// The longest group that is taken, in bytes with its header.
    fn group_bytes_max(&self) -> usize;

    /// The oldest group that is held, or the one to come where none is; `None` for a log that
    /// never held any.
    ///
    /// # Errors
    /// Ends the open.
    fn first(&self) -> Result<Option<Position>>;

    /// Gives all groups that are held, oldest first, some at a time, to `each`. Called once,
    /// before the first [`RemoteLog::append`]. Answers the group to come: 1 for a new log.
    ///
    /// # Errors
    /// Ends the open; those of `each` are passed on.
    fn replay(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Position>;

    /// Takes the group at `position`, one behind the one before, without waiting. It is durable
    /// later, if nothing fails.
    ///
    /// # Errors
    /// `Halted`, with the reason, once the log can no longer be written: nothing of the group will
    /// ever be in it.
    fn append(&self, position: Position, group: &[u8]) -> Result<()>;

    /// The newest group that is durable, with all before it.
    fn durable(&self) -> Position;

    /// Returns once every group up to `position`, which was appended, is durable.
    ///
    /// # Errors
    /// `Halted` once that is known to be impossible.
    fn sync_to(&self, position: Position) -> Result<()>;

    /// Why nothing may be appended for now, if so. Appends are accepted all the same.
    fn why_full(&self) -> Option<String>;

    /// Refuses once the log can no longer be written.
    ///
    /// # Errors
    /// `Halted`, with the reason.
    fn check(&self) -> Result<()>;

    /// Makes everything durable. Nothing is appended any more.
    ///
    /// # Errors
    /// `Halted` where it cannot be known to be durable.
    fn close(&self) -> Result<()>;

    /// Keeps all groups that no checkpoint holds now, until what is answered is dropped. Does not
    /// wait for the remote end.
    fn pin(&self) -> Box<dyn RemotePin + '_>;

    /// Figures since it was opened: `syncs`, `last_sync_us`, `unsynced_ms`.
    fn stats(&self) -> LogStats;
}

/// While it lives, a remote log keeps the groups that it held when it was pinned.
pub trait RemotePin {
    /// Gives the groups up to `last`, which is durable, to `each`, oldest first, some at a time.
    /// Some before those that are needed and some behind `last` may be among them.
    ///
    /// # Errors
    /// `Halted` once they cannot be read; those of `each` are passed on.
    fn read(&self, last: Position, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// A remote log, open for appending.
#[derive(Debug)]
pub(crate) struct Remote {
    link: Arc<dyn RemoteLog>,
    tail: Mutex<Tail>,
    written: AtomicU64,
    pub(crate) latch: Latch,
}

#[derive(Debug, Default)]
struct Tail {
    next_sequence: u64,
    bytes_written: u64,
    groups: u64,
}

impl Remote {
    /// As [`crate::log::Log::open_remote`].
    pub(crate) fn open(
        env: &Env,
        link: Arc<dyn RemoteLog>,
        durable: Position,
        sink: &dyn Replay,
    ) -> Result<(Self, RecoveryReport)> {
        let begun_ns = env.clock.monotonic_ns();
        let first = link.first()?;
        sink.begins(first.map_or(LogStart::None, LogStart::At))?;
        let segment_of = |_| PathBuf::new();
        let mut report = with_workers(sink, &segment_of, |dispatcher| {
            let mut reading = Reading {
                dispatcher,
                next: first.map_or(1, |first| first.0),
                unasked_bytes: 0,
                report: RecoveryReport::default(),
            };
            let end = link.replay(&mut |groups| reading.groups(groups))?;
            reading.end(end, durable)
        })?;
        report.elapsed_ns = env.clock.monotonic_ns() - begun_ns;
        Ok((Self::behind(link, Position(report.next.0 - 1)), report))
    }

    /// A log whose groups up to `applied` somebody has applied.
    pub(crate) fn behind(link: Arc<dyn RemoteLog>, applied: Position) -> Self {
        Self {
            link,
            tail: Mutex::new(Tail {
                next_sequence: applied.0 + 1,
                ..Tail::default()
            }),
            written: AtomicU64::new(applied.0),
            latch: Latch::default(),
        }
    }

    pub(crate) fn group_bytes_max(&self) -> usize {
        self.link.group_bytes_max() - HEADER_BYTES
    }

    pub(crate) fn append_timed(
        &self,
        group: &mut GroupBuilder,
        timer: &mut Timer,
    ) -> Result<Position> {
        if group.is_empty() {
            return Ok(self.written());
        }
        check_len(group.len_bytes(), self.group_bytes_max())?;
        let checksum = group.payload_checksum();
        timer.end_for(Stage::LogEncode, 0);
        let mut tail = self.tail.lock();
        timer.end(Stage::LockWait);
        self.latch.check()?;
        let sequence = tail.next_sequence;
        let bytes = group.seal(sequence, 0, REMOTE_SALT, checksum);
        let appended = self.link.append(Position(sequence), bytes);
        appended.map_err(|error| self.latch.fail(error))?;
        tail.bytes_written += bytes.len() as u64;
        tail.groups += 1;
        tail.next_sequence += 1;
        self.written.store(sequence, Ordering::Release);
        timer.end(Stage::LogWrite);
        Ok(Position(sequence))
    }

    pub(crate) fn written(&self) -> Position {
        Position(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn durable(&self) -> Position {
        self.link.durable()
    }

    pub(crate) fn stats(&self) -> LogStats {
        let tail = self.tail.lock();
        LogStats {
            bytes_written: tail.bytes_written,
            groups: tail.groups,
            halted: self.latch.reason(),
            ..self.link.stats()
        }
    }

    pub(crate) fn sync_to(&self, position: Position) -> Result<()> {
        // A position from before a restart may lie ahead; all there is will do.
        let position = position.min(self.written());
        if self.durable() >= position {
            // It became so by itself, perhaps since somebody wanted it and was told that it is not.
            self.latch.tell_durable();
            return Ok(());
        }
        self.latch.check()?;
        let synced = self.link.sync_to(position);
        let synced = synced.map_err(|error| self.latch.fail(error));
        self.latch.tell_durable();
        synced
    }

    pub(crate) fn background_tick(&self) -> Result<()> {
        self.latch.check()?;
        self.link.check().map_err(|error| self.latch.fail(error))
    }

    pub(crate) fn close(&self) -> Result<()> {
        self.latch.check()?;
        self.link.close().map_err(|error| self.latch.fail(error))
    }

    pub(crate) fn pin(&self) -> Box<dyn RemotePin + '_> {
        self.link.pin()
    }

    pub(crate) fn why_full(&self) -> Option<String> {
        self.link.why_full()
    }
}

/// A replay under way.
struct Reading<'a, 'b> {
    dispatcher: &'a mut Dispatcher<'b>,
    /// The number of the next group.
    next: u64,
    /// Bytes of records since the sink was asked whether it needs memory.
    unasked_bytes: usize,
    report: RecoveryReport,
}

impl Reading<'_, '_> {
    /// Hands on whole groups.
    fn groups(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (header, payload, rest) = split_remote(bytes, self.next)?;
            if header.sequence != self.next {
                return Err(missing_remote(self.next, header.sequence));
            }
            self.dispatcher.group(&header, payload)?;
            self.report.groups += 1;
            self.report.bytes += (bytes.len() - rest.len()) as u64;
            self.next += 1;
            self.unasked_bytes += payload.len();
            if self.unasked_bytes >= ASK_BYTES {
                self.unasked_bytes = 0;
                if self.dispatcher.wants_memory() {
                    self.dispatcher.free_memory(Position(self.next - 1))?;
                }
            }
            bytes = rest;
        }
        self.dispatcher
            .progress(self.report.bytes, self.report.bytes);
        Ok(())
    }

    /// The report of a replay that ended before `end`, as the remote end says.
    fn end(mut self, end: Position, durable: Position) -> Result<RecoveryReport> {
        let refused = |message| Err(Error::new(ErrorKind::Corrupt, message));
        if end.0 != self.next {
            let (end, next) = (end.0, self.next);
            return refused(format!(
                "the remote log ends before group {end}, not {next}"
            ));
        }
        if durable.0 >= end.0 {
            let (end, durable) = (end.0, durable.0);
            return refused(format!(
                "the remote log ends before group {end}, but the files hold groups up to {durable}"
            ));
        }
        self.report.next = end;
        self.report.clean = true;
        Ok(self.report)
    }
}
