//! One file that is not on this machine, and the handles of it.
//!
//! Invariant: once its bytes are here they stay, for every handle, whatever becomes of its name.

use super::fetcher::Fetcher;
use crate::checkpoint::Row;
use latewood_engine::io::File;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How soon a wait notices that the disk is given up.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A file of a checkpoint.
#[derive(Debug)]
pub(super) struct Away {
    /// Where it goes.
    pub(super) path: PathBuf,
    pub(super) row: Row,
    pub(super) here: OnceLock<Arc<dyn File>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody fetches it.
    is_fetched: bool,
    /// Fetches that ended in vain.
    failures: u64,
    /// What the last attempt said.
    error: Option<String>,
}

impl Away {
    pub(super) fn new(path: PathBuf, row: Row) -> Self {
        Self {
            path,
            row,
            here: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Lets one caller at a time fetch it; false if it need not or must not.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let begins = self.here.get().is_none() && !state.is_fetched;
        state.is_fetched |= begins;
        begins
    }

    /// An attempt failed, and another follows.
    pub(super) fn note(&self, error: &str) {
        self.state.lock().error = Some(error.to_owned());
    }

    /// What [`Away::begin`] began has ended.
    pub(super) fn end(&self, fetched: Result<Arc<dyn File>, String>) {
        let mut state = self.state.lock();
        state.is_fetched = false;
        match fetched {
            // Nobody else fetches it.
            Ok(file) => drop(self.here.set(file)),
            Err(error) => {
                state.failures += 1;
                state.error = Some(error);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until it is here, after somebody was asked for it.
    fn wait(&self, fetcher: &Fetcher, failures: u64) -> io::Result<()> {
        let until = fetcher.wait_max().map(|wait| Instant::now() + wait);
        let mut state = self.state.lock();
        loop {
            if self.here.get().is_some() {
                return Ok(());
            }
            let said = |state: &State| state.error.clone().unwrap_or_else(|| fetcher.call(self));
            if state.failures > failures {
                return Err(io::Error::other(said(&state)));
            }
            if fetcher.is_given_up() {
                return Err(io::Error::other("the database is given up"));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let text = format!("it did not come in time: {}", said(&state));
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.changed.wait_for(&mut state, LOOK_EVERY);
        }
    }
}

/// A handle.
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

    fn fetch(&self, waits: bool) -> io::Result<()> {
        if self.is_here() {
            return Ok(());
        }
        let failures = self.away.state.lock().failures;
        self.fetcher.ask(&self.away);
        match waits {
            true => self.away.wait(&self.fetcher, failures),
            false => {
                let text = format!("it is being fetched: {}", self.fetcher.call(&self.away));
                Err(io::Error::new(io::ErrorKind::WouldBlock, text))
            }
        }
    }
}
