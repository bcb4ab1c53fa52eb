//! Series that one writer has for itself: those that rules of the server write.
//!
//! They are known by their keys, so a series that is made anew, or wakes, is one too. A series that is awake has a
//! bit, and its shard counts those that have it together with the destinations of compaction rules: an
//! append looks at that count anyway, and asks no more where it is 0. All other writes ask by key. What
//! is under way while a series gets an owner may still be written. Nothing of it is durable: whoever
//! owns series says so after each start, and knows those that rules made by their maker.
//!
//! Invariant: the bit is set under the lock of the shard, after the key is known here; a series that is
//! made looks here under that lock. Tested by `tests/owned.rs`.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
#[derive(Default)]
pub(crate) struct Owned {
    /// Held while a series gets or loses its owner; before the lock of a shard.
    turn: Mutex<()>,
    count: AtomicUsize,
    owners: RwLock<HashMap<Box<[u8]>, Arc<str>, FixedState>>,
}

impl Owned {
    /// Who owns the series under `key`.
    pub(crate) fn owner(&self, key: &[u8]) -> Option<Arc<str>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.owners.read().get(key).cloned()
    }

    /// The keys of all that are owned.
    pub(crate) fn keys(&self) -> Vec<Box<[u8]>> {
        self.owners.read().keys().cloned().collect()
    }

    /// Sets who owns the series under `key`. Until the result is dropped, nobody else gets or loses an
    /// owner.
    pub(super) fn set(&self, key: &[u8], owner: Option<&str>) -> MutexGuard<'_, ()> {
        let turn = self.turn.lock();
        let mut owners = self.owners.write();
        match owner {
            Some(owner) => drop(owners.insert(key.into(), owner.into())),
            None => drop(owners.remove(key)),
        }
        self.count.store(owners.len(), Ordering::Release);
        turn
    }

    /// Whether somebody owns it.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.owners.read().contains_key(key)
    }
}
