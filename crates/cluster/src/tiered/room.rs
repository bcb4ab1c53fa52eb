//! How much of the blocks may be on this machine, and which of them leave.
//!
//! The limit is about blocks that the newest checkpoint names. Others are nowhere else, and stay.
//! Whole files leave when one is about to come, after a checkpoint, and when the limit is lowered;
//! those read least recently first.
//!
//! Invariants: a block leaves only once its object was seen in the store, at its whole length, and
//! while nobody reads, fetches or links it ([`Cached::leave`]). While nobody reads, more than the
//! limit is held only by the files that come at the time and what cannot leave.

use super::cached::Cached;
use super::fetcher::Fetcher;
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct Room {
    /// The limit; 0 is none.
    pub(super) bytes_max: AtomicU64,
    evictions: AtomicU64,
    evicted_bytes: AtomicU64,
    /// Held to make room, or to look whether a block fits and to begin to fetch it: two at a time
    /// would have too many leave, or come.
    turn: Mutex<()>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Bytes of blocks that the newest checkpoint names and that are on this machine, or come.
    pub bytes: u64,
    /// Their limit; 0 is none.
    pub bytes_max: u64,
    /// Blocks that left since the start.
    pub evictions: u64,
    /// Their bytes.
    pub evicted_bytes: u64,
    /// Blocks that neither this machine nor the object store has: their objects were missing or wrong
    /// whenever they were asked for, for a while.
    pub lost: u64,
}

impl Fetcher {
    pub(super) fn cache_figures(&self) -> CacheFigures {
        let room = &self.room;
        let lost = self.blocks().into_iter().filter(|block| block.is_lost());
        CacheFigures {
            lost: lost.count() as u64,
            bytes: self.room_taken(),
            bytes_max: room.bytes_max.load(Ordering::Relaxed),
            evictions: room.evictions.load(Ordering::Relaxed),
            evicted_bytes: room.evicted_bytes.load(Ordering::Relaxed),
        }
    }

    fn room_taken(&self) -> u64 {
        let blocks = self.blocks().into_iter();
        let counted = blocks.filter(|cached| cached.takes_room());
        counted.map(|cached| cached.len_bytes).sum()
    }

    /// The limit, once the start is over, which needs what it needs.
    fn limit(&self) -> Option<u64> {
        let bytes_max = self.room.bytes_max.load(Ordering::Relaxed);
        (bytes_max > 0 && self.is_running()).then_some(bytes_max)
    }

    /// As [`Cached::begin`], of a block that nobody asked for: only if nothing has to leave for it,
    /// and it did not have to leave before.
    pub(super) fn begin_later(&self, cached: &Cached) -> bool {
        let turn = self.room.turn.lock();
        let fits = self.limit().is_none_or(|limit| {
            // One that is only to be verified is counted.
            cached.is_held()
                || !cached.has_left() && self.room_taken().saturating_add(cached.len_bytes) <= limit
        });
        let begins = fits && cached.begin();
        drop(turn);
        if !fits && !cached.has_left() {
            // Nor do those behind it fit that are away.
            self.queue.lock().later.retain(|later| later.is_held());
        }
        begins
    }

    /// Has blocks leave while there are more than the limit allows.
    pub(super) fn make_room(&self) {
        let _turn = self.room.turn.lock();
        self.evict_excess();
    }

    /// The same for a block that is about to come, unless somebody makes room: a read does not wait
    /// for all that leave.
    pub(super) fn make_room_at_once(&self) {
        if let Some(_turn) = self.room.turn.try_lock() {
            self.evict_excess();
        }
    }

    fn evict_excess(&self) {
        let Some(limit) = self.limit() else { return };
        let mut blocks = self.blocks();
        blocks.retain(|cached| cached.takes_room());
        let taken: u64 = blocks.iter().map(|cached| cached.len_bytes).sum();
        let mut excess = taken.saturating_sub(limit);
        // Of those that nobody read, the oldest first.
        blocks.sort_by_key(|cached| cached.used());
        for cached in blocks {
            // Whoever changes the limit has this begin anew.
            if excess == 0 || self.limit() != Some(limit) {
                return;
            }
            match self.evict(&cached) {
                Ok(true) => excess = excess.saturating_sub(cached.len_bytes),
                Ok(false) => {}
                Err(error) => {
                    let path = cached.path.display();
                    return tracing::warn!(%path, error, "a block cannot leave the cache");
                }
            }
        }
    }

    fn evict(&self, cached: &Arc<Cached>) -> Result<bool, String> {
        let Some(row) = cached.row() else {
            return Ok(false);
        };
        let is_kept = self.objects.is_kept(&row);
        if !is_kept.map_err(|error| error.to_string())? {
            let object = self.call(cached);
            tracing::warn!(object, "the object of a block is gone, and its file stays");
            return Ok(false);
        }
        let files = self.files.lock();
        if !files
            .get(&cached.path)
            .is_some_and(|named| Arc::ptr_eq(named, cached))
        {
            return Ok(false);
        }
        let remove = || match self.disk.remove(&cached.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let left = cached.leave(remove).map_err(|error| error.to_string())?;
        if left {
            self.room.evictions.fetch_add(1, Ordering::Relaxed);
            let bytes = &self.room.evicted_bytes;
            bytes.fetch_add(cached.len_bytes, Ordering::Relaxed);
        }
        Ok(left)
    }
}
