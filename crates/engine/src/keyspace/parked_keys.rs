//! Which ids parked series have that may be under a key.
//!
//! The keys themselves are in files. Of each there is a *fingerprint* here, 52 bits of its hash, with
//! the id of its series: 12 bytes. A fingerprint that is not here proves that no parked series has
//! the key; one that is says which rows to read. The hash is the one that the files hold, with the
//! seed of the database ([`crate::base::key_hash`]): so a start needs no key, nobody can prepare keys
//! of one fingerprint, and of a hundred million keys three in ten million have that of another. It is
//! another one than that of the key map, and is made only where that lacks a key.
//!
//! Sharded like the key map ([`super::keys`]), whose order of locks it shares. Tested below and by
//! the tests of parked series.

use crate::base::key_hash::key_hash;
use crate::base::table::{Table, Tagged, tag_of};
use latewood_model::SeriesId;
use parking_lot::{Mutex, RwLock};
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
    /// That of the hashes in the files; see [`ParkedKeys::set_seed`].
    seed: AtomicU64,
    len: AtomicUsize,
    /// How often a key came.
    came: AtomicU64,
    /// Series that a start found whose fingerprint was there already.
    doubled: Mutex<Vec<SeriesId>>,
}

impl Default for ParkedKeys {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard(RwLock::new(Table::new(PARTS)))),
            seed: AtomicU64::new(0),
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

    /// Hashes are made with this seed, that of the manifest, from now on. A start says it before
    /// anything is parked; nothing parks where it changes later, in a database that follows another.
    pub(crate) fn set_seed(&self, seed: u64) {
        debug_assert!(
            self.is_empty(),
            "hashes of another seed are not found again"
        );
        self.seed.store(seed, Ordering::Relaxed);
    }

    fn hash(&self, key: &[u8]) -> u64 {
        key_hash(self.seed.load(Ordering::Relaxed), key)
    }

    /// A parked series that may have this key.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<SeriesId> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hash(key);
        let shard = self.shard(hash).read();
        find(&shard, hash)
    }

    /// Adds the key of a series that is parked. Call it before the key map lets go of the key.
    pub(crate) fn insert(&self, key: &[u8], id: SeriesId) {
        self.insert_hashed(self.hash(key), id);
    }

    /// The same for what a start finds in files, of which it has the hash of the key alone and which
    /// come in any order: two series may have one key, where files or log lost something.
    pub(crate) fn insert_found(&self, hash: u64, id: SeriesId) {
        if self.insert_hashed(hash, id) {
            self.doubled.lock().push(id);
        }
    }

    /// Returns whether there was one of the same fingerprint.
    fn insert_hashed(&self, hash: u64, id: SeriesId) -> bool {
        self.came.fetch_add(1, Ordering::Release);
        let mut shard = self.shard(hash).write();
        let is_doubled = find(&shard, hash).is_some();
        shard.insert(tag_of(hash), Entry::new(hash, id));
        self.len.fetch_add(1, Ordering::Release);
        is_doubled
    }

    /// The series of which [`ParkedKeys::insert_found`] met another one that may have the same key: of
    /// several with one key all but one.
    pub(crate) fn take_doubled(&self) -> Vec<SeriesId> {
        std::mem::take(&mut self.doubled.lock())
    }

    /// Takes the key of a series out that is parked no more. Call it after the key map has the key
    /// again.
    pub(crate) fn remove(&self, key: &[u8], id: SeriesId) {
        let hash = self.hash(key);
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
        self.doubled.lock().clear();
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |Shard(shard): &Shard| shard.read().memory_bytes();
        self.shards.iter().map(bytes).sum()
    }
}

fn find(shard: &Table<Entry>, hash: u64) -> Option<SeriesId> {
    let more = (hash >> 32) as u16;
    let found = shard.find(tag_of(hash), |entry| entry.more == more);
    found.map(Entry::id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_fingerprint_are_all_found_and_memory_comes_back() {
        assert_eq!(size_of::<Entry>(), 12);
        let parked = ParkedKeys::default();
        parked.set_seed(7);
        let key = |number: u64| number.to_le_bytes();
        let id = |number: u64| SeriesId(number << 20);
        (0..50_000).for_each(|number| parked.insert(&key(number), id(number)));
        // Another key with the same bits.
        parked.insert(&key(3), id(60_000));
        assert_eq!(parked.len(), 50_001);
        for number in 4..50_000 {
            assert_eq!(parked.find(&key(number)), Some(id(number)));
        }
        assert_eq!(
            (50_000..100_000).find_map(|number| parked.find(&key(number))),
            None
        );
        let mut found = Vec::new();
        while let Some(id) = parked.find(&key(3)) {
            found.push(id);
            parked.remove(&key(3), id);
        }
        found.sort_unstable();
        assert_eq!(found, [id(3), id(60_000)]);
        // One that is not there.
        parked.remove(&key(3), id(3));
        assert_eq!(parked.len(), 49_999);
        let full = parked.memory_bytes();
        assert!(full < 49_999 * 24, "{full}");
        parked.clear();
        assert!(parked.is_empty() && parked.memory_bytes() < full / 10);
    }

    #[test]
    fn what_threads_find_of_one_key_is_doubled_but_for_one() {
        const IDS: u64 = 1_000;
        let parked = ParkedKeys::default();
        parked.set_seed(7);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let parked = &parked;
                scope.spawn(move || {
                    for number in 0..IDS {
                        let hash = key_hash(7, &number.to_le_bytes());
                        parked.insert_found(hash, SeriesId(number * 4 + thread));
                    }
                });
            }
        });
        let mut doubled = parked.take_doubled();
        doubled.sort_unstable();
        for (number, ids) in doubled.chunk_by(|a, b| a.0 / 4 == b.0 / 4).enumerate() {
            assert!(ids.len() == 3 && ids[0].0 / 4 == number as u64, "{ids:?}");
            // The one that came first is among those of the key.
            assert!(parked.find(&(number as u64).to_le_bytes()).is_some());
        }
        assert_eq!(doubled.len() as u64, IDS * 3);
        parked.insert_found(1, SeriesId(1));
        parked.insert_found(1, SeriesId(2));
        parked.clear();
        assert!(parked.take_doubled().is_empty());
    }
}
