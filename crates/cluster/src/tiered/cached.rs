//! One block of the cache, and the handles of it: its bytes are on this machine, or are fetched.
//!
//! Invariants: its bytes leave only while nobody reads or fetches them, and only if its object is
//! known, so that they can be had again: for every handle, whatever becomes of its name.
//! One whose object is lost is not fetched again before the next round
//! ([`super::TieredDisk::fetch_all`]), one that failed otherwise (a full disk) rests for a pause;
//! until then all who ask hear why.

use super::fetcher::Fetcher;
use crate::checkpoint::Row;
use latewood_engine::io::File;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How soon a wait notices that the disk is given up.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many pauses long an object must be missing or wrong to be lost: answers are cut off, and
/// objects restored.
const LOST_AFTER_PAUSES: u32 = 20;

#[derive(Debug)]
pub(super) struct Cached {
    /// Where it goes.
    pub(super) path: PathBuf,
    pub(super) len_bytes: u64,
    /// The object that has its bytes, once a checkpoint that counts names it.
    row: Mutex<Option<Arc<Row>>>,
    /// Readers keep it locked, so that it does not leave under them.
    here: RwLock<Option<Arc<dyn File>>>,
    /// Whether `here` is there: who only asks keeps no block from leaving. Changes with it, under
    /// the lock of `state`.
    is_here: AtomicBool,
    /// A file with its name and length is on this machine, and may be it.
    is_held: AtomicBool,
    /// It left: it comes back when it is read, not by itself.
    has_left: AtomicBool,
    /// When it was used last, by [`Fetcher::now`].
    used: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody fetches it.
    is_fetched: bool,
    /// Why nobody fetches it until the next round, or for a while.
    failed: Option<Failed>,
    /// When one that is not lost may be fetched again.
    again: Option<Instant>,
    /// What the last attempt said.
    error: Option<String>,
    /// When its object was first found missing or wrong.
    lost: Option<Instant>,
    /// It was so for long enough, and the block is nowhere.
    is_lost: bool,
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

impl Failed {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Lost(text) | Self::Refused(text) | Self::Later(text) => text,
        }
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Lost(text) => Self::new(io::ErrorKind::InvalidData, text),
            Failed::Refused(text) | Failed::Later(text) => Self::other(text),
        }
    }
}

impl State {
    /// Why it is not fetched now.
    fn refusal(&mut self) -> Option<Failed> {
        let is_over = |again: Instant| again <= Instant::now();
        if matches!(self.failed, Some(Failed::Refused(_))) && self.again.is_some_and(is_over) {
            self.failed = None;
        }
        self.failed.clone()
    }
}

impl Cached {
    /// A block of a checkpoint, of which a file on this machine may have the bytes.
    pub(super) fn away(path: PathBuf, row: Row, is_held: bool) -> Self {
        let len_bytes = row.file.content.bytes;
        Self {
            row: Mutex::new(Some(Arc::new(row))),
            is_held: is_held.into(),
            ..Self::new(path, len_bytes, None)
        }
    }

    /// A block that only this machine has.
    pub(super) fn here(path: PathBuf, file: Arc<dyn File>) -> io::Result<Self> {
        Ok(Self::new(path, file.len_bytes()?, Some(file)))
    }

