//! The exec lock: EXEC excludes every other command. CLIENT PAUSE takes it too,
//! so that no write is under way when it is answered.
//!
//! An event loop shares the lock while it runs commands; EXEC holds it
//! exclusively, so no command of another loop runs between its own. Each loop
//! has a lock of its own and takes it for reading, once per connection and
//! round: it is uncontended and no cache line travels. EXEC takes all of them
//! for writing, after its own loop has given back its share.
//!
//! While one EXEC waits for the loops, each of them gives its share back behind the
//! command it is at ([`ExecLock::is_wanted`]) and begins no other. So nobody waits for
//! an EXEC longer than the longest single command of an event loop takes, and the EXEC
//! itself. Long reads run beside the loops (`readers.rs`) and take no share: each series
//! is read as it was at one moment, which may lie between two commands of an EXEC.
//!
//! The engine's own threads, which settle, sync, expire keys and write
//! compaction rules, do not take the lock.

use latewood_engine::io::waiting::{NoWait, no_wait};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::{AtomicUsize, Ordering};

/// One lock for each event loop, and one for the threads beside them.
#[derive(Debug)]
pub(crate) struct ExecLock {
    locks: Box<[LoopLock]>,
    /// EXECs that wait or run.
    wanted: AtomicUsize,
    /// Held by the one whose turn it is.
    turn: Mutex<()>,
}

/// The lock of one loop, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LoopLock(RwLock<()>);

/// While it lives, no EXEC of another loop runs.
pub(crate) type ExecShared<'a> = RwLockReadGuard<'a, ()>;

/// The same on a thread that is no event loop. An EXEC, and so all loops, may wait for it: it
/// waits for no block that is not on this machine.
pub(crate) struct ExecBeside<'a> {
    _lock: ExecShared<'a>,
    _no_wait: NoWait,
}

/// While it lives, no other loop runs a command.
pub(crate) struct ExecExclusive<'a> {
    _locks: Vec<RwLockWriteGuard<'a, ()>>,
    _turn: MutexGuard<'a, ()>,
    _wish: Wish<'a>,
}

/// An EXEC that waits or runs.
struct Wish<'a>(&'a AtomicUsize);

impl<'a> Wish<'a> {
    fn of(wanted: &'a AtomicUsize) -> Self {
        wanted.fetch_add(1, Ordering::Relaxed);
        Self(wanted)
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ExecLock {
    /// A lock for loops 0 to `loops`, at least one, and for all other threads
    /// together.
    pub(crate) fn new(loops: usize) -> Self {
        let locks = (0..=loops.max(1)).map(|_| LoopLock::default()).collect();
        Self {
            locks,
            wanted: AtomicUsize::new(0),
            turn: Mutex::default(),
        }
    }

    /// Lets event loop number `event_loop` run commands.
    #[inline]
    pub(crate) fn share(&self, event_loop: usize) -> ExecShared<'_> {
        self.share_at(event_loop % (self.locks.len() - 1))
    }

    /// Lets a thread that is not an event loop write a batch.
    #[inline]
    pub(crate) fn share_beside_loops(&self) -> ExecBeside<'_> {
        ExecBeside {
            _lock: self.share_at(self.locks.len() - 1),
            _no_wait: no_wait(),
        }
    }

    #[inline]
    fn share_at(&self, place: usize) -> ExecShared<'_> {
        if self.is_wanted() {
            // Its turn ends with it.
            drop(self.turn.lock());
        }
        self.locks[place].0.read()
    }

    /// Whether an EXEC waits: who has a share gives it back behind its command.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Waits until no loop runs commands, and excludes them. The caller must
    /// not hold a share.
    pub(crate) fn exclude(&self) -> ExecExclusive<'_> {
        let wish = Wish::of(&self.wanted);
        let turn = self.turn.lock();
        ExecExclusive {
            _locks: self.locks.iter().map(|lock| lock.0.write()).collect(),
            _turn: turn,
            _wish: wish,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn nobody_begins_while_an_exec_waits_for_another() {
        let lock = ExecLock::new(3);
        let (slow, order) = (lock.share(2), Mutex::new(Vec::new()));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let _exclusive = lock.exclude();
                order.lock().push("the exec");
            });
            while !lock.is_wanted() {
                std::thread::yield_now();
            }
            let (tell, told) = std::sync::mpsc::channel();
            let (order, lock) = (&order, &lock);
            threads.spawn(move || {
                tell.send(()).unwrap();
                let _shared = lock.share(0);
                order.lock().push("who begins");
            });
            told.recv().unwrap();
            assert_eq!(*order.lock(), [""; 0]);
            drop(slow);
        });
        assert_eq!(order.into_inner(), ["the exec", "who begins"]);
        assert!(!lock.is_wanted());
    }

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
