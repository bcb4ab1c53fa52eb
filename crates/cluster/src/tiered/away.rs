//! One file that is not on this machine or not verified yet, and the handles of it.
//!
//! Invariants: once its bytes are here they stay, for every handle, whatever becomes of its name.
//! One that could not be had is not fetched again before the next round
//! ([`super::TieredDisk::fetch_all`]); until then all who ask hear why.

use super::fetcher::Fetcher;
use crate::checkpoint::Row;
use latewood_engine::io::File;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How soon a wait notices that the disk is given up.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Away {
    /// Where it goes.
    pub(super) path: PathBuf,
    pub(super) row: Row,
    pub(super) here: OnceLock<Arc<dyn File>>,
    /// A file with its name and length is on this machine, and may be it.
    is_held: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody fetches it.
    is_fetched: bool,
    /// Why nobody fetches it until the next round.
    failed: Option<Failed>,
    /// What the last attempt said.
    error: Option<String>,
    /// When its object was first found missing or wrong.
    lost: Option<Instant>,
}

/// Why a file did not come.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// Its object is missing, or has other bytes.
    Lost(String),
    /// Somebody has to do something.
    Refused(String),
    /// Another attempt may succeed.
    Later(String),
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Lost(text) => Self::new(io::ErrorKind::InvalidData, text),
            Failed::Refused(text) | Failed::Later(text) => Self::other(text),
        }
    }
}

impl Away {
    pub(super) fn new(path: PathBuf, row: Row, is_held: bool) -> Self {
        Self {
            path,
            row,
            here: OnceLock::new(),
            is_held: is_held.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether a file is on this machine that has only to be verified.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// The file on this machine has other bytes, or is gone.
    pub(super) fn is_not_held(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    /// Lets one caller at a time fetch it; false if it need not or must not.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let begins = self.here.get().is_none() && !state.is_fetched && state.failed.is_none();
        state.is_fetched |= begins;
        begins
    }

    /// What [`Away::begin`] began has ended. Why it did not come, if it did not: an object is
    /// lost once it has been missing or wrong for `lost_after`.
    pub(super) fn end(
        &self,
        fetched: Result<Arc<dyn File>, Failed>,
        lost_after: Duration,
    ) -> Option<Failed> {
        let mut state = self.state.lock();
        state.is_fetched = false;
        let failed = match fetched {
            Ok(file) => {
                // Nobody else fetches it.
                let _ = self.here.set(file);
                None
            }
            Err(Failed::Lost(text)) => {
                let found = *state.lost.get_or_insert_with(Instant::now);
                Some(if found.elapsed() < lost_after {
                    Failed::Later(text)
                } else {
                    Failed::Lost(text)
                })
            }
            Err(failed) => Some(failed),
        };
        match &failed {
            Some(Failed::Later(error)) => state.error = Some(error.clone()),
            failed => state.failed.clone_from(failed),
        }
        self.changed.notify_all();
        failed
    }

    /// Allows another attempt after a failed one.
    pub(super) fn try_again(&self) {
        self.state.lock().failed = None;
    }

    /// Waits until it is here; has it fetched, which must not end by chance: a thread may be
    /// missing.
    fn wait(self: &Arc<Self>, fetcher: &Arc<Fetcher>, since: Instant) -> io::Result<()> {
        let until = fetcher.wait_max().map(|wait| since + wait);
        let mut state = self.state.lock();
        loop {
            if self.here.get().is_some() {
                return Ok(());
            }
            if let Some(failed) = &state.failed {
                return Err(failed.clone().into());
            }
            if fetcher.is_given_up() {
                return Err(io::Error::other("the database is given up"));
            }
            if !state.is_fetched {
                MutexGuard::unlocked(&mut state, || fetcher.ask(self));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let said = state.error.clone().unwrap_or_else(|| fetcher.call(self));
                let text = format!("it did not come in time: {said}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if self.here.get().is_none() && state.failed.is_none() {
                self.changed.wait_for(&mut state, LOOK_EVERY);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct AwayFile {
    away: Arc<Away>,
    fetcher: Arc<Fetcher>,
}

impl AwayFile {
    pub(super) fn new(away: Arc<Away>, fetcher: &Arc<Fetcher>) -> Self {
        let fetcher = Arc::clone(fetcher);
        Self { away, fetcher }
    }
}

impl File for AwayFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.away.row.file.content.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.away.here.get() {
            Some(file) => file.read_at(buffer, offset),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        // An object is durable, and a file is synced before it has this name.
        Ok(())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_be_away(&self) -> bool {
        true
    }

    fn is_here(&self) -> bool {
        self.away.here.get().is_some()
    }

    fn fetch(&self, since: Option<Instant>) -> io::Result<()> {
        if self.is_here() {
            return Ok(());
        }
        if let Some(since) = since {
            return self.away.wait(&self.fetcher, since);
        }
        if let Some(failed) = &self.away.state.lock().failed {
            return Err(failed.clone().into());
        }
        self.fetcher.ask(&self.away);
        let text = format!("it is being fetched: {}", self.fetcher.call(&self.away));
        Err(io::Error::new(io::ErrorKind::WouldBlock, text))
    }
}
