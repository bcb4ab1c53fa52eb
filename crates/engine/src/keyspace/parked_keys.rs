//! Which ids parked series have that may be under a key.
//!
//! The keys themselves are in files. Of each there is a *fingerprint* here, 36 bits of its hash (four
//! name the shard), with the id of its series: 8 bytes in a table that is nearly full, which keeps one of
//! them in memory where there are more than a few million ([`super::dense`]), and 12 where a database has
//! given more than 2^32 ids. A fingerprint that is not here proves that no parked series has the key; one
//! that is says which rows to read. The hash is the one that the files hold, with the seed of the database
//! ([`crate::base::key_hash`]): so a start needs no key, nobody can prepare keys of one fingerprint, and
//! of a thousand new keys beside a hundred million parked ones one or two have that of another. The
//! hash is another one than that of the key map, and is made only where that lacks a key.
//!
//! Sharded like the key map ([`super::keys`]), whose order of locks it shares. Tested below and by
//! the tests of parked series.

use crate::base::error::{Error, Result};
use crate::base::key_hash::key_hash;
use crate::base::names;
use crate::base::table::{Table, Tagged, tag_of};
use crate::io::Env;
use crate::io::small::Context;
use crate::keyspace::dense::{Dense, Scratch};
use crate::observe::notices::{About, Notices};
use latewood_model::SeriesId;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 16;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();
/// Parts of a shard that grow on their own. Each may have a file open: 128 together, of the descriptors
/// that sockets leave.
const PARTS: usize = 8;
/// A part with this many places keeps its entries in a file; smaller ones take 32 MiB of memory together.
const IN_MEMORY_PLACES: usize = if cfg!(test) { 1 } else { 32 * 1024 };

/// A fingerprint with an id from 2^32 on, of which these are the upper and the lower bits.
#[derive(Clone, Copy)]
struct Far {
    tag: u32,
    high: u32,
    low: u32,
}

impl Tagged for Far {
    fn tag(&self) -> u32 {
        self.tag
    }
}

impl Far {
    fn new(tag: u32, id: SeriesId) -> Self {
        let (high, low) = ((id.0 >> u32::BITS) as u32, id.0 as u32);
        Self { tag, high, low }
    }

    fn id(&self) -> SeriesId {
        SeriesId(u64::from(self.high) << u32::BITS | u64::from(self.low))
    }
}

/// Those of a shard.
struct Prints {
    /// With ids below 2^32.
    near: Dense,
    /// The others, and those that could not be written to a file.
    far: Table<Far>,
    /// What could not be read to be taken out, and counts no more.
    stale: Vec<(u32, SeriesId)>,
}

impl Prints {
    fn new(scratch: Scratch) -> Self {
        Self {
            near: Dense::new(PARTS, scratch),
            far: Table::new(PARTS),
            stale: Vec::new(),
        }
    }

    #[inline]
    fn find(&self, tag: u32) -> io::Result<Option<SeriesId>> {
        self.find_beside(tag, &[])
    }

    /// One that is not among `known`.
    #[inline]
    fn find_beside(&self, tag: u32, known: &[SeriesId]) -> io::Result<Option<SeriesId>> {
        let counts = |id: SeriesId| !known.contains(&id) && !self.stale.contains(&(tag, id));
        let found = self.near.find(tag, |id| counts(SeriesId(id.into())))?;
        Ok(match found {
            Some(id) => Some(SeriesId(id.into())),
            None => {
                let far = self.far.find(tag, |far| !known.contains(&far.id()));
                far.map(Far::id)
            }
        })
    }

    /// All that there are of a tag.
    fn find_all(&self, tag: u32) -> io::Result<Vec<SeriesId>> {
        let mut found = Vec::new();
        while let Some(id) = self.find_beside(tag, &found)? {
            found.push(id);
        }
        Ok(found)
    }

    /// Adds it, to what is in memory where the error says why a file cannot be written.
    fn insert(&mut self, tag: u32, id: SeriesId) -> io::Result<()> {
        if let Some(at) = self.stale.iter().position(|stale| *stale == (tag, id)) {
            self.stale.swap_remove(at);
            return Ok(());
        }
        let written = near(id).map(|id| self.near.insert(tag, id));
        if !matches!(written, Some(Ok(()))) {
            self.far.insert(tag, Far::new(tag, id));
        }
        written.unwrap_or(Ok(()))
    }

    /// Returns whether it was there.
    fn remove(&mut self, tag: u32, id: SeriesId) -> bool {
        if self.far.remove(tag, |far| far.id() == id).is_some() {
            return true;
        }
        let Some(number) = near(id) else {
            return false;
        };
        self.near.remove(tag, number).unwrap_or_else(|_| {
            self.stale.push((tag, id));
            true
        })
    }
}

/// An id that a table of short entries has place for.
fn near(id: SeriesId) -> Option<u32> {
    u32::try_from(id.0).ok().filter(|id| *id < u32::MAX)
}

/// A part of the fingerprints, on cache lines of its own.
#[repr(align(128))]
struct Shard(RwLock<Prints>);

