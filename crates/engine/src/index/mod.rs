//! The label index: from label matchers to series.
//!
//! Creating, altering or removing a series adds the change to a queue ([`queue`]).
//! The background thread, or the first query, applies the changes to the index
//! ([`inverted`]) in batches. A query applies them before it begins and therefore
//! sees every series whose creation was acknowledged before, with its current
//! labels. Renaming a series does not affect the index, which identifies series by
//! id.
//!
//! The labels of a parked series are in a file: the index only knows that ([`filed`]). Each series is
//! at any moment, under one hold of `inverted`, in memory, filed, or nowhere. A query takes what it
//! finds in memory and a copy of the rest from one hold, then reads the files without it.
//!
//! Invariant: the changes of one series reach the index in the order they happened.
//! They are in one queue in that order, and only the holder of `indexer` takes from
//! queues.
//!
//! Lock order: a state shard, then `indexer`, then a queue or `inverted`, never
//! both. A holder of one of these takes no lock of a shard.
//!
//! Why one thread in batches: with a lock for each list, taken by the writers, the
//! processor time is the same but is spent by the writers; a lock-free map of lists
//! costs half as much again (`benches/maps.rs`). A batch also groups series with
//! the same label names, and looks up their pairs together ([`inverted`]).
//!
//! Tested by `tests/labels_model.rs` against a scan, with threads too.

pub(crate) mod filed;
pub(crate) mod ids;
pub(crate) mod inverted;
pub(crate) mod order;
mod packed;
mod posting;
pub(crate) mod queue;
mod select;
mod symbols;

use crate::observe::stages::{Stage, Stages};
use crate::storage::files::parked::ParkedFiles;
use inverted::Inverted;
use latewood_model::{Labels, SeriesId};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use queue::{Held, Queue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes in one queue that are worth waking the background thread for.
const WORTH_WAKING: usize = 512;
/// Changes in one queue, and bytes of labels, above which writers apply them.
const QUEUE_MAX: usize = 8 * 1024;
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes applied before the lock is released for readers of the index.
const APPLY_MAX: usize = 256;

/// The label index of a database, with the changes that wait.
pub(crate) struct Index {
    /// One queue for each shard.
    queues: Box<[Mutex<Queue>]>,
    /// Some queue exceeds its limit.
    overfull: AtomicBool,
    /// Held while changes are applied to the index.
    indexer: Mutex<()>,
    pub(crate) inverted: RwLock<Inverted>,
    seed: u64,
    stages: Stages,
}

/// A series a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRef {
    /// Its id, which outlives a change of its key.
    pub id: SeriesId,
    /// Its key at the moment it was found.
    pub key: Arc<[u8]>,
}

impl Index {
    /// An empty index. `seed` makes hashes differ from process to process.
    pub(crate) fn new(shards: usize, seed: u64, stages: Stages) -> Self {
        Self {
            queues: (0..shards).map(|_| Mutex::default()).collect(),
            overfull: AtomicBool::new(false),
            indexer: Mutex::new(()),
            inverted: RwLock::new(Inverted::new(shards, seed)),
            seed,
            stages,
        }
    }

    /// Records where the labels of a series are from now on. Returns `true`
    /// if the background thread should be woken. The shard's lock is held.
    pub(crate) fn note(&self, shard: usize, id: SeriesId, held: Held<&Labels>) -> bool {
        let mut queue = self.queues[shard].lock();
        queue.noted += 1;
        let waiting = &mut queue.waiting;
        waiting.push(id.0, held);
        if waiting.len() > QUEUE_MAX || waiting.len_bytes() > QUEUE_BYTES_MAX {
            self.overfull.store(true, Ordering::Relaxed);
        }
        waiting.len() == WORTH_WAKING
    }

    /// How many changes were noted: as long as it stays, so do the labels of all series.
    pub(crate) fn version(&self) -> u64 {
        self.queues.iter().map(|queue| queue.lock().noted).sum()
    }

    /// Applies changes to the index if too many wait. Writers call it, preferably
    /// without a lock.
    #[inline]
    pub(crate) fn relieve(&self) {
        if self.overfull.load(Ordering::Relaxed) {
            self.apply();
        }
    }

    /// Applies all changes that happened before to the index.
    pub(crate) fn apply(&self) {
        self.apply_all(&self.indexer.lock());
    }

    fn apply_all(&self, _indexer: &MutexGuard<'_, ()>) {
        self.overfull.store(false, Ordering::Relaxed);
        for queue in &self.queues {
            let Some(batch) = queue.lock().begin() else {
                continue;
            };
            let mut timer = self.stages.watch();
            for start in (0..batch.len()).step_by(APPLY_MAX) {
                let mut inverted = self.inverted.write();
                let end = batch.len().min(start + APPLY_MAX);
                inverted.apply(batch.changes(start..end));
            }
            timer.end_for(Stage::IndexBatch, batch.len());
            queue.lock().finish(batch);
        }
    }

    /// Replaces the files of parked series by those that the manifest names now. What they say of
    /// series has to be noted before they are made, and that series are in them after this.
    pub(crate) fn set_files(&self, files: Arc<ParkedFiles>) {
        let indexer = self.indexer.lock();
        self.apply_all(&indexer);
        let old = self.inverted.write().filed.set_files(files);
        // They may be closed, which readers need not wait for.
        drop(old);
    }

    /// The labels of a series, in the order its client gave them, if they are in memory.
    pub(crate) fn labels(&self, shard: usize, id: SeriesId) -> Held<Labels> {
        let queued = self.queues[shard].lock().find(id.0);
        // Changes that are no longer in the queue are in the index.
        queued.unwrap_or_else(|| self.inverted.read().labels(id.0))
    }

    /// Removes everything. The locks of all shards are held.
    pub(crate) fn clear(&self) {
        let _indexer = self.indexer.lock();
        for queue in &self.queues {
            queue.lock().clear();
        }
        let old = std::mem::replace(
            &mut *self.inverted.write(),
            Inverted::new(self.queues.len(), self.seed),
        );
        drop(old);
    }

    /// The index with all changes applied.
    pub(crate) fn current(&self) -> RwLockReadGuard<'_, Inverted> {
        self.apply();
        self.inverted.read()
    }

    /// Bytes of memory it holds. Linear in the label pairs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let queued = self.queues.iter().map(|queue| queue.lock().memory_bytes());
        queued.sum::<usize>() + self.inverted.read().memory_bytes()
    }
}
