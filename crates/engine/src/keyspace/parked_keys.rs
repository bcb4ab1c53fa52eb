//! Which ids parked series have that may be under a key.
//!
//! The keys themselves are in files. Of each there is a *fingerprint* here, 52 bits of its hash, with
//! the id of its series: 12 bytes. A fingerprint that is not here proves that no parked series has
//! the key; one that is says which rows to read. The hash is seeded, so nobody can prepare keys
//! of one fingerprint, and of a hundred million keys three in ten million have that of another.
//!
//! Sharded like the key map ([`super::keys`]), whose order of locks it shares. Tested below and by
//! the tests of parked series.

use crate::base::table::{Table, Tagged, tag_of};
use latewood_model::SeriesId;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 16;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();
/// Parts of a shard that grow on their own.
const PARTS: usize = 64;

/// In 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: u32,
    /// Sixteen more bits of the hash.
    more: u16,
    /// The upper and the lower bits of the id.
    id_high: u16,
    id_low: u32,
}

impl Entry {
    fn new(hash: u64, id: SeriesId) -> Self {
        debug_assert!(id.0 >> SeriesId::BITS == 0);
        Self {
            tag: tag_of(hash),
            more: (hash >> 32) as u16,
            id_high: (id.0 >> 32) as u16,
            id_low: id.0 as u32,
        }
    }

    fn id(&self) -> SeriesId {
        SeriesId(u64::from(self.id_high) << 32 | u64::from(self.id_low))
    }
}

impl Tagged for Entry {
    fn tag(&self) -> u32 {
        self.tag
    }
}

/// A part of the fingerprints, on cache lines of its own.
#[repr(align(128))]
struct Shard(RwLock<Table<Entry>>);

pub(crate) struct ParkedKeys {
    shards: [Shard; SHARDS],
    len: AtomicUsize,
    /// How often a key came.
    came: AtomicU64,
    /// Keys that a start found whose fingerprint was there already.
    doubled: Mutex<Vec<Arc<[u8]>>>,
}

impl Default for ParkedKeys {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard(RwLock::new(Table::new(PARTS)))),
            len: AtomicUsize::new(0),
            came: AtomicU64::new(0),
            doubled: Mutex::default(),
        }
    }
}

impl ParkedKeys {
    fn shard(&self, hash: u64) -> &RwLock<Table<Entry>> {
        &self.shards[(hash >> (64 - SHARD_BITS)) as usize].0
    }

    /// A parked series that may have a key of this hash, as the key map's
    /// ([`super::keys::Keys::hash`]).
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> Option<SeriesId> {
        if self.is_empty() {
            return None;
        }
        let more = (hash >> 32) as u16;
        let shard = self.shard(hash).read();
        let found = shard.find(tag_of(hash), |entry| entry.more == more);
        found.map(Entry::id)
    }

    /// Adds the key of a series that is parked. Call it before the key map lets go of the key.
    pub(crate) fn insert(&self, hash: u64, id: SeriesId) {
        self.came.fetch_add(1, Ordering::Release);
        let mut shard = self.shard(hash).write();
        shard.insert(tag_of(hash), Entry::new(hash, id));
        self.len.fetch_add(1, Ordering::Release);
    }

    /// The same for what a start finds, in any order: two series may have one key, where files or log
    /// lost something.
    pub(crate) fn insert_found(&self, hash: u64, key: &Arc<[u8]>, id: SeriesId) {
        if self.find(hash).is_some() {
            self.doubled.lock().push(key.clone());
        }
        self.insert(hash, id);
    }

    /// Keys of which [`ParkedKeys::insert_found`] met several that may be the same.
    pub(crate) fn take_doubled(&self) -> Vec<Arc<[u8]>> {
        std::mem::take(&mut self.doubled.lock())
    }

    /// Takes the key of a series out that is parked no more. Call it after the key map has the key
    /// again.
    pub(crate) fn remove(&self, hash: u64, id: SeriesId) {
        let wanted = Entry::new(hash, id);
        let mut shard = self.shard(hash).write();
        if shard
            .remove(tag_of(hash), |entry| *entry == wanted)
            .is_some()
        {
            self.len.fetch_sub(1, Ordering::Release);
        }
    }

    /// How often a key came: a look at both maps that saw the same number before and after missed
    /// none that went from one to the other.
    pub(crate) fn came(&self) -> u64 {
        self.came.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn clear(&self) {
        for Shard(shard) in &self.shards {
            let mut shard = shard.write();
            self.len.fetch_sub(shard.len(), Ordering::Release);
            shard.clear();
        }
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |Shard(shard): &Shard| shard.read().memory_bytes();
        self.shards.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::keys::Keys;

    #[test]
    fn keys_of_one_fingerprint_are_all_found_and_memory_comes_back() {
        assert_eq!(size_of::<Entry>(), 12);
        let (keys, parked) = (Keys::new(7), ParkedKeys::default());
        let hash = |number: u64| keys.hash(&number.to_le_bytes());
        let id = |number: u64| SeriesId(number << 20);
        (0..50_000).for_each(|number| parked.insert(hash(number), id(number)));
        // Another key with the same bits.
        parked.insert(hash(3), id(60_000));
        assert_eq!(parked.len(), 50_001);
        for number in 4..50_000 {
            assert_eq!(parked.find(hash(number)), Some(id(number)));
        }
        assert_eq!(
            (50_000..100_000).find_map(|number| parked.find(hash(number))),
            None
        );
        let mut found = Vec::new();
        while let Some(id) = parked.find(hash(3)) {
            found.push(id);
            parked.remove(hash(3), id);
        }
        found.sort_unstable();
        assert_eq!(found, [id(3), id(60_000)]);
        // One that is not there.
        parked.remove(hash(3), id(3));
        assert_eq!(parked.len(), 49_999);
        let full = parked.memory_bytes();
        assert!(full < 49_999 * 24, "{full}");
        parked.clear();
        assert!(parked.is_empty() && parked.memory_bytes() < full / 10);
    }
}
