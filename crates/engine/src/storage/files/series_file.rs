//! Series files: all series of one partition, in order of their ids, or those that changed since
//! the files before, with the ids of those that are gone.
//!
//! A file is written and read front to back, a *section* of some hundred KiB at a
//! time, so that neither needs memory for more. Each section is compressed
//! separately. Its checksum is verified before its rows are used, and the footer
//! verifies the checksums of all sections. The bytes are described in
//! `docs/format/series.md`. Tested by `series_file/tests.rs`, by the golden file
//! and by the fuzz target `series_file`.

#[cfg(test)]
mod tests;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::io::small::Context;
use crate::io::{Env, File};
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crc_fast::crc32_iscsi;
use latewood_model::SeriesId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::bulk::{Compressor, Decompressor};

const MAGIC: [u8; 8] = *b"LWOODSER";
const END_MAGIC: [u8; 8] = *b"LWSEREND";
/// The format of whole files that is written; version 1 is read.
const VERSION: u16 = 2;
/// That of files of changes.
const VERSION_CHANGES: u16 = 3;
/// In the number of rows of a section: they are ids of removed series.
const REMOVED: u32 = 1 << 31;
/// Magic, version, two bytes of zeros, partition, number, checksum.
const HEADER_BYTES: usize = 28;
/// Stored size, uncompressed size, rows, checksum of these and the bytes.
const SECTION_HEADER_BYTES: usize = 16;
/// Bytes of a section's header that its checksum covers.
const CHECKED_BYTES: usize = 12;
/// Rows, newest position, checksum over all headers, checksum of these, magic.
const FOOTER_BYTES: usize = 32;
/// A section ends with the row that makes it this long.
const SECTION_BYTES: usize = 256 * 1024;
/// Maximum size of a section: a series may have millions of dirty buckets, not
/// more.
const SECTION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Labels are so repetitive that higher levels gain little.
const COMPRESSION_LEVEL: i32 = 1;

/// Writes a series file.
pub(crate) struct SeriesFileWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: SeriesFileMeta,
    section: Put,
    section_rows: u32,
    before: Before,
    compressor: Compressor<'static>,
    /// Checksum over all headers so far.
    chain: u32,
}

