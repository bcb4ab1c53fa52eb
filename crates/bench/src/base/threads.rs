//! Threads that do the same side by side.

use std::thread;
use std::time::Duration;

use crate::base::error::{Error, Result};

/// The most threads a measurement may have.
pub(crate) const THREADS_MAX: usize = 1_024;

/// Does `work` on `count` threads, each with its number from 0; returns what they bring by number.
pub(crate) fn side_by_side<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let begin = |thread| scope.spawn(move || work(thread));
        let threads: Vec<_> = (0..count).map(begin).collect();
        // All are waited for before the first error is looked at.
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let died = |_| Err(Error::new("a thread died"));
        ended
            .into_iter()
            .map(|end| end.unwrap_or_else(died))
            .collect()
    })
}

/// Does `work` on a thread and calls `look` again and again, `every` so often, until it is done.
pub(crate) fn beside<T: Send>(
    every: Duration,
    mut look: impl FnMut(),
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    thread::scope(|scope| {
        let caller = thread::current();
        let work = scope.spawn(move || {
            let done = work();
            caller.unpark();
            done
        });
        while !work.is_finished() {
            thread::park_timeout(every);
            look();
        }
        work.join().map_err(|_| Error::new("a thread died"))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_bring_comes_in_their_order() {
        assert_eq!(side_by_side(3, |thread| Ok(thread * 2)).unwrap(), [0, 2, 4]);
        let failed = side_by_side::<()>(4, |thread| Err(Error::new(format!("{thread} failed"))));
        assert_eq!(failed.unwrap_err().to_string(), "0 failed");
    }
}
