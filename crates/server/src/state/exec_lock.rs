//! The exec lock: EXEC excludes every other command. CLIENT PAUSE takes it too,
//! so that no write is under way when it is answered.
//!
//! An event loop shares the lock while it runs commands; EXEC holds it
//! exclusively, so no command of another loop runs between its own. Each loop
//! has a lock of its own and takes it for reading, once per connection and
//! round: it is uncontended and no cache line travels. EXEC takes all of them
//! for writing, in ascending order, after its own loop has given back its
//! share, so two EXECs cannot wait for each other.
//!
//! The engine's own threads, which settle, sync, expire keys and write
//! compaction rules, do not take the lock.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One lock for each event loop, and one for the threads beside them.
#[derive(Debug)]
pub(crate) struct ExecLock {
    locks: Box<[LoopLock]>,
}

/// The lock of one loop, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LoopLock(RwLock<()>);

/// While it lives, no EXEC of another loop runs.
pub(crate) type ExecShared<'a> = RwLockReadGuard<'a, ()>;

/// While it lives, no other loop runs a command.
pub(crate) struct ExecExclusive<'a> {
    _locks: Vec<RwLockWriteGuard<'a, ()>>,
}

impl ExecLock {
    /// A lock for loops 0 to `loops`, at least one, and for all other threads
    /// together.
    pub(crate) fn new(loops: usize) -> Self {
        let locks = (0..=loops.max(1)).map(|_| LoopLock::default()).collect();
        Self { locks }
    }

    /// Lets event loop number `event_loop` run commands.
    #[inline]
    pub(crate) fn share(&self, event_loop: usize) -> ExecShared<'_> {
        self.locks[event_loop % (self.locks.len() - 1)].0.read()
    }

    /// Lets a thread that is not an event loop write a batch.
    #[inline]
    pub(crate) fn share_beside_loops(&self) -> ExecShared<'_> {
        self.locks[self.locks.len() - 1].0.read()
    }

    /// Waits until no loop runs commands, and excludes them. The caller must
    /// not hold a share.
    pub(crate) fn exclude(&self) -> ExecExclusive<'_> {
        let locks = self.locks.iter().map(|lock| lock.0.write()).collect();
        ExecExclusive { _locks: locks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn who_is_exclusive_sees_nothing_change() {
        let lock = ExecLock::new(3);
        let counter = AtomicU64::new(0);
        std::thread::scope(|threads| {
            for event_loop in 0..3 {
                let (lock, counter) = (&lock, &counter);
                threads.spawn(move || {
                    for round in 0..2000 {
                        if round % 10 == 0 {
                            let _exclusive = lock.exclude();
                            let before = counter.load(Ordering::Relaxed);
                            std::thread::yield_now();
                            assert_eq!(counter.load(Ordering::Relaxed), before);
                        }
                        let _shared = lock.share(event_loop);
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 6000);
    }
}
