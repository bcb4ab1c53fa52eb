//! Threads that do the same side by side.

use std::sync::atomic::{AtomicBool, Ordering};
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
    for_each(0..count, work)
}

/// Does `work` on a thread for each of `items`; returns what they bring in that order. All are waited
/// for before the first error is looked at.
pub(crate) fn for_each<I: Send, T: Send>(
    items: impl Iterator<Item = I>,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ended.into_iter().map(|end| end.map_err(died)?).collect()
    })
}

/// Does `work` on a thread and calls `look` again and again, `every` so often, until it is done.
pub(crate) fn beside<T: Send>(
    every: Duration,
    mut look: impl FnMut(),
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let is_done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let caller = thread::current();
        let work = scope.spawn(move || {
            let done = work();
            // Before the wake-up, or the caller would sleep through a turn and stop its clock late.
            is_done.store(true, Ordering::Release);
            caller.unpark();
            done
        });
        while !is_done.load(Ordering::Acquire) && !work.is_finished() {
            thread::park_timeout(every);
            look();
        }
        work.join().map_err(died)?
    })
}

fn died<E>(_: E) -> Error {
    Error::new("a thread died")
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
