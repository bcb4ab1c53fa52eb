//! The part of a series beyond its head: samples in blocks, and changes of them.
//!
//! A flush *freezes* a series: everything in its head moves into a [`Frozen`] that
//! readers still see, while it is written into a block. Once the block is
//! published, readers find the samples there and the frozen copy is dropped. From
//! then on, samples at or before the newest flushed timestamp are *deep late*: they
//! wait as operations with their policies, and deletions wait as spans, until a
//! later flush writes them as overlays. A write reads no block, unless a policy
//! must know the stored samples; as it holds the lock of its shard, it does not wait
//! for a block that is not on this machine, but fails with `Away`.
//!
//! Invariants:
//! 1. `last` is no older than any sample in blocks or frozen, and never moves back.
//!    The head holds chunks and tail after it; deep operations and deleted spans
//!    are at or before it.
//! 2. Deletions of the head are older than its deep operations: a deletion removes
//!    the operations in its span at once.
//! 3. A frozen head counts while the current blocks lack its flush.
//!
//! A database that follows the log of another freezes where that did, and gets the blocks later,
//! with a checkpoint that may hold one flush and not the next. So it keeps what it froze for each
//! flush apart: the newest [`Frozen`] has all of them, and leads to the same without the oldest.
//!
//! Tested by `series/tests.rs` against a naive map and by the model test.

use super::late::{Late, LateOp, SharedLate};
use super::over::Over;
use super::spans::Spans;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape};
use crate::io::waiting::no_wait;
use crate::storage::block::{BlockSet, CurrentBlocks, Overlay, StoredChunk};
use crate::storage::files::late_tally::LateTally;
use latewood_model::{SeriesId, Timestamp};
use std::sync::Arc;

/// A head that is being flushed. It never changes.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The flush that writes it, or the first of it.
    pub(crate) flush: u64,
    /// The same without what that flush writes, if there are several.
    pub(super) later: Option<Arc<Frozen>>,
    /// How its operations must be divided and encoded.
    pub(crate) shape: Shape,
    /// Samples newer than all flushed before, ascending.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Deletions, older than all operations.
    pub(crate) deleted: Spans,
    /// Operations by timestamp, equal ones in arrival order.
    pub(crate) ops: Vec<LateOp>,
}

impl Frozen {
    /// Whether a sample exists at `timestamp`; `None` if that depends on the
    /// blocks. Logarithmic.
    fn says(&self, timestamp: Timestamp) -> Result<Option<bool>> {
        let find = |op: &LateOp| op.timestamp.cmp(&timestamp);
        if self.ops.binary_search_by(find).is_ok() {
            return Ok(Some(true));
        }
        if self.deleted.covers(timestamp) {
            return Ok(Some(false));
        }
        let after = self
            .chunks
            .partition_point(|chunk| chunk.first() <= timestamp);
        match self.chunks[..after].last() {
            Some(chunk) if timestamp <= chunk.last() => chunk.exists(timestamp).map(Some),
            _ => Ok(None),
        }
    }

    /// What is in no flush up to `flush`.
    pub(super) fn after(self: &Arc<Self>, flush: u64) -> Option<&Arc<Self>> {
        let mut frozen = self;
        while frozen.flush <= flush {
            frozen = frozen.later.as_ref()?;
        }
        Some(frozen)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.memory_bytes()).sum();
        let later = self.later.as_ref();
        chunks + self.own_bytes() + later.map_or(0, |later| later.bytes_beside())
    }

    /// Without the chunks, which an earlier one has.
    fn bytes_beside(&self) -> usize {
        let later = self.later.as_ref();
        self.own_bytes() + later.map_or(0, |later| later.bytes_beside())
    }

    fn own_bytes(&self) -> usize {
        let ops = self.ops.capacity() * size_of::<LateOp>();
        size_of::<Self>() + ops + self.deleted.memory_bytes()
    }
}

/// The part of a series that is in blocks or in a flush.
#[derive(Debug)]
pub(crate) struct Stored {
    id: SeriesId,
    /// Newest timestamp ever flushed.
    pub(super) last: Timestamp,
    /// The value of the series' newest sample, if it is known and the sample is not
    /// in the head.
    pub(super) newest_value: Option<f64>,
    pub(super) deep: Option<Box<Late>>,
    pub(super) deleted: Spans,
    pub(super) frozen: Option<Arc<Frozen>>,
    blocks: Arc<CurrentBlocks>,
}

/// What a restart needs of a series beside its options and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Persisted {
    /// Timestamp of the newest sample.
    pub(crate) newest: Option<Timestamp>,
    /// Its value, where it is known.
    pub(crate) newest_value: Option<f64>,
    /// Newest timestamp ever flushed.
    pub(crate) flushed_last: Option<Timestamp>,
    /// Some value may be NaN.
    pub(crate) holds_nan: bool,
    /// What came late.
    pub(crate) late: LateTally,
}