impl SeriesFileWriter {
    /// Creates file `number` at `path`.
    ///
    /// # Errors
    /// `Io`. The caller removes the file of a writer that did not finish.
    pub(crate) fn create(env: &Env, path: &Path, number: u64, partition: u32) -> Result<Self> {
        Self::create_of(VERSION, env, path, number, partition)
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
        let mut before = 0;
        for id in removed {
            writer.section.number(id.0 - before);
            before = id.0;
        }
        writer.section_rows = removed.len() as u32;
        writer.meta.rows = removed.len() as u64;
        if !removed.is_empty() {
            writer.end_section(REMOVED)?;
        }
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
        })
    }

    /// Adds a series; ids ascend.
    ///
    /// # Errors
    /// `Limit` for a series with more dirty buckets than a file can hold, `Io`.
    pub(crate) fn row(&mut self, row: &SeriesRow) -> Result<()> {
        debug_assert_eq!(partition_of(row.id), self.meta.partition);
        self.before.put(&mut self.section, row);
        self.section_rows += 1;
        self.meta.rows += 1;
        self.meta.position = self.meta.position.max(row.position);
        match self.section.0.len() {
            ..SECTION_BYTES => Ok(()),
            SECTION_BYTES..=SECTION_BYTES_MAX => self.end_section(0),
            _ => {
                let text = "a series has too many dirty buckets for a series file";
                Err(Error::new(ErrorKind::Limit, text).at(&self.path))
            }
        }
    }

    /// Writes the rest and makes the file durable, but not its name.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn finish(mut self) -> Result<SeriesFileMeta> {
        if self.section_rows > 0 {
            self.end_section(0)?;
        }
        let footer = footer_of(self.meta.rows, self.meta.position, self.chain);
        self.write(&footer)?;
        self.meta.checksum = word_at(&footer, 20);
        self.file.sync().map_err(|error| self.failed(error))?;
        Ok(self.meta)
    }

    /// `flag` is added to the number of rows.
    fn end_section(&mut self, flag: u32) -> Result<()> {
        let raw = &self.section.0;
        let stored = self
            .compressor
            .compress(raw)
            .map_err(|error| self.failed(error))?;
        let mut header = Put::default();
        // SECTION_BYTES_MAX fits 32 bits, and so does its compressed size.
        let rows = self.section_rows | flag;
        for number in [stored.len() as u32, raw.len() as u32, rows] {
            header.word(number);
        }
        header.word(crc32_iscsi(&[&header.0, &stored[..]].concat()));
        self.chain = chained(self.chain, &header.0);
        header.raw(&stored);
        self.write(&header.0)?;
        self.section.0.clear();
        self.section_rows = 0;
        self.before = Before::default();
        Ok(())
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

/// Reads a series file.
pub(crate) struct SeriesFileReader {
    file: Arc<dyn File>,
    path: PathBuf,
    version: u16,
    meta: SeriesFileMeta,
    offset: u64,
    rows: u64,
    last_id: Option<SeriesId>,
    removed: Vec<SeriesId>,
    chain: u32,
    /// The value `chain` must have at the end.
    closed_chain: u32,
    decompressor: Decompressor<'static>,
    raw: Vec<u8>,
}

impl SeriesFileReader {
    /// Opens the file at `path`, which must be the one that `meta` describes.
    ///
    /// # Errors
    /// `Unsupported` for a later version; `Corrupt` if the file does not match the
    /// manifest; `Io`, also if the file does not exist.
    pub(crate) fn open(env: &Env, path: &Path, meta: &SeriesFileMeta) -> Result<Self> {
        let failed = |error| Error::io("cannot open a series file", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let len_bytes = file.len_bytes().map_err(failed)?;
        if len_bytes != meta.len_bytes || len_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged("its length does not match the manifest").at(path));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(&mut header, 0).map_err(failed)?;
        let version = u16::from_le_bytes([header[8], header[9]]);
        if header[..8] == MAGIC && version > VERSION_CHANGES {
            let text = format!(
                "the series file has format version {version}, this build knows version {VERSION_CHANGES}"
            );
            return Err(Error::new(ErrorKind::Unsupported, text).at(path));
        }
        if version == 0 || header != header_of(version, meta.number, meta.partition) {
            return Err(damaged("its header does not match the manifest").at(path));
        }
        let mut footer = [0; FOOTER_BYTES];
        let at = len_bytes - FOOTER_BYTES as u64;
        file.read_at(&mut footer, at).map_err(failed)?;
        let closed_chain = word_at(&footer, 16);
        let expected = footer_of(meta.rows, meta.position, closed_chain);
        if footer != expected || word_at(&footer, 20) != meta.checksum {
            return Err(damaged("its footer does not match the manifest").at(path));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            version,
            meta: *meta,
            offset: HEADER_BYTES as u64,
            rows: 0,
            last_id: None,
            removed: Vec::new(),
            chain: crc32_iscsi(&header),
            closed_chain,
            decompressor: Decompressor::new().map_err(failed)?,
            raw: Vec::new(),
        })
    }

    /// Whether the version before wrote it.
    pub(crate) fn is_old(&self) -> bool {
        self.version < VERSION
    }

    /// The ids of the series that are gone, once the file is read.
    pub(crate) fn removed(&self) -> &[SeriesId] {
        &self.removed
    }

    /// Replaces `rows` with the next few series; `false` at the end, when the whole
    /// file is verified.
    ///
    /// # Errors
    /// `Corrupt` if bytes fail their checksum or are invalid, `Io`.
    pub(crate) fn next(&mut self, rows: &mut Vec<SeriesRow>) -> Result<bool> {
        rows.clear();
        let end = self.meta.len_bytes - FOOTER_BYTES as u64;
        if self.offset == end {
            return self.check_end().map(|()| false);
        }
        if end - self.offset < SECTION_HEADER_BYTES as u64 {
            return Err(self.damaged("it ends inside a section"));
        }
        let is_first = self.offset == HEADER_BYTES as u64;
        let mut header = [0; SECTION_HEADER_BYTES];
        self.read(&mut header)?;
        let [stored_len, raw_len, row_count, checksum] =
            [0, 4, 8, 12].map(|at| word_at(&header, at));
        if u64::from(stored_len) > end - self.offset || raw_len as usize > SECTION_BYTES_MAX {
            return Err(self.damaged("a section is too long"));
        }
        let mut section = header[..CHECKED_BYTES].to_vec();
        section.resize(CHECKED_BYTES + stored_len as usize, 0);
        self.read(&mut section[CHECKED_BYTES..])?;
        // A fuzzer skips this check.
        if !cfg!(fuzzing) && crc32_iscsi(&section) != checksum {
            return Err(self.damaged("the checksum of a section does not match"));
        }
        self.chain = chained(self.chain, &header);
        self.raw.clear();
        self.raw.reserve(raw_len as usize);
        let stored = &section[CHECKED_BYTES..];
        let read = self
            .decompressor
            .decompress_to_buffer(stored, &mut self.raw);
        if read.ok() != Some(raw_len as usize) {
            return Err(self.damaged("a section does not decompress"));
        }
        if row_count & REMOVED == 0 {
            self.take_rows(row_count, rows)?;
        } else if is_first && self.version == VERSION_CHANGES {
            self.take_removed(row_count & !REMOVED)?;
        } else {
            return Err(self.damaged("removed series stand where there are none"));
        }
        Ok(true)
    }

    fn take_removed(&mut self, count: u32) -> Result<()> {
        let mut bytes = Take(&self.raw);
        let (mut removed, mut last) = (Vec::new(), None);
        for _ in 0..count {
            let step = bytes.number().filter(|&step| last.is_none() || step > 0);
            let id = step.and_then(|step| last.unwrap_or(0_u64).checked_add(step));
            let id = id.and_then(SeriesId::new);
            let of_partition = |id: &SeriesId| partition_of(*id) == self.meta.partition;
            let Some(id) = id.filter(of_partition) else {
                return Err(self.damaged("the id of a removed series is invalid"));
            };
            last = Some(id.0);
            removed.push(id);
        }
        if !bytes.is_empty() || count == 0 {
            return Err(self.damaged("the ids of a section do not match its header"));
        }
        self.removed = removed;
        self.rows += u64::from(count);
        Ok(())
    }

    fn take_rows(&mut self, count: u32, rows: &mut Vec<SeriesRow>) -> Result<()> {
        let mut bytes = Take(&self.raw);
        let mut before = Before::default();
        for _ in 0..count {
            let row = before.take(&mut bytes, self.version);
            let fits = |row: &SeriesRow| {
                partition_of(row.id) == self.meta.partition
                    && row.position <= self.meta.position
                    && self.last_id.is_none_or(|last| last < row.id)
            };
            let Some(row) = row.filter(fits) else {
                return Err(self.damaged("a series is invalid"));
            };
            self.last_id = Some(row.id);
            rows.push(row);
        }
        if !bytes.is_empty() || count == 0 {
            return Err(self.damaged("the rows of a section do not match its header"));
        }
        self.rows += u64::from(count);
        Ok(())
    }

    fn check_end(&self) -> Result<()> {
        if self.rows == self.meta.rows && self.chain == self.closed_chain {
            Ok(())
        } else {
            Err(self.damaged("its sections do not match its footer"))
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<()> {
        let read = self.file.read_at(buffer, self.offset);
        read.context("cannot read a series file", &self.path)?;
        self.offset += buffer.len() as u64;
        Ok(())
    }

    #[cold]
    fn damaged(&self, what: &str) -> Error {
        damaged(what).at(&self.path)
    }
}

impl SeriesFileMeta {
    /// The description of the file at `path` by its own header and footer, for
    /// callers without a manifest.
    ///
    /// # Errors
    /// `Corrupt` if it is truncated, `Io`. [`SeriesFileReader::open`] verifies the
    /// description.
    pub(crate) fn of_file(env: &Env, path: &Path) -> Result<Self> {
        let failed = |error| Error::io("cannot open a series file", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let len_bytes = file.len_bytes().map_err(failed)?;
        if len_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged("it is truncated").at(path));
        }
        let (mut header, mut footer) = ([0; HEADER_BYTES], [0; FOOTER_BYTES]);
        file.read_at(&mut header, 0).map_err(failed)?;
        file.read_at(&mut footer, len_bytes - FOOTER_BYTES as u64)
            .map_err(failed)?;
        let long = |bytes: &[u8], at: usize| {
            u64::from(word_at(bytes, at)) | u64::from(word_at(bytes, at + 4)) << 32
        };
        Ok(Self {
            number: long(&header, 16),
            partition: word_at(&header, 12),
            len_bytes,
            rows: long(&footer, 0),
            position: long(&footer, 8),
            checksum: word_at(&footer, 20),
        })
    }
}

fn header_of(version: u16, number: u64, partition: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&partition.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32_iscsi(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn footer_of(rows: u64, position: u64, chain: u32) -> [u8; FOOTER_BYTES] {
    let mut footer = [0; FOOTER_BYTES];
    footer[..8].copy_from_slice(&rows.to_le_bytes());
    footer[8..16].copy_from_slice(&position.to_le_bytes());
    footer[16..20].copy_from_slice(&chain.to_le_bytes());
    let checksum = crc32_iscsi(&footer[..20]);
    footer[20..24].copy_from_slice(&checksum.to_le_bytes());
    footer[24..].copy_from_slice(&END_MAGIC);
    footer
}

/// The checksum over all headers, with `header` added.
fn chained(chain: u32, header: &[u8]) -> u32 {
    crc32_iscsi(&[&chain.to_le_bytes(), header].concat())
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]))
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the series file is damaged: {what}"),
    )
}