pub(crate) struct ParkedKeys {
    shards: [Shard; SHARDS],
    /// That of the hashes in the files; see [`ParkedKeys::set_seed`].
    seed: AtomicU64,
    len: AtomicUsize,
    /// How often a key came.
    came: AtomicU64,
    /// Series that a start found whose fingerprint was there already.
    doubled: Mutex<Vec<SeriesId>>,
    notices: Notices,
    /// The directory of the database.
    dir: PathBuf,
}

impl ParkedKeys {
    /// Without keys, of a database in this directory.
    pub(crate) fn new(env: &Env, dir: &Path, notices: &Notices) -> Self {
        let shard = |number| {
            let scratch = Scratch {
                disk: env.disk.clone(),
                path: names::parked_keys(dir, number),
                from_places: IN_MEMORY_PLACES,
            };
            Shard(RwLock::new(Prints::new(scratch)))
        };
        Self {
            shards: std::array::from_fn(shard),
            seed: AtomicU64::new(0),
            len: AtomicUsize::new(0),
            came: AtomicU64::new(0),
            doubled: Mutex::default(),
            notices: notices.clone(),
            dir: dir.to_owned(),
        }
    }

    fn shard(&self, hash: u64) -> &RwLock<Prints> {
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
    ///
    /// # Errors
    /// `Io` if its fingerprint cannot be read.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<SeriesId>> {
        if self.is_empty() {
            return Ok(None);
        }
        let hash = self.hash(key);
        let found = self.shard(hash).read().find(tag_of(hash));
        found.context("cannot read the keys of parked series", &self.dir)
    }

    /// All parked series that may have this key.
    ///
    /// # Errors
    /// `Io` if its fingerprint cannot be read.
    pub(crate) fn find_all(&self, key: &[u8]) -> Result<Vec<SeriesId>> {
        let hash = self.hash(key);
        let found = self.shard(hash).read().find_all(tag_of(hash));
        found.context("cannot read the keys of parked series", &self.dir)
    }

    /// Adds the key of a series that is parked. Call it before the key map lets go of the key.
    pub(crate) fn insert(&self, key: &[u8], id: SeriesId) {
        self.insert_hashed(self.hash(key), id);
    }

    /// The same for what a start finds in files, of which it has the hash of the key alone and which
    /// come in any order: two series may have one key, where files or log lost something. It is found from
    /// [`ParkedKeys::settle`] on.
    pub(crate) fn insert_found(&self, hash: u64, id: SeriesId) {
        let Some(number) = near(id) else {
            if self.insert_hashed(hash, id) {
                self.doubled.lock().push(id);
            }
            return;
        };
        self.came.fetch_add(1, Ordering::Release);
        let gathered = self.shard(hash).write().near.gather(tag_of(hash), number);
        self.len.fetch_add(1, Ordering::Release);
        self.tell(gathered);
    }

