//! Files that are named but not on this machine, and which threads may wait for them.
//!
//! A disk that is a cache ([`super::File::fetch`]) answers a read of such a file with
//! `WouldBlock`. Whoever reads blocks then fetches the whole file, which takes as long as an
//! object store takes. A thread that holds a lock, or that others wait for, must not: under
//! [`no_wait`] it gets an error of the kind `Away` at once, while the file is on its way, and
//! `fetching` tries again from outside of the locks.
//!
//! A file that is here never gets to this module. Tested below and by the tablets of
//! `crates/cluster`.

use super::File;
use crate::base::error::{ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

thread_local! {
    static SCOPES: Cell<usize> = const { Cell::new(0) };
    static MISSED: RefCell<Option<Arc<dyn File>>> = const { RefCell::new(None) };
}

/// While it lives, its thread waits for no file.
#[derive(Debug)]
pub struct NoWait(PhantomData<*const ()>);

/// Keeps this thread from waiting for files that are not on this machine, until the value is
/// dropped: reads of such a file fail with [`ErrorKind::Away`], and have it fetched.
pub fn no_wait() -> NoWait {
    SCOPES.set(SCOPES.get() + 1);
    NoWait(PhantomData)
}

impl Drop for NoWait {
    fn drop(&mut self) {
        SCOPES.set(SCOPES.get().saturating_sub(1));
    }
}

/// Makes a file be on this machine, or has it fetched where this thread must not wait.
///
/// # Errors
/// `WouldBlock` if it must not, and those of [`File::fetch`].
pub(crate) fn fetch(file: &Arc<dyn File>) -> io::Result<()> {
    let waits = SCOPES.get() == 0;
    MISSED.set((!waits).then(|| Arc::clone(file)));
    file.fetch(waits)
}

/// Calls `attempt`, which takes locks under [`no_wait`], again and again: between two calls
/// the file is fetched that the last one missed.
///
/// # Errors
/// Those of `attempt`; `Away` if this thread must not wait or a file cannot be fetched.
pub(crate) fn fetching<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::Away && SCOPES.get() == 0 => {
                let Some(file) = MISSED.take() else {
                    return Err(error);
                };
                file.fetch(true).map_err(|source| error.because(source))?;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use parking_lot::Mutex;
    use std::path::Path;

    /// Comes when it is waited for.
    #[derive(Debug, Default)]
    struct Coming {
        is_here: Mutex<bool>,
        asked: Mutex<usize>,
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

        fn fetch(&self, waits: bool) -> io::Result<()> {
            *self.asked.lock() += 1;
            *self.is_here.lock() |= waits;
            match waits {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    fn read(coming: &Arc<Coming>) -> Result<()> {
        let file: Arc<dyn File> = coming.clone();
        match file.is_here() {
            true => Ok(()),
            false => fetch(&file).map_err(|source| Error::away(Path::new("x"), source)),
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
        assert_eq!(*coming.asked.lock(), 3);
    }
}