/// The stored part as a reader takes it under the shard's lock. No file is read
/// before [`StoredSpan::find`].
#[derive(Clone)]
pub(crate) struct StoredSpan {
    id: SeriesId,
    from: Timestamp,
    to: Timestamp,
    blocks: Arc<BlockSet>,
    frozen: Option<Arc<Frozen>>,
    deleted: Spans,
    deep: SharedLate,
}

/// A span of the stored part, after the search in the blocks' indexes.
#[derive(Default)]
pub(crate) struct StoredParts {
    /// Base chunks in blocks, ascending; they may reach beyond the span.
    pub(crate) base: Vec<StoredChunk>,
    /// Frozen chunks, newer than those.
    pub(crate) held: Vec<Arc<Chunk>>,
    /// Operations over them.
    pub(crate) over: Over,
    /// Deleted spans of the base samples.
    pub(crate) deleted: Spans,
}

impl StoredSpan {
    /// Bytes of memory that it holds beside itself and what it shares with the series.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.deleted.memory_bytes() + self.deep.memory_bytes()
    }

    /// The span narrowed to `from..=to`; `None` if nothing is left.
    pub(crate) fn narrow(&self, from: Timestamp, to: Timestamp) -> Option<Self> {
        let (from, to) = (from.max(self.from), to.min(self.to));
        (from <= to).then(|| Self {
            from,
            to,
            ..self.clone()
        })
    }

    /// Its oldest and newest timestamp.
    pub(crate) fn span(&self) -> (Timestamp, Timestamp) {
        (self.from, self.to)
    }

    /// Whether blocks that may have samples of it are not on this machine.
    pub(crate) fn is_away(&self) -> bool {
        self.blocks.is_away(Some(self.id), self.from, self.to)
    }

    /// Fetches the blocks that may have samples of it.
    ///
    /// # Errors
    /// `Away`.
    pub(crate) fn fetch(&self) -> Result<()> {
        self.blocks.fetch(self.id, self.from, self.to)
    }

    /// Estimated maximum of the samples; reads no file.
    pub(crate) fn samples(&self) -> u64 {
        let frozen = self.frozen.iter().flat_map(|frozen| &frozen.chunks);
        let frozen: usize = frozen.map(|chunk| chunk.count()).sum();
        self.blocks.samples_about(self.id, self.from, self.to) + (frozen + self.deep.len()) as u64
    }

    /// Spans that contain all timestamps, also outside its own; reads no file.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let frozen = self.frozen.iter();
        let frozen = frozen.flat_map(|frozen| {
            let chunks = frozen.chunks.iter();
            let ops = frozen.ops.first().zip(frozen.ops.last());
            chunks
                .map(|chunk| (chunk.first(), chunk.last()))
                .chain(ops.map(|(first, last)| (first.timestamp, last.timestamp)))
        });
        self.blocks
            .spans(self.id)
            .chain(frozen)
            .chain(self.deep.spans())
    }

    /// An upper bound of its newest base sample, from the indexes of the blocks;
    /// the end of the span if they cannot be read.
    pub(crate) fn newest_bound(&self) -> Timestamp {
        let layers = self.blocks.layers(self.id, self.from, self.to);
        let last = layers.map(|layers| layers.base.last().map(|stored| stored.entry.last));
        last.ok()
            .flatten()
            .map_or(self.to, |last| last.min(self.to))
    }

    /// Finds the span in the blocks. Reads index pages, but no chunk and no
    /// overlay. Linear in the chunks of the span.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, naming the file.
    pub(crate) fn find(self) -> Result<StoredParts> {
        let (from, to) = (self.from, self.to);
        let layers = self.blocks.layers(self.id, from, to)?;
        let mut deleted = self.deleted.clone();
        for overlay in &layers.overlays {
            if let Overlay::Delete(from, to) = overlay {
                deleted.add(*from, *to);
            }
        }
        let mut held = Vec::new();
        if let Some(frozen) = &self.frozen {
            let reached = frozen
                .chunks
                .iter()
                .filter(|chunk| chunk.last() >= from && chunk.first() <= to);
            held.extend(reached.cloned());
            deleted.add_all(&frozen.deleted);
        }
        let mut base = layers.base;
        base.retain(|stored| !deleted.covers_all(stored.entry.first, stored.entry.last));
        held.retain(|chunk| !deleted.covers_all(chunk.first(), chunk.last()));
        Ok(StoredParts {
            base,
            held,
            over: Over::stored(from, layers.overlays, self.frozen, self.deleted, self.deep),
            deleted,
        })
    }
}

impl StoredParts {
    /// The last base chunk that may have a sample at `timestamp`.
    fn chunk_at(&self, timestamp: Timestamp) -> Result<Option<Arc<Chunk>>> {
        if self.deleted.covers(timestamp) {
            return Ok(None);
        }
        match (self.held.last(), self.base.last()) {
            (Some(chunk), _) => Ok(Some(chunk.clone())),
            (None, Some(stored)) => stored.load_cached().map(Some),
            (None, None) => Ok(None),
        }
    }
}

