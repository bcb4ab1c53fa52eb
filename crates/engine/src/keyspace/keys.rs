//! The key map: from keys to series ids.
//!
//! Sharded by the hash of the key, apart from the series' state, which is
//! sharded by id: a renamed key moves no state. A lookup takes a read lock of
//! one shard. A lookup of a batch takes the lock of each shard involved once, so
//! that the memory of several keys is fetched at the same time, and takes no other
//! lock, because a lock's cache line moves between the cores of its readers.
//!
//! Lock order: shards of the map are locked inside the lock of a state shard
//! or alone, never around one; several of them in ascending order, and only
//! for reading. Tested through the database.

use crate::base::table::{Table, Tagged, tag_of};
use foldhash::fast::FixedState;
use latewood_model::SeriesId;
use parking_lot::{RwLock, RwLockReadGuard};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const SHARDS: usize = 16;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();
/// Parts of a shard that grow on their own.
const PARTS: usize = 64;
/// Keys whose memory is fetched together.
const TOGETHER: usize = 32;
/// Keys worth locking several shards at a time for.
const MANY: usize = SHARDS / 2;
/// Bits of a word beside those of an id.
const TAG_BITS: u32 = u64::BITS - SeriesId::BITS;
type Guard<'a> = RwLockReadGuard<'a, Table<Entry>>;

/// In 24 bytes: a lookup waits for its memory.
struct Entry {
    key: Arc<[u8]>,
    /// Above the kept bits of the tag.
    id: u64,
}

impl Entry {
    fn new(key: Arc<[u8]>, id: SeriesId, tag: u32) -> Self {
        debug_assert!(id.0 >> SeriesId::BITS == 0);
        let id = id.0 << TAG_BITS | u64::from(tag & Self::KEPT);
        Self { key, id }
    }

    #[inline]
    fn id(&self) -> SeriesId {
        SeriesId(self.id >> TAG_BITS)
    }
}

impl Tagged for Entry {
    const KEPT: u32 = (1 << TAG_BITS) - 1;

    #[inline]
    fn tag(&self) -> u32 {
        self.id as u32 & Self::KEPT
    }
}

/// A part of the keys, on cache lines of its own.
#[repr(align(128))]
struct Shard(RwLock<Table<Entry>>);

pub(crate) struct Keys {
    /// Number of renames, and of copies that got their key; a batch uses it to detect keys renamed meanwhile.
    pub(crate) renames: AtomicU64,
    shards: [Shard; SHARDS],
    state: FixedState,
}

impl Keys {
    /// No keys. `seed` makes the hash differ from process to process, so that
    /// nobody can prepare keys that collide.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            renames: AtomicU64::new(0),
            shards: std::array::from_fn(|_| Shard(RwLock::new(Table::new(PARTS)))),
            state: FixedState::with_seed(seed),
        }
    }

    /// The hash of `key` that the other methods take.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.state.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &RwLock<Table<Entry>> {
        &self.shards[number_of(hash)].0
    }

    /// The series under `key`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<SeriesId> {
        find(&self.shard(hash).read(), hash, key)
    }

    /// Puts the series under each of `keys`, whose hashes these are, behind
    /// `ids`.
    pub(crate) fn find_all<'a>(
        &self,
        hashes: &[u64],
        mut keys: impl Iterator<Item = &'a [u8]>,
        ids: &mut Vec<Option<SeriesId>>,
    ) {
        if hashes.len() < MANY {
            let all = hashes.iter().zip(keys);
            ids.extend(all.map(|(&hash, key)| self.find(hash, key)));
            return;
        }
        let tables = self.read_those_of(hashes);
        let table = |hash| tables[number_of(hash)].as_deref();
        for hashes in hashes.chunks(TOGETHER) {
            let mut candidates = [None; TOGETHER];
            for (candidate, &hash) in candidates.iter_mut().zip(hashes) {
                *candidate = table(hash).and_then(|table| table.touch(tag_of(hash)));
            }
            let first = |entry: &Entry| entry.key.first().copied().unwrap_or(0);
            let fetched = candidates.iter().flatten().map(|entry| first(entry));
            black_box(fetched.fold(0, |all, byte| all ^ byte));
            let all = candidates.iter().zip(hashes).zip(&mut keys);
            ids.extend(all.map(|((candidate, &hash), key)| match candidate {
                None => None,
                Some(entry) if *entry.key == *key => Some(entry.id()),
                Some(_) => table(hash).and_then(|table| find(table, hash, key)),
            }));
        }
    }

    /// The shards that keys of these hashes are in, locked.
    fn read_those_of(&self, hashes: &[u64]) -> [Option<Guard<'_>>; SHARDS] {
        let needed = hashes.iter().map(|&hash| 1u32 << number_of(hash));
        let needed = needed.fold(0, |all, one| all | one);
        let is_needed = |number: &usize| needed >> number & 1 == 1;
        let read = |number: usize| self.shards[number].0.read();
        std::array::from_fn(|number| Some(number).filter(is_needed).map(read))
    }

    /// Puts `id` under `key`, in place of what was there: that comes back.
    pub(crate) fn insert(&self, hash: u64, key: Arc<[u8]>, id: SeriesId) -> Option<SeriesId> {
        let mut shard = self.shard(hash).write();
        let tag = tag_of(hash);
        match shard.find_mut(tag, |entry| entry.key == key) {
            Some(entry) => {
                let held = std::mem::replace(entry, Entry::new(key, id, tag));
                Some(held.id())
            }
            None => {
                shard.insert(tag, Entry::new(key, id, tag));
                None
            }
        }
    }

    /// Puts `id` under `key`, which the caller knows is not there.
    pub(crate) fn add(&self, hash: u64, key: Arc<[u8]>, id: SeriesId) {
        debug_assert_eq!(self.find(hash, &key), None);
        let tag = tag_of(hash);
        let entry = Entry::new(key, id, tag);
        self.shard(hash).write().insert(tag, entry);
    }

    /// Reserves memory for `keys`, so that adding them moves none.
    pub(crate) fn reserve(&self, keys: usize) {
        for Shard(shard) in &self.shards {
            shard.write().reserve(keys / SHARDS);
        }
    }

    /// Takes `key` away if `id` is under it.
    pub(crate) fn remove(&self, hash: u64, key: &[u8], id: SeriesId) {
        let is_it = |entry: &Entry| entry.id() == id && *entry.key == *key;
        self.shard(hash).write().remove(tag_of(hash), is_it);
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.read().len()).sum()
    }

    pub(crate) fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.0.write().clear());
    }

    /// Bytes of the tables for one key, the key aside: what is free is no key's.
    pub(crate) fn bytes_of_one(&self) -> usize {
        let room = |Shard(shard): &Shard| shard.read().capacity();
        self.memory_bytes() / self.shards.iter().map(room).sum::<usize>().max(1)
    }

    /// Bytes of memory of the tables, keys aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |Shard(shard): &Shard| shard.read().memory_bytes();
        self.shards.iter().map(bytes).sum()
    }
}

/// The shard of a key. Its table uses the lower half of the hash.
#[inline]
fn number_of(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

#[inline]
fn find(table: &Table<Entry>, hash: u64, key: &[u8]) -> Option<SeriesId> {
    let found = table.find(tag_of(hash), |entry| *entry.key == *key);
    found.map(Entry::id)
}
