//! The files of one flush: a base block, a late block, a series file.
//!
//! A block is created on its first entry: a flush without late samples creates no
//! late block. Files that are not published are removed. Tested by `tests/flush`.

use crate::background::flush::partition::Cut;
use crate::base::error::Result;
use crate::keyspace::core::Core;
use crate::series::overlay::overlay_chunks;
use crate::series::stored::Frozen;
use crate::storage::block::{BlockMeta, BlockWriter, Family, Kind};
use crate::storage::files::{SeriesFileMeta, SeriesFileWriter};
use latewood_codec::Encoder;
use latewood_model::SeriesId;
use std::path::PathBuf;

pub(crate) struct Files<'a> {
    core: &'a Core,
    partition: u32,
    base: Option<BlockWriter>,
    late: Option<BlockWriter>,
    series: Option<SeriesFileWriter>,
    encoder: Encoder,
    /// The names taken so far.
    paths: Vec<PathBuf>,
}

/// Files that are whole and synced.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) base: Option<BlockMeta>,
    pub(crate) late: Option<BlockMeta>,
    pub(crate) series: SeriesFileMeta,
}

impl Written {
    pub(crate) fn len_bytes(&self) -> u64 {
        let blocks = self.base.iter().chain(&self.late);
        self.series.len_bytes + blocks.map(|block| block.len_bytes).sum::<u64>()
    }

    /// Samples and late operations in the blocks.
    pub(crate) fn samples(&self) -> u64 {
        let blocks = self.base.iter().chain(&self.late);
        blocks.map(|block| block.samples).sum()
    }
}

impl<'a> Files<'a> {
    pub(crate) fn new(core: &'a Core, partition: u32) -> Self {
        Self {
            core,
            partition,
            base: None,
            late: None,
            series: None,
            encoder: Encoder::new(),
            paths: Vec::new(),
        }
    }

    /// Adds a series; they come with ascending ids.
    pub(crate) fn add(&mut self, cut: &Cut) -> Result<()> {
        if let Some(frozen) = &cut.frozen {
            self.add_head(cut.row.id, frozen)?;
        }
        self.series_file()?.row(&cut.row)
    }

    fn add_head(&mut self, id: SeriesId, frozen: &Frozen) -> Result<()> {
        for chunk in &frozen.chunks {
            self.block(Family::Base)?.chunk(id, Kind::Base, chunk)?;
        }
        for (from, to) in frozen.deleted.iter() {
            self.block(Family::Late)?.tombstone(id, from, to)?;
        }
        let overlays = overlay_chunks(&frozen.ops, frozen.shape, &mut self.encoder)?;
        for (policy, chunk) in overlays {
            let kind = Kind::Overlay(policy);
            self.block(Family::Late)?.chunk(id, kind, &chunk)?;
        }
        Ok(())
    }

    /// Finishes and syncs all files; their names are the publication's to make
    /// durable. There is a series file even without series: it says so.
    pub(crate) fn finish(&mut self) -> Result<Written> {
        let series = match self.series.take() {
            Some(series) => series,
            None => self.new_series_file()?,
        };
        Ok(Written {
            base: self.base.take().map(BlockWriter::finish).transpose()?,
            late: self.late.take().map(BlockWriter::finish).transpose()?,
            series: series.finish()?,
        })
    }

    /// Removes what a failed flush has written. What cannot be removed is
    /// garbage that the next start clears away.
    pub(crate) fn remove(&mut self) {
        (self.base, self.late, self.series) = (None, None, None);
        for path in self.paths.drain(..) {
            let _ = self.core.env.disk.remove(&path);
        }
    }

    fn series_file(&mut self) -> Result<&mut SeriesFileWriter> {
        let writer = match self.series.take() {
            Some(writer) => writer,
            None => self.new_series_file()?,
        };
        Ok(self.series.insert(writer))
    }

    fn new_series_file(&mut self) -> Result<SeriesFileWriter> {
        let number = self.core.store.new_file_number();
        let path = self.core.store.series_file_path(number);
        self.paths.push(path.clone());
        SeriesFileWriter::create(&self.core.env, &path, number, self.partition)
    }

    fn block(&mut self, family: Family) -> Result<&mut BlockWriter> {
        let block = match family {
            Family::Base => &mut self.base,
            Family::Late => &mut self.late,
        };
        let writer = match block.take() {
            Some(writer) => writer,
            None => {
                let number = self.core.store.new_file_number();
                let path = self.core.store.block_path(number);
                self.paths.push(path.clone());
                BlockWriter::create(&self.core.env, &path, number, self.partition, family)?
            }
        };
        Ok(block.insert(writer))
    }
}
