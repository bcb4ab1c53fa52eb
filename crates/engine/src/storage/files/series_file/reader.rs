//! Reading a series file front to back. Tested with the files.

use crate::base::error::{Error, Result};
use crate::base::partition::partition_of;
use crate::io::small::Context;
use crate::io::{Env, File};
use crate::storage::files::bytes::Take;
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crate::storage::files::series_file::format::{
    DIRECTORY, DIRECTORY_LEN_BYTES, FOOTER_BYTES, HEADER_BYTES, Opened, REMOVED, SECTION_BYTES_MAX,
    SECTION_HEADER_BYTES, SectionHeader, VERSION, VERSION_CHANGES, VERSION_PARKED, chained,
    damaged, word_at,
};
use crate::storage::files::series_file::pages::Pages;
use latewood_model::SeriesId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::bulk::Decompressor;

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
    /// What the directory of a file of parked series must say.
    pages: Pages,
}

impl SeriesFileReader {
    /// Opens the file at `path`, which must be the one that `meta` describes.
    ///
    /// # Errors
    /// `Unsupported` for a later version; `Corrupt` if the file does not match the
    /// manifest; `Io`, also if the file does not exist.
    pub(crate) fn open(env: &Env, path: &Path, meta: &SeriesFileMeta) -> Result<Self> {
        let opened = Opened::new(env, path, meta)?;
        let failed = |error| Error::io("cannot open a series file", path, error);
        Ok(Self {
            file: opened.file,
            path: path.to_owned(),
            version: opened.version,
            meta: *meta,
            offset: HEADER_BYTES as u64,
            rows: 0,
            last_id: None,
            removed: Vec::new(),
            chain: opened.chain,
            closed_chain: opened.closed_chain,
            decompressor: Decompressor::new().map_err(failed)?,
            raw: Vec::new(),
            pages: Pages::default(),
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
        let header = SectionHeader::from_bytes(&header);
        let stored_len = u64::from(header.stored_len);
        if stored_len > end - self.offset || header.raw_len as usize > SECTION_BYTES_MAX {
            return Err(self.damaged("a section is too long"));
        }
        let mut stored = vec![0; header.stored_len as usize];
        self.read(&mut stored)?;
        let read = header.decompress(&stored, &mut self.decompressor, &mut self.raw);
        read.map_err(|error| error.at(&self.path))?;
        self.chain = chained(self.chain, &header.bytes());
        let (is_removed, is_directory) = (header.rows & REMOVED != 0, header.rows & DIRECTORY != 0);
        if is_removed && is_first && self.version >= VERSION_CHANGES {
            self.take_removed(header.rows & !REMOVED)?;
        } else if is_removed {
            return Err(self.damaged("removed series stand where there are none"));
        } else if is_directory && self.version == VERSION_PARKED {
            self.take_directory(&header)?;
        } else {
            self.take_rows(&header, rows)?;
        }
        Ok(true)
    }

    /// The directory is the last section, and says what the pages before it are.
    fn take_directory(&mut self, header: &SectionHeader) -> Result<()> {
        let mut len = [0; DIRECTORY_LEN_BYTES];
        self.read(&mut len)?;
        let is_last = self.offset == self.meta.len_bytes - FOOTER_BYTES as u64
            && u64::from(word_at(&len, 0)) == header.section_len();
        let is_right = self.removed.is_empty()
            && self.pages.pages.len() as u64 == u64::from(header.rows & !DIRECTORY)
            && self.pages.encode() == self.raw;
        if is_last && is_right {
            Ok(())
        } else {
            Err(self.damaged("its directory does not match its rows"))
        }
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
        if self.version == VERSION_CHANGES {
            self.rows += u64::from(count);
        }
        Ok(())
    }

    fn take_rows(&mut self, header: &SectionHeader, rows: &mut Vec<SeriesRow>) -> Result<()> {
        let (mut bytes, count) = (Take(&self.raw), header.rows);
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
            if self.version == VERSION_PARKED {
                self.pages.note(&row);
            }
            rows.push(row);
        }
        self.pages.end_page(*header);
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
