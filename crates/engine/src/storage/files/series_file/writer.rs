//! Writing a series file. Tested with the files.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::io::{Env, File};
use crate::storage::files::bytes::Put;
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crate::storage::files::series_file::directory::Directory;
use crate::storage::files::series_file::format::{
    DIRECTORY, HASHES, LABELS, REMOVED, SECTION_BYTES_MAX, SectionHeader, VERSION, VERSION_CHANGES,
    VERSION_PARKED, chained, footer_of, header_of, word_at,
};
use crate::storage::files::series_file::label_blocks::blocks_of;
use crate::storage::files::series_file::lookups::Lookups;
use crc_fast::crc32_iscsi;
use latewood_model::SeriesId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::bulk::Compressor;

/// A section ends with the row that makes it this long,
const SECTION_BYTES: usize = 256 * 1024;
/// and a page with the one that makes it that long.
const PAGE_BYTES: usize = 8 * 1024;
/// Labels are so repetitive that higher levels gain little.
const COMPRESSION_LEVEL: i32 = 1;

/// Writes a series file.
pub(crate) struct SeriesFileWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    version: u16,
    meta: SeriesFileMeta,
    section: Put,
    section_rows: u32,
    before: Before,
    compressor: Compressor<'static>,
    /// Checksum over all headers so far.
    chain: u32,
    /// Of a file of parked series, whose sections of rows are pages: what follows them.
    paged: Option<(Directory, Lookups)>,
}

impl SeriesFileWriter {
    /// Creates file `number` at `path` for all series that are not parked. Those that are gone of
    /// which an older file of parked series has a row are `removed`; they ascend.
    ///
    /// # Errors
    /// `Io`. The caller removes the file of a writer that did not finish.
    pub(crate) fn create(
        env: &Env,
        path: &Path,
        number: u64,
        partition: u32,
        removed: &[SeriesId],
    ) -> Result<Self> {
        let version = if removed.is_empty() {
            VERSION
        } else {
            VERSION_PARKED
        };
        let mut writer = Self::create_of(version, env, path, number, partition)?;
        writer.removed(removed)?;
        Ok(writer)
    }

    /// Creates file `number` at `path` for the series that changed since the files before. Those
    /// that were removed ascend.
    ///
    /// # Errors
    /// As [`SeriesFileWriter::create`].
    pub(crate) fn create_changes(
        env: &Env,
        path: &Path,
        number: u64,
        partition: u32,
        removed: &[SeriesId],
    ) -> Result<Self> {
        let mut writer = Self::create_of(VERSION_CHANGES, env, path, number, partition)?;
        writer.removed(removed)?;
        writer.meta.rows = removed.len() as u64;
        Ok(writer)
    }

    /// Creates file `number` at `path` for parked series. Hashes of keys are made with `key_seed`, that
    /// of the manifest.
    ///
    /// # Errors
    /// As [`SeriesFileWriter::create`].
    pub(crate) fn create_paged(
        env: &Env,
        path: &Path,
        number: u64,
        partition: u32,
        key_seed: u64,
    ) -> Result<Self> {
        let mut writer = Self::create_of(VERSION_PARKED, env, path, number, partition)?;
        writer.paged = Some((Directory::new(key_seed), Lookups::new(key_seed)));
        Ok(writer)
    }

