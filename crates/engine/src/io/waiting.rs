//! Files that are named but not on this machine, and which threads may wait for them.
//!
//! A disk that is a cache ([`super::File::fetch`]) answers a read of such a file with
//! `WouldBlock`. Whoever reads blocks then fetches the whole file, which takes as long as an
//! object store takes. A thread that holds a lock, or that others wait for, must not: under
//! [`no_wait`] it gets an error of the kind `Away` at once, while the file is on its way, and
//! `fetching` tries again from outside of the locks. The waits of one task count as one
//! ([`together`]).
//!
//! Rows of a rule whose history is being computed are waited for in the same way: not under
//! [`no_wait`], and up to a deadline ([`until`]).
//!
//! A row of a parked series is in a file of this machine, and is read in a moment. A thread that
//! leaves even that to others ([`leave_rows`]) gets `Away` as well where it looks for series by their
//! labels, or for some of all.
//!
//! `Away` says to come again. A file that is missing or wrong where it is kept is `Corrupt`:
//! whoever reads it goes on as with any damage.
//!
//! A file that is here never gets to this module. Tested below and by the tablets of
//! `crates/cluster`.

use super::File;
use crate::base::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a read waits for rows that are being computed, unless its thread has a deadline.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often one attempt after the other fetches the same file.
const FETCHES_MAX: usize = 8;

thread_local! {
    static SCOPES: Cell<usize> = const { Cell::new(0) };
    /// The first file that an attempt missed.
    static MISSED: RefCell<Option<(Arc<dyn File>, PathBuf)>> = const { RefCell::new(None) };
    /// Within a task: how long it has waited.
    static TASK: Cell<Option<Duration>> = const { Cell::new(None) };
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static LEAVES_ROWS: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, its thread has a deadline.
#[derive(Debug)]
pub struct Until(PhantomData<*const ()>);

/// Has reads of this thread wait for rows that are being computed until `deadline`, all of them
/// together, until the value is dropped. Not nested.
pub fn until(deadline: Instant) -> Until {
    DEADLINE.set(Some(deadline));
    Until(PhantomData)
}

impl Drop for Until {
    fn drop(&mut self) {
        DEADLINE.set(None);
    }
}

/// When a wait of this thread that begins now has to end; `None` if it must not wait.
pub(crate) fn deadline() -> Option<Instant> {
    let of_thread = DEADLINE.get();
    let own = || Instant::now() + PATIENCE;
    (SCOPES.get() == 0).then(|| of_thread.unwrap_or_else(own))
}

/// Whether a moment that [`deadline`] named is past.
pub(crate) fn is_past(deadline: Instant) -> bool {
    Instant::now() >= deadline
}

/// While it lives, the waits of its thread count as one.
#[derive(Debug)]
pub struct Together(PhantomData<*const ()>);

/// Has the waits of this thread be parts of one, until the value is dropped: a task that meets
/// many files waits no longer than one that meets one. Not nested.
pub fn together() -> Together {
    TASK.set(Some(Duration::ZERO));
    Together(PhantomData)
}

impl Drop for Together {
    fn drop(&mut self) {
        TASK.set(None);
    }
}

/// Waits for a file, as if the waits of this task before had just ended.
fn wait(file: &Arc<dyn File>) -> io::Result<()> {
    let begun = Instant::now();
    let before = TASK.get().unwrap_or_default();
    let fetched = file.fetch(Some(begun.checked_sub(before).unwrap_or(begun)));
    if TASK.get().is_some() {
        TASK.set(Some(before + begun.elapsed()));
    }
    fetched
}

/// While it lives, its thread waits for no file.
#[derive(Debug)]
pub struct NoWait(PhantomData<*const ()>);

/// Keeps this thread from waiting for files that are not on this machine, until the value is
/// dropped: reads of such a file fail with [`crate::ErrorKind::Away`], and have it fetched.
pub fn no_wait() -> NoWait {
    SCOPES.set(SCOPES.get() + 1);
    NoWait(PhantomData)
}

impl Drop for NoWait {
    fn drop(&mut self) {
        SCOPES.set(SCOPES.get().saturating_sub(1));
    }
}

/// While it lives, its thread reads no rows of the series that it looks for.
#[derive(Debug)]
pub struct LeaveRows(PhantomData<*const ()>);

/// Has this thread's looks for series by their labels, or for some of all, fail with
/// [`crate::ErrorKind::Away`] where they meet a parked series whose row is not at hand, until the value
/// is dropped. For one who can read once more on a thread for which nobody waits. Not nested.
pub fn leave_rows() -> LeaveRows {
    LEAVES_ROWS.set(true);
    LeaveRows(PhantomData)
}

impl Drop for LeaveRows {
    fn drop(&mut self) {
        LEAVES_ROWS.set(false);
    }
}

/// Whether this thread leaves the rows of parked series to others.
pub(crate) fn leaves_rows() -> bool {
    LEAVES_ROWS.get()
}

/// Whether others wait for this thread: it must not wait.
pub(crate) fn is_waited_for() -> bool {
    SCOPES.get() > 0
}

/// Makes a file be on this machine, or has it fetched where this thread must not wait.
///
/// # Errors
/// `Away` if it must not, or the file did not come; `Corrupt` if it is lost.
pub(crate) fn fetch(file: &Arc<dyn File>, path: &Path) -> Result<()> {
    let waits = SCOPES.get() == 0;
    let fetched = if waits { wait(file) } else { file.fetch(None) };
    fetched.map_err(|source| {
        let error = missing(path, source);
        if !waits && error.is_away() {
            MISSED.with_borrow_mut(|missed| {
                missed.get_or_insert_with(|| (Arc::clone(file), path.to_owned()));
            });
        }
        error
    })
}

/// Makes a file be on this machine, for as long as a task waits for one.
///
/// # Errors
/// As [`fetch`].
pub(crate) fn fetch_alone(file: &Arc<dyn File>, path: &Path) -> Result<()> {
    let fetched = file.fetch(Some(Instant::now()));
    fetched.map_err(|source| missing(path, source))
}

/// The error of a file that [`File::fetch`] did not get.
fn missing(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::InvalidData => Error::lost(path, source),
        _ => Error::away(path, source),
    }
}

