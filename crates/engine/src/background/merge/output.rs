//! The files that a merge writes.
//!
//! They are garbage until the manifest names them: outputs that are dropped
//! before [`Outputs::keep`] is called remove their files. Tested by `tests/merge`.

use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::io::Env;
use crate::storage::block::{BlockMeta, BlockWriter, Family, Kind};
use latewood_model::{SeriesId, Timestamp};
use std::path::PathBuf;

/// Where a merge writes its files.
pub(crate) struct Target<'a> {
    pub(crate) env: &'a Env,
    /// A new number and the path of its block.
    pub(crate) new_file: &'a dyn Fn() -> (u64, PathBuf),
    /// Called with the number of bytes written; an error ends the merge.
    pub(crate) on_written: &'a dyn Fn(u64) -> Result<()>,
}

/// All files of one merge.
pub(crate) struct Outputs<'a> {
    target: Target<'a>,
    paths: Vec<PathBuf>,
}

/// A block that is created on its first entry.
pub(crate) struct Slot {
    partition: u32,
    family: Family,
    writer: Option<BlockWriter>,
}

/// Base blocks of adjacent time ranges: a chunk goes to the last block that
/// begins at or before it, so the chunks of a series ascend over all blocks.
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// First timestamps of all blocks but the first.
    borders: Vec<Timestamp>,
}

impl<'a> Outputs<'a> {
    pub(crate) fn new(target: Target<'a>) -> Self {
        Self {
            target,
            paths: Vec::new(),
        }
    }

    /// Keeps the files: they are in the manifest, or may be.
    pub(crate) fn keep(mut self) {
        self.paths.clear();
    }

    pub(crate) fn chunk(
        &mut self,
        slot: &mut Slot,
        id: SeriesId,
        kind: Kind,
        chunk: &Chunk,
    ) -> Result<()> {
        self.writer(slot)?.chunk(id, kind, chunk)?;
        (self.target.on_written)(chunk.size_bytes() as u64)
    }

    pub(crate) fn base_chunk(
        &mut self,
        slots: &mut Slots,
        id: SeriesId,
        chunk: &Chunk,
    ) -> Result<()> {
        let place = slots.borders.partition_point(|&at| at <= chunk.first());
        self.chunk(&mut slots.slots[place], id, Kind::Base, chunk)
    }

    pub(crate) fn tombstone(
        &mut self,
        slot: &mut Slot,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<()> {
        self.writer(slot)?.tombstone(id, from, to)
    }

    /// The writer of `slot`, created on first use.
    fn writer<'s>(&mut self, slot: &'s mut Slot) -> Result<&'s mut BlockWriter> {
        if slot.writer.is_none() {
            let (number, path) = (self.target.new_file)();
            self.paths.push(path.clone());
            let env = self.target.env;
            slot.writer = Some(BlockWriter::create(
                env,
                &path,
                number,
                slot.partition,
                slot.family,
            )?);
        }
        Ok(slot.writer.as_mut().expect("it was begun just now"))
    }
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            // The next start removes files that cannot be removed now.
            let _ = self.target.env.disk.remove(path);
        }
    }
}

impl Slot {
    pub(crate) fn new(partition: u32, family: Family) -> Self {
        Self {
            partition,
            family,
            writer: None,
        }
    }

    /// The finished, synced block; `None` if it has no entries.
    pub(crate) fn finish(self) -> Result<Option<BlockMeta>> {
        self.writer.map(BlockWriter::finish).transpose()
    }
}

impl Slots {
    pub(crate) fn new(partition: u32, borders: Vec<Timestamp>) -> Self {
        let slots = (0..=borders.len()).map(|_| Slot::new(partition, Family::Base));
        Self {
            slots: slots.collect(),
            borders,
        }
    }

    /// The finished, synced blocks that have entries, in time order.
    pub(crate) fn finish(self) -> Result<Vec<BlockMeta>> {
        let finished = self.slots.into_iter().map(Slot::finish);
        let finished: Result<Vec<Option<BlockMeta>>> = finished.collect();
        Ok(finished?.into_iter().flatten().collect())
    }
}
