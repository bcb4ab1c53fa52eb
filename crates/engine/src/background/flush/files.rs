//! The files of one flush: a base block, a late block, a series file.
//!
//! A block is created on its first entry: a flush without late samples creates no
//! late block. So is a series file of changes; a whole one is always there. Files that are not published are removed. Tested by `tests/flush`.

use crate::base::error::Result;
use crate::keyspace::core::Core;
use crate::series::overlay::overlay_chunks;
use crate::series::stored::Frozen;
use crate::storage::block::{BlockMeta, BlockWriter, Family, Kind};
use crate::storage::files::parked::ParkedFile;
use crate::storage::files::{
    ChangesMeta, PartitionFiles, SeriesFileMeta, SeriesFileWriter, SeriesRow,
};
use latewood_codec::Encoder;
use latewood_model::SeriesId;
use roaring::RoaringTreemap;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// A series as the files will hold it.
pub(crate) struct Cut {
    pub(crate) row: SeriesRow,
    /// No series file has a row of it.
    pub(crate) is_new: bool,
    pub(crate) frozen: Option<Arc<Frozen>>,
}

pub(crate) struct Files<'a> {
    core: &'a Core,
    partition: u32,
    base: Option<BlockWriter>,
    late: Option<BlockWriter>,
    series: Option<SeriesFileWriter>,
    rows: Rows,
    /// Series of which no file had a row before.
    new_rows: u64,
    encoder: Encoder,
    /// The names taken so far.
    paths: Vec<PathBuf>,
}

/// Which series of the partition the series file holds.
#[derive(Debug)]
pub(crate) enum Rows {
    /// All that are awake, beside these files of parked series.
    All(Beside),
    /// Those that changed since the files before. These are gone; they ascend.
    Changed(Vec<SeriesId>),
}

/// The files of parked series that a whole file of those that are awake leaves in force.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// The oldest first.
    files: Vec<Arc<ParkedFile>>,
    /// Series in them that are gone; they ascend.
    gone: Vec<SeriesId>,
    /// The ids of the rows of the whole file, if there are such files.
    awake: RoaringTreemap,
}

impl Beside {
    pub(crate) fn new(files: Vec<Arc<ParkedFile>>, gone: Vec<SeriesId>) -> Self {
        Self {
            files,
            gone,
            awake: RoaringTreemap::new(),
        }
    }

    /// Whether some file has a row of a series, and the whole file does not say that it is gone.
    pub(crate) fn holds(&self, id: SeriesId) -> bool {
        let is_there = self.files.iter().any(|file| file.contains(id));
        is_there && self.gone.binary_search(&id).is_err()
    }

    fn note(&mut self, id: SeriesId) {
        if !self.files.is_empty() {
            self.awake.insert(id.0);
        }
    }

    /// The files of which some row counts beside the whole file, and how many rows count.
    fn counting(&self) -> (BTreeSet<u64>, u64) {
        let (mut seen, mut counting, mut rows) = (self.awake.clone(), BTreeSet::new(), 0);
        seen.extend(self.gone.iter().map(|id| id.0));
        for file in self.files.iter().rev() {
            let before = seen.len();
            seen.extend(file.ids().map(|id| id.0));
            if seen.len() > before {
                counting.insert(file.meta().number);
                rows += seen.len() - before;
            }
        }
        (counting, rows)
    }
}

/// Files that are whole and synced.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) base: Option<BlockMeta>,
    pub(crate) late: Option<BlockMeta>,
    pub(crate) series: WrittenSeries,
}

/// The series file of a flush.
#[derive(Debug)]
pub(crate) enum WrittenSeries {
    Whole {
        file: SeriesFileMeta,
        /// The files of parked series of which some row still counts, and series that files have.
        parked: BTreeSet<u64>,
        living: u64,
    },
    /// There is none if no series changed.
    Changes {
        file: Option<SeriesFileMeta>,
        /// Series of which no file had a row before, and which no file has any more.
        new: u64,
        removed: u64,
    },
}