    fn new(path: PathBuf, len_bytes: u64, here: Option<Arc<dyn File>>) -> Self {
        Self {
            path,
            len_bytes,
            row: Mutex::default(),
            is_here: here.is_some().into(),
            here: RwLock::new(here),
            is_held: AtomicBool::default(),
            has_left: AtomicBool::default(),
            used: AtomicU64::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The object that has its bytes; one that is not here has one.
    pub(super) fn row(&self) -> Option<Arc<Row>> {
        self.row.lock().clone()
    }

    /// A checkpoint that counts names it, with this object from now on: one that a checkpoint
    /// before named may go.
    pub(super) fn counts(&self, row: &Row) {
        let mut held = self.row.lock();
        if held.as_ref().is_none_or(|held| held.object != row.object) {
            *held = Some(Arc::new(row.clone()));
        }
    }

    pub(super) fn is_here(&self) -> bool {
        self.is_here.load(Ordering::Acquire)
    }

    /// Whether a file is on this machine that has only to be verified.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// The file on this machine has other bytes, or is gone.
    pub(super) fn is_not_held(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    /// Whether it left and was not read since.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// When it was used last.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn note_use(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    /// Whether its bytes count as those of the cache: they are here or come, and may leave.
    pub(super) fn takes_room(&self) -> bool {
        self.row().is_some() && (self.is_held() || self.is_here() || self.state.lock().is_fetched)
    }

    /// Whether neither this machine nor the object store has its bytes, as far as is known.
    pub(super) fn is_lost(&self) -> bool {
        self.state.lock().is_lost
    }

    /// Gives its bytes up, which `remove` does; false if it must not now.
    pub(super) fn leave(&self, remove: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
        let state = self.state.lock();
        let Some(mut here) = self.here.try_write() else {
            return Ok(false);
        };
        let has_bytes = here.is_some() || self.is_held();
        if self.row().is_none() || !has_bytes || state.is_fetched {
            return Ok(false);
        }
        remove()?;
        *here = None;
        self.is_here.store(false, Ordering::Release);
        self.is_not_held();
        self.has_left.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// Lets one caller at a time fetch it; false if it need not or must not.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let begins = !self.is_here() && !state.is_fetched && state.refusal().is_none();
        state.is_fetched |= begins;
        begins
    }

    /// What [`Cached::begin`] began has ended. Why it did not come, if it did not: an object is
    /// lost once it has been missing or wrong for many pauses.
    pub(super) fn end(
        &self,
        fetched: Result<Arc<dyn File>, Failed>,
        pause: Duration,
    ) -> Option<Failed> {
        let mut state = self.state.lock();
        state.is_fetched = false;
        let failed = match fetched {
            Ok(file) => {
                *self.here.write() = Some(file);
                self.is_here.store(true, Ordering::Release);
                self.has_left.store(false, Ordering::Relaxed);
                (state.lost, state.is_lost) = (None, false);
                None
            }
            Err(Failed::Lost(text)) => {
                let found = *state.lost.get_or_insert_with(Instant::now);
                Some(if found.elapsed() < pause * LOST_AFTER_PAUSES {
                    Failed::Later(text)
                } else {
                    state.is_lost = true;
                    Failed::Lost(text)
                })
            }
            Err(failed) => {
                state.again = Some(Instant::now() + pause);
                Some(failed)
            }
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
            if self.is_here() {
                return Ok(());
            }
            if let Some(failed) = state.refusal() {
                return Err(failed.into());
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
            if !self.is_here() && state.refusal().is_none() {
                self.changed.wait_for(&mut state, LOOK_EVERY);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Handle {
    cached: Arc<Cached>,
    fetcher: Arc<Fetcher>,
}

impl Handle {
    pub(super) fn new(cached: Arc<Cached>, fetcher: &Arc<Fetcher>) -> Self {
        let fetcher = Arc::clone(fetcher);
        Self { cached, fetcher }
    }
}

impl File for Handle {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.cached.len_bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &*self.cached.here.read() {
            Some(file) => {
                self.cached.note_use(self.fetcher.now());
                file.read_at(buffer, offset)
            }
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        match &*self.cached.here.read() {
            Some(file) => file.sync(),
            // An object is durable, and a file is synced before it has this name.
            None => Ok(()),
        }
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_be_away(&self) -> bool {
        true
    }

    fn is_here(&self) -> bool {
        self.cached.is_here()
    }

    fn fetch(&self, since: Option<Instant>) -> io::Result<()> {
        // What was asked for leaves behind all that was not read since.
        self.cached.note_use(self.fetcher.now());
        if self.is_here() {
            return Ok(());
        }
        if let Some(since) = since {
            return self.cached.wait(&self.fetcher, since);
        }
        if let Some(failed) = self.cached.state.lock().refusal() {
            return Err(failed.into());
        }
        self.fetcher.ask(&self.cached);
        let text = format!("it is being fetched: {}", self.fetcher.call(&self.cached));
        Err(io::Error::new(io::ErrorKind::WouldBlock, text))
    }
}
