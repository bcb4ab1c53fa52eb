//! Threads that take turns: one runs at a time, and who is next follows from a seed.

use std::sync::{Condvar, Mutex, MutexGuard};

#[derive(Debug)]
struct Inner {
    /// Who has not left.
    present: Vec<usize>,
    current: usize,
    random: Chance,
}

/// Whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Numbers that follow from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

impl Turns {
    /// Turns of `count` threads.
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                present: (0..count).collect(),
                current: 0,
                random: Chance(seed),
            }),
            changed: Condvar::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing here panics")
    }

    /// Waits for the first turn of the thread `me`, which is given up when the answer is dropped.
    pub(crate) fn join(&self, me: usize) -> Present<'_> {
        self.wait(self.inner(), me);
        Present { turns: self, me }
    }

    /// Gives the turn to somebody and waits for the next.
    pub(crate) fn pass(&self, me: usize) {
        let mut inner = self.inner();
        inner.choose();
        if inner.current != me {
            self.changed.notify_all();
            self.wait(inner, me);
        }
    }

    fn wait(&self, mut inner: MutexGuard<'_, Inner>, me: usize) {
        while inner.current != me {
            inner = self.changed.wait(inner).expect("nothing here panics");
        }
    }
}

impl Inner {
    fn choose(&mut self) {
        let which = self.random.below(self.present.len() as u64) as usize;
        self.current = self.present[which];
    }
}

/// A thread that takes turns.
pub(crate) struct Present<'a> {
    turns: &'a Turns,
    me: usize,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut inner = self.turns.inner();
        inner.present.retain(|one| *one != self.me);
        if !inner.present.is_empty() {
            inner.choose();
        }
        self.turns.changed.notify_all();
    }
}