    /// Ends a time of [`ParkedKeys::insert_found`], with this many threads.
    ///
    /// # Errors
    /// `Io` if what was found cannot be read again.
    pub(crate) fn settle(&self, threads: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(Shard(shard)) = self.shards.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Prints { near, far, .. } = &mut *shard.write();
                let written = near.settle(|tag, number, is_twin| {
                    if is_twin || far.touch(tag).is_some() {
                        self.doubled.lock().push(SeriesId(number.into()));
                    }
                });
                let written =
                    written.context("cannot read the keys of parked series", &self.dir)?;
                self.tell(written);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let first = work();
            let join = |other: std::thread::ScopedJoinHandle<'_, Result<()>>| match other.join() {
                Ok(settled) => settled,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            others.into_iter().map(join).fold(first, Result::and)
        })
    }

    /// Returns whether there was one of the same fingerprint, as far as can be read.
    fn insert_hashed(&self, hash: u64, id: SeriesId) -> bool {
        self.came.fetch_add(1, Ordering::Release);
        let mut shard = self.shard(hash).write();
        let is_doubled = !matches!(shard.find(tag_of(hash)), Ok(None));
        let inserted = shard.insert(tag_of(hash), id);
        self.len.fetch_add(1, Ordering::Release);
        drop(shard);
        self.tell(inserted);
        is_doubled
    }

    /// Tells of entries that could not be written.
    fn tell(&self, written: io::Result<()>) {
        // Tries that are left out after one that failed say nothing new.
        if let Err(error) = written
            && error.kind() != io::ErrorKind::ResourceBusy
        {
            let what = "cannot write keys of parked series, which stay in memory";
            let error = Error::io(what, &self.dir, error);
            self.notices.tell(About::ParkedKeys, error);
        }
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
        if self.shard(hash).write().remove(tag_of(hash), id) {
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
            let len = shard.near.len() + shard.far.len() - shard.stale.len();
            self.len.fetch_sub(len, Ordering::Release);
            shard.near.clear();
            shard.far.clear();
            shard.stale.clear();
        }
        self.doubled.lock().clear();
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |Shard(shard): &Shard| {
            let prints = shard.read();
            prints.near.memory_bytes() + prints.far.memory_bytes()
        };
        self.shards.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::NoticeHook;
    use crate::io::sim::{Fault, Op, SimDisk, Trouble};
    use std::sync::Arc;

    fn in_memory() -> ParkedKeys {
        ParkedKeys::new(&Env::without_files(), Path::new("/"), &Notices::default())
    }

    #[test]
    fn keys_of_one_fingerprint_are_all_found_and_memory_comes_back() {
        let parked = in_memory();
        parked.set_seed(7);
        let key = |number: u64| number.to_le_bytes();
        // Below and above 2^32.
        let id = |number: u64| SeriesId(number << (number % 2 * 20));
        (0..50_000).for_each(|number| parked.insert(&key(number), id(number)));
        // Another key with the same bits.
        parked.insert(&key(3), id(60_000));
        assert_eq!(parked.len(), 50_001);
        for number in 4..50_000 {
            assert_eq!(parked.find(&key(number)).unwrap(), Some(id(number)));
        }
        assert_eq!(
            (50_000..100_000).find_map(|number| parked.find(&key(number)).unwrap()),
            None
        );
        let mut all = parked.find_all(&key(3)).unwrap();
        let mut found = Vec::new();
        while let Some(id) = parked.find(&key(3)).unwrap() {
            found.push(id);
            parked.remove(&key(3), id);
        }
        for found in [&mut all, &mut found] {
            found.sort_unstable();
            assert_eq!(*found, [id(60_000), id(3)]);
        }
        assert!(parked.find_all(&key(3)).unwrap().is_empty());
        // One that is not there.
        parked.remove(&key(3), id(3));
        assert_eq!(parked.len(), 49_999);
        let full = parked.memory_bytes();
        assert!(full < 49_999 * 22, "{full}");
        parked.clear();
        assert!(parked.is_empty() && parked.memory_bytes() < full / 10);
    }

    #[test]
    fn what_threads_find_of_one_key_is_doubled_but_for_one() {
        const IDS: u64 = 1_000;
        let parked = in_memory();
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
        parked.settle(2).unwrap();
        let mut doubled = parked.take_doubled();
        doubled.sort_unstable();
        for (number, ids) in doubled.chunk_by(|a, b| a.0 / 4 == b.0 / 4).enumerate() {
            assert!(ids.len() == 3 && ids[0].0 / 4 == number as u64, "{ids:?}");
            // The one that came first is among those of the key.
            let found = parked.find(&(number as u64).to_le_bytes()).unwrap();
            assert!(found.is_some());
        }
        assert_eq!(doubled.len() as u64, IDS * 3);
        // Ids that have no place among the others meet them, too.
        parked.insert_found(1, SeriesId(1 << 40));
        parked.insert_found(1, SeriesId(1));
        parked.settle(1).unwrap();
        assert_eq!(parked.take_doubled(), [SeriesId(1)]);
        parked.insert_found(1, SeriesId(2));
        parked.settle(1).unwrap();
        parked.clear();
        assert!(parked.take_doubled().is_empty());
    }

    #[test]
    fn a_key_that_cannot_be_read_is_an_error_and_no_key_that_is_not_there() {
        let disk = SimDisk::new();
        let (said, env) = (Arc::new(Mutex::new(Vec::new())), disk.env(1));
        let heard = said.clone();
        let hook = NoticeHook::new(move |text| heard.lock().push(text.to_owned()));
        let notices = Notices::new(Some(&hook), &env.clock);
        let parked = ParkedKeys::new(&env, Path::new("/"), &notices);
        parked.set_seed(7);
        let fail = |op, times| {
            let trouble = Trouble::Fail(io::ErrorKind::Other);
            (0..times).for_each(|after| {
                let op = Some(op);
                disk.plan(Fault { op, after, trouble });
            });
        };
        let key = |number: u64| number.to_le_bytes();
        (0..5_000).for_each(|number| parked.insert(&key(number), SeriesId(number)));
        fail(Op::Read, 1);
        assert!(parked.find(&key(3)).is_err());
        assert_eq!(parked.find(&key(3)).unwrap(), Some(SeriesId(3)));
        // What cannot be written stays in memory.
        fail(Op::Write, 1);
        assert!(said.lock().is_empty());
        parked.insert(&key(5_000), SeriesId(5_000));
        assert!(said.lock()[0].starts_with("cannot write keys of parked series"));
        disk.heal();
        assert_eq!(parked.find(&key(5_000)).unwrap(), Some(SeriesId(5_000)));
        // What cannot be read is taken out all the same, and may come back.
        fail(Op::Read, 1);
        parked.remove(&key(4), SeriesId(4));
        disk.heal();
        assert_eq!((parked.find(&key(4)).unwrap(), parked.len()), (None, 5_000));
        parked.insert(&key(4), SeriesId(4));
        assert_eq!(parked.find(&key(4)).unwrap(), Some(SeriesId(4)));
        for number in 0..=5_000 {
            parked.remove(&key(number), SeriesId(number));
        }
        assert_eq!((parked.len(), parked.find(&key(4)).unwrap()), (0, None));
    }
}