/// Calls `attempt`, which takes locks under [`no_wait`], again and again: between two calls
/// the file is fetched that the last one missed. Ends once a file left again and again: a cache may
/// be too small for all that `attempt` needs at once.
///
/// # Errors
/// Those of `attempt`; `Away` if this thread must not wait or a file did not come.
pub(crate) fn fetching<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    if SCOPES.get() > 0 {
        return attempt();
    }
    let mut fetched = Vec::new();
    loop {
        MISSED.take();
        match attempt() {
            Err(error) if error.is_away() => {
                let Some((file, path)) = MISSED.take() else {
                    return Err(error);
                };
                if fetched.iter().filter(|held| **held == path).count() == FETCHES_MAX {
                    return Err(error);
                }
                // A lost one is met by the next attempt, which knows what to do.
                if let Err(source) = wait(&file)
                    && let away = missing(&path, source)
                    && away.is_away()
                {
                    return Err(away);
                }
                fetched.push(path);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use parking_lot::Mutex;
    use std::path::Path;

    /// Comes when it is waited for.
    #[derive(Debug, Default)]
    struct Coming {
        is_here: Mutex<bool>,
        asked: Mutex<Vec<Option<Instant>>>,
    }

    impl File for Coming {
        fn len_bytes(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn truncate(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn is_here(&self) -> bool {
            *self.is_here.lock()
        }

        fn fetch(&self, since: Option<Instant>) -> io::Result<()> {
            self.asked.lock().push(since);
            *self.is_here.lock() |= since.is_some();
            match since {
                Some(_) => Ok(()),
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    fn read(coming: &Arc<Coming>) -> Result<()> {
        let file: Arc<dyn File> = coming.clone();
        if file.is_here() {
            Ok(())
        } else {
            fetch(&file, Path::new("x"))
        }
    }

    #[test]
    fn a_thread_that_must_not_wait_asks_and_one_that_may_waits() {
        let coming = Arc::new(Coming::default());
        let held = no_wait();
        let refused = fetching(|| read(&coming)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Away);
        assert!(!coming.is_here());
        drop(held);
        let locked = || {
            let _lock = no_wait();
            read(&coming)
        };
        fetching(locked).unwrap();
        assert!(coming.is_here());
        assert_eq!(coming.asked.lock().len(), 3);
    }

    #[test]
    fn a_file_that_leaves_again_and_again_is_not_waited_for_for_ever() {
        let coming = Arc::new(Coming::default());
        let refused = fetching(|| {
            *coming.is_here.lock() = false;
            let _lock = no_wait();
            read(&coming)
        });
        assert!(refused.unwrap_err().is_away());
    }

    #[test]
    fn the_waits_of_a_task_are_one() {
        /// The time that it is taken to have waited before.
        const LONG: Duration = Duration::from_secs(60);
        let task = together();
        for before in [Duration::ZERO, LONG] {
            TASK.set(Some(before));
            let coming = Arc::new(Coming::default());
            let begun = Instant::now();
            read(&coming).unwrap();
            let (since, ended) = (coming.asked.lock()[0].unwrap(), Instant::now());
            // The time between two waits does not count.
            assert!((begun..=ended).contains(&(since + before)));
            assert!((before..=before + (ended - begun)).contains(&TASK.get().unwrap()));
        }
        drop(task);
        assert!(TASK.get().is_none());
    }
}