impl Stored {
    /// The stored part of a series; `last` is its newest flushed timestamp, if any.
    pub(super) fn new(id: SeriesId, last: Option<Timestamp>, blocks: &Arc<CurrentBlocks>) -> Self {
        Self {
            id,
            last: last.unwrap_or(Timestamp::MIN),
            newest_value: None,
            deep: None,
            deleted: Spans::default(),
            frozen: None,
            blocks: blocks.clone(),
        }
    }

    /// What a reader of `from..=to` needs; `None` if the span is newer than the
    /// stored part.
    pub(crate) fn span(&self, from: Timestamp, to: Timestamp) -> Option<StoredSpan> {
        let to = to.min(self.last);
        if from > to {
            return None;
        }
        let blocks = self.blocks.get();
        let from = from.max(blocks.floor);
        if from > to {
            return None;
        }
        let frozen = self.frozen_after(blocks.flush).cloned();
        Some(StoredSpan {
            id: self.id,
            from,
            to,
            frozen,
            deleted: self.deleted.met(from, to),
            deep: match &self.deep {
                Some(deep) => deep.share(from, to),
                None => SharedLate::default(),
            },
            blocks,
        })
    }

    /// What is frozen and in no flush up to `flush`.
    pub(super) fn frozen_after(&self, flush: u64) -> Option<&Arc<Frozen>> {
        self.frozen.as_ref()?.after(flush)
    }

    pub(crate) fn last(&self) -> Timestamp {
        self.last
    }

    pub(crate) fn newest_value(&self) -> Option<f64> {
        self.newest_value
    }

    pub(crate) fn set_newest_value(&mut self, value: Option<f64>) {
        self.newest_value = value;
    }

    /// Stages an operation at or before `last`.
    pub(crate) fn push(&mut self, op: LateOp) {
        self.deep.get_or_insert_default().push(op);
    }

    /// Operations that wait for a flush.
    pub(crate) fn pending(&self) -> usize {
        self.deep.as_ref().map_or(0, |deep| deep.pending())
    }

    /// Operations that arrived since the last flush.
    pub(crate) fn pushed(&self) -> u64 {
        self.deep.as_ref().map_or(0, |deep| deep.pushed())
    }

    pub(crate) fn has_news(&self) -> bool {
        self.deep.is_some() || !self.deleted.is_empty()
    }

    /// Deletes `from..=to`, which must be at or before `last`.
    pub(crate) fn delete(&mut self, from: Timestamp, to: Timestamp) {
        self.deleted.add(from, to);
        if let Some(deep) = &mut self.deep {
            deep.remove_span(from, to);
            if deep.pending() == 0 {
                self.deep = None;
            }
        }
    }

    /// Whether a sample exists at `timestamp`: asks the layers from the newest to
    /// the oldest, until one decides. Reads the index of each block that may hold
    /// it, and at most one chunk for each entry that spans it.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, naming the file.
    pub(crate) fn exists(&mut self, timestamp: Timestamp) -> Result<bool> {
        if let Some(deep) = &mut self.deep
            && deep.holds(timestamp)
        {
            return Ok(true);
        }
        let blocks = self.blocks.get();
        if timestamp < blocks.floor || self.deleted.covers(timestamp) {
            return Ok(false);
        }
        if let Some(frozen) = self.frozen_after(blocks.flush)
            && let Some(says) = frozen.says(timestamp)?
        {
            return Ok(says);
        }
        let _locked = no_wait();
        blocks.exists(self.id, timestamp)
    }

    /// The value at `timestamp`, which must be at or before `last`.
    pub(crate) fn value_at(&self, timestamp: Timestamp) -> Result<Option<f64>> {
        let Some(span) = self.span(timestamp, timestamp) else {
            return Ok(None);
        };
        let _locked = no_wait();
        let parts = span.find()?;
        let base = match parts.chunk_at(timestamp)? {
            Some(chunk) => chunk.value_at(timestamp)?,
            None => None,
        };
        let apply = |value: Option<f64>, op: &LateOp| Some(op.apply(value));
        let ops = parts.over.read(timestamp, timestamp)?;
        Ok(ops.iter().fold(base, apply))
    }

    /// Bytes of memory it holds, the frozen head included.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.deleted.memory_bytes() + self.frozen_bytes()
    }

    /// The bytes that a flush would free, in constant time.
    pub(super) fn deep_held_bytes(&self) -> usize {
        self.deep.as_ref().map_or(0, |deep| deep.held_bytes())
    }

    /// Bytes of the operations that wait.
    pub(crate) fn deep_bytes(&self) -> usize {
        self.deep.as_ref().map_or(0, |deep| deep.memory_bytes())
    }

    fn frozen_bytes(&self) -> usize {
        let frozen = self.frozen.as_ref();
        frozen.map_or(0, |frozen| frozen.memory_bytes())
    }
}
