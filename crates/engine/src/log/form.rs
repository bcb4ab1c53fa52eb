//! The log as the rest of the engine sees it: in segment files of the database, or remote.
//!
//! Nothing above knows which form it is, but for backups, which copy segments or groups. Tested by the
//! tests of both forms.

use crate::base::error::{Error, Result};
use crate::io::Env;
use crate::log::group::GroupBuilder;
use crate::log::latch::Latch;
use crate::log::options::{LogOptions, LogStats, Position};
use crate::log::pin::LogPin;
use crate::log::remote::{Remote, RemoteLog, RemotePin};
use crate::log::replay::Replay;
use crate::log::report::RecoveryReport;
use crate::log::writer::LocalLog;
use crate::observe::halt::Halt;
use crate::observe::observer::Observer;
use crate::observe::stages::Timer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A log, open for appending. Dropping it makes nothing durable: see [`Log::close`].
#[derive(Debug)]
pub struct Log {
    form: Form,
    /// The newest group that somebody wants to be durable.
    wanted: AtomicU64,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one log for a database")]
enum Form {
    Local(LocalLog),
    Remote(Remote),
}

/// A log that loses no group while this lives.
pub(crate) enum Pinned<'a> {
    Local(LogPin<'a>),
    Remote(Box<dyn RemotePin + 'a>),
}

/// Calls a method of the form.
macro_rules! of_form {
    ($log:expr, $form:ident => $call:expr) => {
        match &$log.form {
            Form::Local($form) => $call,
            Form::Remote($form) => $call,
        }
    };
}

impl Log {
    /// Opens the log in `dir`, making the directory if needed, and replays
    /// everything it holds into `sink` before it returns. What was replayed is
    /// durable at return. The caller holds the directory's lock.
    ///
    /// # Errors
    /// `Corrupt` for damage that no crash explains where there is no quarantine,
    /// naming file and offset;
    /// `Unsupported` for a later format version; `Invalid` for options out of
    /// range; `Io`; and whatever `sink` answers.
    pub fn open(
        env: &Env,
        dir: &Path,
        options: &LogOptions,
        sink: &dyn Replay,
    ) -> Result<(Self, RecoveryReport)> {
        let (log, report) = LocalLog::open(env, dir, options, sink)?;
        Ok((Self::of(Form::Local(log)), report))
    }

    /// Replays a remote log into `sink` and goes on with it. Groups up to `durable` were durable
    /// once, as the manifest knows.
    ///
    /// # Errors
    /// `Corrupt` for a log that ends before `durable` or whose groups are damaged; those of
    /// [`RemoteLog`] and of `sink`.
    pub fn open_remote(
        env: &Env,
        link: Arc<dyn RemoteLog>,
        durable: Position,
        sink: &dyn Replay,
    ) -> Result<(Self, RecoveryReport)> {
        let (log, report) = Remote::open(env, link, durable, sink)?;
        Ok((Self::of(Form::Remote(log)), report))
    }

    /// Goes on with a remote log whose groups up to `applied` were applied.
    pub(crate) fn continue_remote(link: Arc<dyn RemoteLog>, applied: Position) -> Self {
        Self::of(Form::Remote(Remote::behind(link, applied)))
    }

    /// Tells `observer` how long syncs take; its failure stops all writes with `halt`.
    pub(crate) fn observed_by(mut self, observer: Observer, halt: Halt) -> Self {
        let latch = Latch::new(observer, halt);
        match &mut self.form {
            Form::Local(log) => log.latch = latch,
            Form::Remote(log) => log.latch = latch,
        }
        self
    }

    fn latch(&self) -> &Latch {
        of_form!(self, log => &log.latch)
    }

    fn of(form: Form) -> Self {
        let wanted = AtomicU64::new(0);
        Self { form, wanted }
    }

    /// The longest group this log takes, in bytes of records.
    pub fn group_bytes_max(&self) -> usize {
        of_form!(self, log => log.group_bytes_max())
    }

    /// Appends a group and returns its position; the group survives a killed process then, if the
    /// log is local. The builder keeps its records:
    /// `begin` or `clear` it before the next batch. An empty group is no group
    /// and answers [`Log::written`].
    ///
    /// # Errors
    /// `Limit` for a group longer than [`Log::group_bytes_max`]; `Halted`
    /// after an earlier failure; `Io` for the failure itself.
    pub fn append(&self, group: &mut GroupBuilder) -> Result<Position> {
        self.append_timed(group, &mut Timer::default())
    }

    /// The same for a batch that may be timed.
    pub(crate) fn append_timed(
        &self,
        group: &mut GroupBuilder,
        timer: &mut Timer,
    ) -> Result<Position> {
        of_form!(self, log => log.append_timed(group, timer))
    }

    /// The newest group appended.
    pub fn written(&self) -> Position {
        of_form!(self, log => log.written())
    }

    /// The newest group that is durable, with all before it.
    pub fn durable(&self) -> Position {
        of_form!(self, log => log.durable())
    }

    /// What the log has done and holds.
    pub fn stats(&self) -> LogStats {
        of_form!(self, log => log.stats())
    }

    /// Returns once every group up to `position` is durable.
    ///
    /// # Errors
    /// `Halted` after an earlier failure, also for those who waited for the
    /// sync that failed; `Io` for who led it.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        of_form!(self, log => log.sync_to(position))
    }

    /// Asks for everything up to `position` to become durable. Returns whether it is not yet.
    pub(crate) fn want(&self, position: Position) -> bool {
        self.wanted.fetch_max(position.0, Ordering::Release);
        self.durable() < position
    }

    /// The newest group that somebody wants to be durable.
    pub(crate) fn wanted(&self) -> Position {
        Position(self.wanted.load(Ordering::Acquire))
    }

    /// Whether every group up to `position` is durable.
    ///
    /// # Errors
    /// `Halted` if it is not and will not be.
    pub(crate) fn is_durable(&self, position: Position) -> Result<bool> {
        let is_durable = self.durable() >= position.min(self.written());
        if !is_durable {
            self.latch().check()?;
        }
        Ok(is_durable)
    }

    /// Tells those who wait without a thread that more is durable, or that the log
    /// failed.
    pub(crate) fn tell_durable(&self) {
        self.latch().tell_durable();
    }

    /// Says that no group before `position` is needed by the files of this machine. A remote log
    /// keeps it until a checkpoint elsewhere needs it no more.
    ///
    /// # Errors
    /// `Halted` after an earlier failure.
    pub fn trim(&self, position: Position) -> Result<()> {
        match &self.form {
            Form::Local(log) => log.trim(position),
            Form::Remote(log) => log.latch.check(),
        }
    }

    /// One step of the work that should not wait for a writer. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// `Halted` after an earlier failure; `Io` for the failure itself.
    pub fn background_tick(&self) -> Result<()> {
        of_form!(self, log => log.background_tick())
    }

    /// Makes everything durable. No append may follow.
    ///
    /// # Errors
    /// `Halted` after an earlier failure; `Io` for the failure itself.
    pub fn close(&self) -> Result<()> {
        of_form!(self, log => log.close())
    }

    /// Pins the groups as they are now. Does not wait.
    pub(crate) fn pin(&self) -> Pinned<'_> {
        match &self.form {
            Form::Local(log) => Pinned::Local(log.pin()),
            Form::Remote(log) => Pinned::Remote(log.pin()),
        }
    }

    /// Why no more may be appended for now, if so.
    pub(crate) fn why_full(&self) -> Option<String> {
        match &self.form {
            Form::Local(_) => None,
            Form::Remote(log) => log.why_full(),
        }
    }

    /// Remembers that `what` failed, if it is the first failure, and passes `error` on.
    pub(crate) fn halt_since(&self, what: &'static str, error: Error) -> Error {
        self.latch().fail_since(what, error)
    }
}