    fn create_of(
        version: u16,
        env: &Env,
        path: &Path,
        number: u64,
        partition: u32,
    ) -> Result<Self> {
        let failed = |error| Error::io("cannot create a series file", path, error);
        let file = env.disk.create(path, 0).map_err(failed)?;
        let header = header_of(version, number, partition);
        file.write_at(&header, 0).map_err(failed)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            version,
            meta: SeriesFileMeta {
                number,
                partition,
                len_bytes: header.len() as u64,
                rows: 0,
                position: 0,
                checksum: 0,
            },
            section: Put::default(),
            section_rows: 0,
            before: Before::default(),
            compressor: Compressor::new(COMPRESSION_LEVEL).map_err(failed)?,
            chain: crc32_iscsi(&header),
            paged: None,
        })
    }

    fn removed(&mut self, removed: &[SeriesId]) -> Result<()> {
        let mut before = 0;
        for id in removed {
            self.section.number(id.0 - before);
            before = id.0;
        }
        if removed.is_empty() {
            return Ok(());
        }
        self.section_rows = removed.len() as u32;
        self.end_section(REMOVED).map(drop)
    }

    /// Adds a series; ids ascend.
    ///
    /// # Errors
    /// `Limit` for a series with more dirty buckets than a file can hold, `Io`.
    pub(crate) fn row(&mut self, row: &SeriesRow) -> Result<()> {
        debug_assert_eq!(partition_of(row.id), self.meta.partition);
        self.before.put(&mut self.section, row, self.version);
        self.section_rows += 1;
        self.meta.rows += 1;
        self.meta.position = self.meta.position.max(row.position);
        let enough = match &mut self.paged {
            Some((directory, lookups)) => {
                directory.note(row);
                lookups.note(row);
                PAGE_BYTES
            }
            None => SECTION_BYTES,
        };
        let len = self.section.0.len();
        if len < enough {
            Ok(())
        } else if len <= SECTION_BYTES_MAX {
            self.end_rows()
        } else {
            let text = "a series has too many dirty buckets for a series file";
            Err(Error::new(ErrorKind::Limit, text).at(&self.path))
        }
    }

    fn end_rows(&mut self) -> Result<()> {
        let header = self.end_section(0)?;
        if let Some((directory, _)) = &mut self.paged {
            directory.pages.end_page(header);
        }
        Ok(())
    }

    /// Writes labels, hashes and the directory, and behind it where it begins.
    fn end_paged(&mut self, mut directory: Directory, lookups: Lookups) -> Result<()> {
        directory.pair_count = lookups.pairs.count();
        for block in blocks_of(lookups.pairs) {
            self.section.0 = block.raw;
            self.section_rows = block.entries;
            let header = self.end_section(LABELS)?;
            directory.blocks.push(header, &block.separator);
        }
        self.section.0 = lookups.hashes;
        self.section_rows = directory.pages.ids.len() as u32;
        directory.hashes = Some(self.end_section(HASHES)?);
        self.section.0 = directory.encode();
        self.section_rows = directory.pages.pages.len() as u32;
        let header = self.end_section(DIRECTORY)?;
        // Its length is that of a few bytes for each section, and so fits.
        self.write(&(header.section_len() as u32).to_le_bytes())
    }

    /// Writes the rest and makes the file durable, but not its name.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn finish(mut self) -> Result<SeriesFileMeta> {
        if self.section_rows > 0 {
            self.end_rows()?;
        }
        if let Some((directory, lookups)) = self.paged.take() {
            self.end_paged(directory, lookups)?;
        }
        let footer = footer_of(self.meta.rows, self.meta.position, self.chain);
        self.write(&footer)?;
        self.meta.checksum = word_at(&footer, 20);
        self.file.sync().map_err(|error| self.failed(error))?;
        Ok(self.meta)
    }

    /// `flag` is added to the number of rows.
    fn end_section(&mut self, flag: u32) -> Result<SectionHeader> {
        let raw = &self.section.0;
        let stored = self
            .compressor
            .compress(raw)
            .map_err(|error| self.failed(error))?;
        let header = SectionHeader::new(&stored, raw.len() as u32, self.section_rows | flag);
        self.chain = chained(self.chain, &header.bytes());
        self.write(&[&header.bytes()[..], &stored].concat())?;
        self.section.0.clear();
        self.section_rows = 0;
        self.before = Before::default();
        Ok(header)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_at(bytes, self.meta.len_bytes);
        written.map_err(|error| self.failed(error))?;
        self.meta.len_bytes += bytes.len() as u64;
        Ok(())
    }

    #[cold]
    fn failed(&self, error: io::Error) -> Error {
        Error::io("cannot write a series file", &self.path, error)
    }
}
