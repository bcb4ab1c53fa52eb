//! Writing a block: front to back, once.
//!
//! Chunks are written in order, through one buffer. The index grows in memory,
//! about 15 bytes an entry, and is written at the end with root and footer. One
//! sync makes the bytes durable; the caller makes the name durable. An unfinished
//! file is not a block; the caller removes it.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::format::chunk::Chunk;
use crate::io::small::Context;
use crate::io::{Env, File};
use crate::storage::block::entry::{BlockMeta, Entry, Family, Kind};
use crate::storage::block::format::{Footer, Header};
use crate::storage::block::page::PageBuilder;
use crate::storage::block::stats;
use crc_fast::crc32_iscsi;
use latewood_model::{SeriesId, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size of the write buffer.
const BUFFER_BYTES: usize = 1024 * 1024;
/// Base chunks with fewer samples are stored without statistics: the statistics
/// would be a tenth of their size, and reading the samples costs little more.
pub(crate) const STATS_SAMPLES_MIN: usize = 256;

/// A block that is being written.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    header: Header,
    /// Bytes written to the file.
    flushed: u64,
    buffer: Vec<u8>,
    page: PageBuilder,
    /// Finished pages, end to end, and their rows.
    index: Vec<u8>,
    root: Vec<u8>,
    pages: u32,
    previous: Option<(SeriesId, Timestamp)>,
    footer: Footer,
}

impl BlockWriter {
    /// Creates the file of block `number`.
    ///
    /// # Errors
    /// `Io` if the file exists or cannot be created.
    pub(crate) fn create(
        env: &Env,
        path: &Path,
        number: u64,
        partition: u32,
        family: Family,
    ) -> Result<Self> {
        let file = env.disk.create(path, 0);
        let file = file.context("cannot create a block", path)?;
        let header = Header {
            family,
            partition,
            number,
        };
        let bytes = header.encode();
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 16);
        buffer.extend_from_slice(&bytes);
        Ok(Self {
            file,
            path: path.to_owned(),
            header,
            flushed: 0,
            buffer,
            page: PageBuilder::default(),
            index: Vec::new(),
            root: Vec::new(),
            pages: 0,
            previous: None,
            footer: Footer {
                index_offset: 0,
                root_offset: 0,
                root_checksum: 0,
                pages: 0,
                entries: 0,
                series: 0,
                samples: 0,
                first: Timestamp::MAX,
                last: Timestamp::MIN,
                first_id: SeriesId(0),
                last_id: SeriesId(0),
                header_checksum: crc32_iscsi(&bytes),
            },
        })
    }

    /// Adds a chunk of a series. Ids ascend; chunks of one series are in arrival
    /// order, which in base blocks is time order.
    ///
    /// # Errors
    /// `Io` if the file cannot be written: the block is then lost. `Invalid` for a
    /// chunk out of order or of another family.
    pub(crate) fn chunk(&mut self, id: SeriesId, kind: Kind, chunk: &Chunk) -> Result<()> {
        let sizes = (
            u32::try_from(chunk.count()),
            u32::try_from(chunk.size_bytes()),
        );
        let (Ok(count), Ok(len_bytes)) = sizes else {
            return Err(self.misplaced("a chunk is too long"));
        };
        if kind == Kind::Tombstone || chunk.is_empty() {
            return Err(self.misplaced("a tombstone is not a chunk"));
        }
        let values = match kind {
            Kind::Base if chunk.count() >= STATS_SAMPLES_MIN => stats::of(chunk)?,
            _ => None,
        };
        self.add(Entry {
            id,
            kind,
            first: chunk.first(),
            last: chunk.last(),
            count,
            offset: self.written_bytes(),
            len_bytes,
            checksum: crc32_iscsi(chunk.bytes()),
            values,
        })?;
        self.buffer.extend_from_slice(chunk.bytes());
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Adds a tombstone: deletes in `from..=to` what arrived before it.
    ///
    /// # Errors
    /// As [`BlockWriter::chunk`]; also `Invalid` for an empty span.
    pub(crate) fn tombstone(&mut self, id: SeriesId, from: Timestamp, to: Timestamp) -> Result<()> {
        if from > to {
            return Err(self.misplaced("the span of a tombstone is empty"));
        }
        self.add(Entry {
            id,
            kind: Kind::Tombstone,
            first: from,
            last: to,
            count: 0,
            offset: self.written_bytes(),
            len_bytes: 0,
            checksum: 0,
            values: None,
        })
    }

    /// Whether it is empty: an empty block cannot be finished.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.previous.is_none()
    }

    /// Bytes of header and chunks so far, without the index.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Writes index, root and footer and syncs the file.
    ///
    /// # Errors
    /// `Io` if the write fails: the block is then lost. `Invalid` if it is empty.
    pub(crate) fn finish(mut self) -> Result<BlockMeta> {
        let Some((last_id, _)) = self.previous else {
            return Err(self.misplaced("it has no entries"));
        };
        self.end_page();
        self.footer.index_offset = self.written_bytes();
        self.footer.root_offset = self.footer.index_offset + self.index.len() as u64;
        self.footer.root_checksum = crc32_iscsi(&self.root);
        self.footer.pages = self.pages;
        self.footer.last_id = last_id;
        let (footer, checksum) = self.footer.encode();
        self.flush()?;
        self.buffer = std::mem::take(&mut self.index);
        self.buffer.append(&mut self.root);
        self.buffer.extend_from_slice(&footer);
        self.flush()?;
        let synced = self.file.sync();
        synced.context("cannot sync a block", &self.path)?;
        Ok(self.footer.meta(self.header, checksum))
    }

    fn add(&mut self, entry: Entry) -> Result<()> {
        let in_place = match self.previous {
            Some((id, last)) if id == entry.id => entry.kind != Kind::Base || entry.first > last,
            Some((id, _)) => entry.id > id,
            None => true,
        };
        if !in_place || partition_of(entry.id) != self.header.partition {
            return Err(self.misplaced("an entry is out of order"));
        }
        if entry.kind.family() != self.header.family {
            return Err(self.misplaced("an entry is of another family"));
        }
        if !self.page.push(&entry) {
            self.end_page();
            self.page.push(&entry);
        }
        let footer = &mut self.footer;
        if self.previous.is_none() {
            footer.first_id = entry.id;
        }
        if self.previous.is_none_or(|(id, _)| id != entry.id) {
            footer.series += 1;
        }
        footer.entries += 1;
        footer.samples += u64::from(entry.count);
        footer.first = footer.first.min(entry.first);
        footer.last = footer.last.max(entry.last);
        self.previous = Some((entry.id, entry.last));
        Ok(())
    }

    fn end_page(&mut self) {
        let Some(mut page) = self.page.finish() else {
            return;
        };
        let bytes = &mut self.page.bytes;
        // A page is at most 16 KiB.
        page.len_bytes = bytes.len() as u32;
        page.checksum = crc32_iscsi(bytes);
        page.put(&mut self.root);
        self.index.append(bytes);
        self.pages += 1;
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.write_at(&self.buffer, self.flushed);
        written.context("cannot write a block", &self.path)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    #[cold]
    fn misplaced(&self, why: &str) -> Error {
        let message = format!("cannot write a block: {why}");
        Error::new(ErrorKind::Invalid, message).at(&self.path)
    }
}
