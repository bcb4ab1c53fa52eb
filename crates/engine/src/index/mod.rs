//! From label matchers to series.
//!
//! Whoever creates, alters or removes a series leaves the change in a queue
//! ([`queue`]); the background thread, or the first query, brings whole
//! batches of changes into the index ([`inverted`]). A query does so before it
//! begins and therefore sees every series whose creation was acknowledged
//! before, with the labels it has. A new key of a series concerns nothing
//! here: the index knows series by id.
//!
//! Invariant: the changes of one series reach the index in the order they
//! happened. They stand in one queue in that order, and only the holder of
//! `indexer` takes from queues.
//!
//! Lock order: a state shard, then `indexer`, then a queue or `inverted`,
//! never both. Whoever holds one of these takes no lock of a shard.
//!
//! Why one thread in batches: a lock for each list, taken by the writers, costs
//! as much processor time on one thread and on two, and all of it is theirs; a
//! map of lists that they share without a lock costs half as much again
//! (`benches/maps.rs`). A batch also takes series together that have the same
//! label names, and looks their pairs up together ([`inverted`]).
//!
//! Tested by `tests/labels_model.rs` against a scan, with threads too.

pub(crate) mod inverted;
pub(crate) mod order;
mod packed;
mod posting;
mod queue;
mod select;
mod symbols;

use crate::observe::stages::{Stage, Stages};
use inverted::Inverted;
use latewood_model::{Labels, SeriesId};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use queue::Queue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes in one queue that are worth waking the background thread for.
const WORTH_WAKING: usize = 512;
/// Changes in one queue, and bytes of labels, beyond which writers help.
const QUEUE_MAX: usize = 8 * 1024;
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes applied before readers of the index get their turn.
const APPLY_MAX: usize = 256;

/// The label index of a database, with what waits to get into it.
pub(crate) struct Index {
    /// One of each shard.
    queues: Box<[Mutex<Queue>]>,
    /// Some queue is longer than it should be.
    overfull: AtomicBool,
    /// Held by whoever brings changes into the index.
    indexer: Mutex<()>,
    pub(crate) inverted: RwLock<Inverted>,
    seed: u64,
    stages: Stages,
}

/// A series a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRef {
    /// Its number, which outlives a change of its key.
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

    /// Notes that a series has these labels now, or is gone. True when the
    /// background thread should hear of it. The shard's lock is held.
    pub(crate) fn note(&self, shard: usize, id: SeriesId, labels: Option<&Labels>) -> bool {
        let mut queue = self.queues[shard].lock();
        let waiting = &mut queue.waiting;
        waiting.push(id.0, labels);
        if waiting.len() > QUEUE_MAX || waiting.len_bytes() > QUEUE_BYTES_MAX {
            self.overfull.store(true, Ordering::Relaxed);
        }
        waiting.len() == WORTH_WAKING
    }

    /// Brings changes into the index if too many wait. Writers call it, best
    /// without a lock.
    #[inline]
    pub(crate) fn relieve(&self) {
        if self.overfull.load(Ordering::Relaxed) {
            self.apply();
        }
    }

    /// Brings all changes that happened before into the index.
    pub(crate) fn apply(&self) {
        let _indexer = self.indexer.lock();
        self.overfull.store(false, Ordering::Relaxed);
        for queue in &self.queues {
            let Some(batch) = queue.lock().begin() else {
                continue;
            };
            let timed = self.stages.watch();
            for start in (0..batch.len()).step_by(APPLY_MAX) {
                let mut inverted = self.inverted.write();
                let end = batch.len().min(start + APPLY_MAX);
                inverted.apply(batch.changes(start..end));
            }
            if let Some(mut timed) = timed {
                timed.end_for(Stage::IndexBatch, batch.len());
            }
            queue.lock().finish(batch);
        }
    }

    /// The labels of a series, in the order its client gave them; `None` of
    /// one that does not exist.
    pub(crate) fn labels(&self, shard: usize, id: SeriesId) -> Option<Labels> {
        let queued = self.queues[shard].lock().find(id.0);
        // What the queue no longer holds is in the index.
        queued.unwrap_or_else(|| self.inverted.read().labels(id.0))
    }

    /// Forgets everything. The locks of all shards are held.
    pub(crate) fn clear(&self) {
        let _indexer = self.indexer.lock();
        for queue in &self.queues {
            *queue.lock() = Queue::default();
        }
        let old = std::mem::replace(
            &mut *self.inverted.write(),
            Inverted::new(self.queues.len(), self.seed),
        );
        drop(old);
    }

    /// The index as of now.
    pub(crate) fn current(&self) -> RwLockReadGuard<'_, Inverted> {
        self.apply();
        self.inverted.read()
    }

    /// The number of label pairs, each counted once.
    pub(crate) fn pair_count(&self) -> usize {
        self.current().pair_count()
    }

    /// Bytes of memory it holds. Linear in the label pairs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let queued = self.queues.iter().map(|queue| queue.lock().memory_bytes());
        queued.sum::<usize>() + self.inverted.read().memory_bytes()
    }
}