impl WrittenSeries {
    /// Puts it among the files of its partition.
    pub(crate) fn add_to(&self, files: &mut PartitionFiles) {
        match *self {
            Self::Whole {
                file,
                ref parked,
                living,
            } => {
                files.series = Some(file);
                files.changes.clear();
                files.parked.retain(|file| parked.contains(&file.number));
                files.living = if files.parked.is_empty() { 0 } else { living };
            }
            Self::Changes { file, new, removed } => {
                let living = (files.series_count() + new).saturating_sub(removed);
                let changes = file.map(|file| ChangesMeta { file, living });
                files.changes.extend(changes);
                if !files.parked.is_empty() {
                    files.living = living;
                }
            }
        }
    }

    fn len_bytes(&self) -> u64 {
        match self {
            Self::Whole { file, .. } => file.len_bytes,
            Self::Changes { file, .. } => file.map_or(0, |file| file.len_bytes),
        }
    }
}

impl Written {
    pub(crate) fn len_bytes(&self) -> u64 {
        let blocks = self.base.iter().chain(&self.late);
        self.series.len_bytes() + blocks.map(|block| block.len_bytes).sum::<u64>()
    }

    /// Samples and late operations in the blocks.
    pub(crate) fn samples(&self) -> u64 {
        let blocks = self.base.iter().chain(&self.late);
        blocks.map(|block| block.samples).sum()
    }
}

impl<'a> Files<'a> {
    pub(crate) fn new(core: &'a Core, partition: u32, rows: Rows) -> Self {
        Self {
            core,
            partition,
            base: None,
            late: None,
            series: None,
            rows,
            new_rows: 0,
            encoder: Encoder::new(),
            paths: Vec::new(),
        }
    }

    /// Adds a series; they come with ascending ids.
    pub(crate) fn add(&mut self, cut: &Cut) -> Result<()> {
        if let Some(frozen) = &cut.frozen {
            self.add_head(cut.row.id, frozen)?;
        }
        self.new_rows += u64::from(cut.is_new);
        if let Rows::All(beside) = &mut self.rows {
            beside.note(cut.row.id);
        }
        self.series_file()?.row(&cut.row)
    }

    /// Beside which files all rows are written; `None` if those of series that did not change are
    /// left out.
    pub(crate) fn beside(&self) -> Option<&Beside> {
        match &self.rows {
            Rows::All(beside) => Some(beside),
            Rows::Changed(_) => None,
        }
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
    /// durable. There is a whole series file even without series: it says so.
    pub(crate) fn finish(&mut self) -> Result<Written> {
        Ok(Written {
            base: self.base.take().map(BlockWriter::finish).transpose()?,
            late: self.late.take().map(BlockWriter::finish).transpose()?,
            series: self.finish_series()?,
        })
    }

    fn finish_series(&mut self) -> Result<WrittenSeries> {
        let removed = match &self.rows {
            Rows::All(_) => None,
            Rows::Changed(removed) => Some(removed.len() as u64),
        };
        if removed != Some(0) {
            self.series_file()?;
        }
        let file = self.series.take().map(SeriesFileWriter::finish);
        Ok(match (&self.rows, file.transpose()?) {
            (Rows::All(beside), Some(file)) => {
                let (parked, rows) = beside.counting();
                WrittenSeries::Whole {
                    file,
                    parked,
                    living: file.rows + rows,
                }
            }
            (_, file) => WrittenSeries::Changes {
                file,
                new: self.new_rows,
                removed: removed.unwrap_or(0),
            },
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
        let (env, partition) = (&self.core.env, self.partition);
        match &self.rows {
            Rows::All(beside) => {
                SeriesFileWriter::create(env, &path, number, partition, &beside.gone)
            }
            Rows::Changed(removed) => {
                SeriesFileWriter::create_changes(env, &path, number, partition, removed)
            }
        }
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
