//! From keys to series ids.
//!
//! Sharded by the hash of the key, apart from the series' state, which is
//! sharded by id: a renamed key moves no state. Lookups take a read lock of
//! one shard; the caller hashes a whole batch first and looks up after, so
//! that the memory of several keys is fetched at once.
//!
//! Lock order: a shard of the map is locked inside the lock of a state shard
//! or alone, never around one. Tested through the database.

use crate::tag::{self, spread};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use latewood_model::SeriesId;
use parking_lot::RwLock;
use std::hash::BuildHasher;
use std::sync::Arc;

const SHARDS: usize = 16;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();

struct Entry {
    key: Arc<[u8]>,
    id: SeriesId,
    /// Of the key.
    tag: u32,
}

/// All keys of a database.
pub(crate) struct Keys {
    shards: Vec<RwLock<HashTable<Entry>>>,
    state: FixedState,
}

impl Keys {
    /// No keys. `seed` makes the hash differ from process to process, so that
    /// nobody can prepare keys that collide.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            state: FixedState::with_seed(seed),
        }
    }

    /// The hash of `key` that the other methods take.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.state.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<Entry>> {
        // The table uses the low and the topmost bits of the hash itself.
        &self.shards[(hash >> (57 - SHARD_BITS)) as usize % SHARDS]
    }

    /// The series under `key`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<SeriesId> {
        let tag = tag::of(hash);
        let shard = self.shard(hash).read();
        shard
            .find(spread(tag), |entry| entry.tag == tag && *entry.key == *key)
            .map(|entry| entry.id)
    }

    /// Puts `id` under `key`, in place of what was there: that comes back.
    pub(crate) fn insert(&self, hash: u64, key: Arc<[u8]>, id: SeriesId) -> Option<SeriesId> {
        let mut shard = self.shard(hash).write();
        let tag = tag::of(hash);
        let same = |entry: &Entry| entry.tag == tag && entry.key == key;
        match shard.find_mut(spread(tag), same) {
            Some(entry) => {
                entry.key = key;
                Some(std::mem::replace(&mut entry.id, id))
            }
            None => {
                let entry = Entry { key, id, tag };
                shard.insert_unique(spread(tag), entry, |entry| spread(entry.tag));
                None
            }
        }
    }

    /// Makes room for so many keys, so that adding them moves none.
    pub(crate) fn reserve(&self, keys: usize) {
        // Hashes spread keys evenly, but for a few.
        let each = keys / SHARDS + keys / SHARDS / 64;
        for shard in &self.shards {
            shard.write().reserve(each, |entry| spread(entry.tag));
        }
    }

    /// Takes `key` away if `id` is under it.
    pub(crate) fn remove(&self, hash: u64, key: &[u8], id: SeriesId) {
        let mut shard = self.shard(hash).write();
        let same = |entry: &Entry| entry.id == id && *entry.key == *key;
        if let Ok(entry) = shard.find_entry(spread(tag::of(hash)), same) {
            entry.remove();
        }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Forgets all keys.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            *shard.write() = HashTable::new();
        }
    }

    /// Bytes of memory of the tables, keys aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        let size = |shard: &RwLock<HashTable<Entry>>| shard.read().allocation_size();
        self.shards.iter().map(size).sum()
    }
}
