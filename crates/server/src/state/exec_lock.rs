//! The gate between EXEC and everything else. CLIENT PAUSE takes the same way,
//! so that no write is under way any more when it is answered.
//!
//! An event loop runs commands while it holds a pass; EXEC runs while it has the
//! gate alone, so no command of another loop comes between its own. Each loop
//! has a lock to itself and takes it for reading, once per connection and
//! round: nobody contends for it and no cache line travels. EXEC takes all of
//! them for writing, in ascending order, and first gives back its own loop's
//! pass, so two EXECs cannot wait for each other.
//!
//! What is not behind the gate: the engine's own threads, which settle, sync,
//! expire keys and write compactions.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One lock for each event loop, and one for the threads beside them.
#[derive(Debug)]
pub(crate) struct Gate {
    locks: Box<[Lane]>,
}

/// A loop's lock on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(RwLock<()>);

/// While it lives, no EXEC of another loop runs.
pub(crate) type Pass<'a> = RwLockReadGuard<'a, ()>;

/// While it lives, no other loop runs a command.
pub(crate) struct Alone<'a> {
    _locks: Vec<RwLockWriteGuard<'a, ()>>,
}

impl Gate {
    /// A gate for loops 0 to `loops`, of which there is at least one, and for
    /// all others together.
    pub(crate) fn new(loops: usize) -> Self {
        let locks = (0..=loops.max(1)).map(|_| Lane::default()).collect();
        Self { locks }
    }

    /// Lets event loop number `event_loop` run commands.
    #[inline]
    pub(crate) fn enter(&self, event_loop: usize) -> Pass<'_> {
        self.locks[event_loop % (self.locks.len() - 1)].0.read()
    }

    /// Lets a thread that is no event loop write a batch.
    #[inline]
    pub(crate) fn enter_beside_loops(&self) -> Pass<'_> {
        self.locks[self.locks.len() - 1].0.read()
    }

    /// Waits until no loop runs commands, and keeps them from it. The caller
    /// must not hold a pass.
    pub(crate) fn alone(&self) -> Alone<'_> {
        let locks = self.locks.iter().map(|lane| lane.0.write()).collect();
        Alone { _locks: locks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn who_is_alone_sees_nothing_change() {
        let gate = Gate::new(3);
        let counter = AtomicU64::new(0);
        std::thread::scope(|threads| {
            for event_loop in 0..3 {
                let (gate, counter) = (&gate, &counter);
                threads.spawn(move || {
                    for round in 0..2000 {
                        if round % 10 == 0 {
                            let _alone = gate.alone();
                            let before = counter.load(Ordering::Relaxed);
                            std::thread::yield_now();
                            assert_eq!(counter.load(Ordering::Relaxed), before);
                        }
                        let _pass = gate.enter(event_loop);
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 6000);
    }
}
