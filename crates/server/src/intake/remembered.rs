//! The bound on what all senders together may have remembered.
//!
//! An intake remembers rows and series, a connection of Akumuli's its
//! dictionary. Each is bounded by itself; a thousand connections together must
//! not fill the memory budget, or no sample would find room in it. So all of
//! them count here. Once they are over the bound, each may keep an even share of it:
//! whoever has more forgets all the next time it learns something. So together
//! they hold twice the bound at most. Tested by `tests.rs`.

use crate::state::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The bound where there is no memory budget.
const BOUND_BYTES: usize = 512 << 20;
/// The share of the memory budget that is the bound.
const BUDGET_SHARE: u64 = 16;

/// What one of them holds, for as long as it lives.
pub(crate) struct Share {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared
            .protocols
            .remembered
            .owners
            .fetch_add(1, Ordering::Relaxed);
        Self { shared, bytes: 0 }
    }

    pub(crate) fn hold(&mut self, bytes: usize) {
        let all = &self.shared.protocols.remembered.bytes;
        match bytes.checked_sub(self.bytes) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed),
            None => all.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.bytes = bytes;
    }

    /// Bytes that this one may hold now, of `most` that it may hold by itself.
    pub(crate) fn allowed_bytes(&self, most: usize) -> usize {
        let bound = match self.shared.db.memory_limit() {
            0 => BOUND_BYTES,
            budget => usize::try_from(budget / BUDGET_SHARE).unwrap_or(usize::MAX),
        };
        let all = &self.shared.protocols.remembered;
        if all.len_bytes() > bound {
            most.min(bound / all.owners.load(Ordering::Relaxed).max(1))
        } else {
            most.min(bound)
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
        let owners = &self.shared.protocols.remembered.owners;
        owners.fetch_sub(1, Ordering::Relaxed);
    }
}
