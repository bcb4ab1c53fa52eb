//! Reading a series file front to back. Tested with the files.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::io::small::Context;
use crate::io::{Env, File};
use crate::storage::files::bytes::Take;
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crate::storage::files::series_file::directory::{Directory, HASH_BYTES};
use crate::storage::files::series_file::format::{
    DIRECTORY, DIRECTORY_LEN_BYTES, FOOTER_BYTES, HASHES, HEADER_BYTES, LABELS, Opened, REMOVED,
    SECTION_BYTES_MAX, SECTION_HEADER_BYTES, SectionHeader, VERSION, VERSION_CHANGES,
    VERSION_PARKED, chained, damaged, word_at,
};
use crate::storage::files::series_file::label_blocks::{LabelBlock, blocks_of};
use crate::storage::files::series_file::lookups::Lookups;
use crate::storage::files::series_file::paged::read_directory;
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
    directory: Directory,
    /// It stood at the end.
    is_directed: bool,
    /// What label blocks and hashes of it must say, if that is verified.
    lookups: Option<Lookups>,
    /// The label blocks that are still to come.
    blocks: Option<Box<dyn Iterator<Item = LabelBlock> + Send>>,
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
            directory: Directory::default(),
            is_directed: false,
            lookups: None,
            blocks: None,
        })
    }

    /// As [`SeriesFileReader::open`]; the reader also verifies that the labels and hashes of a file
    /// of parked series are those of its rows, and so holds all labels in memory.
    ///
    /// # Errors
    /// As [`SeriesFileReader::open`].
    pub(crate) fn open_to_verify(env: &Env, path: &Path, meta: &SeriesFileMeta) -> Result<Self> {
        let mut reader = Self::open(env, path, meta)?;
        if reader.version == VERSION_PARKED {
            // A file without one, or with a damaged one, is found out when it is read.
            reader.lookups = match read_directory(&*reader.file, path, meta) {
                Ok((directory, ..)) => Some(Lookups::new(directory.key_seed)),
                Err(error) if error.kind() == ErrorKind::Corrupt => None,
                Err(error) => return Err(error),
            };
        }
        Ok(reader)
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
        let is_removed = header.rows & REMOVED != 0;
        let is_flagged = |flag| self.version == VERSION_PARKED && header.rows & flag != 0;
        if is_removed && is_first && self.version >= VERSION_CHANGES {
            self.take_removed(header.rows & !REMOVED)?;
        } else if is_removed {
            return Err(self.damaged("removed series stand where there are none"));
        } else if is_flagged(DIRECTORY) {
            self.take_directory(&header)?;
        } else if is_flagged(LABELS) {
            self.take_labels(header)?;
        } else if is_flagged(HASHES) {
            self.take_hashes(header)?;
        } else {
            self.take_rows(&header, rows)?;
        }
        Ok(true)
    }

    /// Label blocks stand behind the rows.
    fn take_labels(&mut self, header: SectionHeader) -> Result<()> {
        let mut separator = Vec::new();
        if let Some(lookups) = &mut self.lookups {
            self.directory.pair_count += lookups.pairs.count();
            let pairs = std::mem::take(&mut lookups.pairs);
            let blocks = self
                .blocks
                .get_or_insert_with(|| Box::new(blocks_of(pairs)));
            let expected = blocks
                .next()
                .filter(|block| block.raw == self.raw && block.entries == header.rows & !LABELS);
            let Some(expected) = expected else {
                return Err(self.damaged("a label block does not match its rows"));
            };
            separator = expected.separator;
        }
        self.directory.blocks.push(header, &separator);
        if self.directory.hashes.is_some() || self.rows == 0 {
            return Err(self.damaged("a label block stands where there is none"));
        }
        Ok(())
    }

    /// Hashes stand behind the label blocks.
    fn take_hashes(&mut self, header: SectionHeader) -> Result<()> {
        let rows = u64::from(header.rows & !HASHES);
        let mut is_right = self.directory.hashes.is_none()
            && rows == self.rows
            && self.raw.len() as u64 == rows * HASH_BYTES as u64;
        if let Some(lookups) = &mut self.lookups {
            let has_all = match &mut self.blocks {
                Some(blocks) => blocks.next().is_none(),
                None => lookups.pairs.count() == 0,
            };
            if !has_all {
                return Err(self.damaged("its label blocks do not match its rows"));
            }
            is_right &= lookups.hashes == self.raw;
        }
        self.directory.hashes = Some(header);
        if is_right {
            Ok(())
        } else {
            Err(self.damaged("the hashes of its keys do not match its rows"))
        }
    }

    /// The directory is the last section, and says what the sections before it are.
    fn take_directory(&mut self, header: &SectionHeader) -> Result<()> {
        let mut len = [0; DIRECTORY_LEN_BYTES];
        self.read(&mut len)?;
        let is_last = self.offset == self.meta.len_bytes - FOOTER_BYTES as u64
            && u64::from(word_at(&len, 0)) == header.section_len();
        let pages = header.rows & !DIRECTORY;
        let found = Directory::decode(&self.raw, pages);
        let is_sound = found.is_some();
        let found = found.unwrap_or_default();
        self.directory.key_seed = found.key_seed;
        if self.lookups.is_none() {
            // Rows are not asked for these here.
            self.directory.pair_count = found.pair_count;
            self.directory.blocks.take_separators(found.blocks);
        }
        self.is_directed = is_last
            && is_sound
            && self.removed.is_empty()
            && self.directory.pages.pages.len() as u64 == u64::from(pages)
            && self.directory.encode() == self.raw;
        if self.is_directed {
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
                self.directory.note(&row);
            }
            if let Some(lookups) = &mut self.lookups {
                lookups.note(&row);
            }
            rows.push(row);
        }
        self.directory.pages.end_page(*header);
        let is_behind =
            !self.directory.blocks.headers.is_empty() || self.directory.hashes.is_some();
        if !bytes.is_empty() || count == 0 || is_behind {
            return Err(self.damaged("the rows of a section do not match its header"));
        }
        self.rows += u64::from(count);
        Ok(())
    }

    fn check_end(&self) -> Result<()> {
        let is_paged = !self.directory.blocks.headers.is_empty() || self.directory.hashes.is_some();
        if self.rows == self.meta.rows
            && self.chain == self.closed_chain
            && is_paged == self.is_directed
        {
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
