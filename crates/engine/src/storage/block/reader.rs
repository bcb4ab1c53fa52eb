//! Reading a block: entries of a series, chunks.
//!
//! An open block holds its footer and root, 40 bytes for each 16 KiB of index;
//! pages come from the cache. A reader checks everything it uses: a page or chunk
//! with a wrong checksum, or one that contradicts its entry, is an error that names
//! file, series and span.
//!
//! A file that is not on this machine is fetched when the first of its bytes is needed
//! ([`crate::io::waiting`]): until then the block holds what the manifest says of it.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::format::chunk::Chunk;
use crate::io::{Env, File, waiting};
use crate::observe::notices::About;
use crate::storage::block::cache::Cache;
use crate::storage::block::entry::{BlockMeta, Entry};
use crate::storage::block::format::{
    FOOTER_BYTES, Footer, HEADER_BYTES, Header, PAGE_REF_BYTES, PageRef, corrupt, is_whole,
    parse_root,
};
use crate::storage::block::page::Page;
use crate::storage::block::scan::Scan;
use crate::storage::block::stretch::Stretches;
use latewood_model::{SeriesId, Timestamp};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// An open block. It stays readable after its file is removed.
#[derive(Debug)]
pub(crate) struct Block {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: BlockMeta,
    /// Read when it is opened, or once the file has been fetched.
    ends: OnceLock<Ends>,
    cache: Cache,
    owner: u64,
    stretches: Stretches,
}

/// The parts of a block that are read once.
#[derive(Debug)]
struct Ends {
    footer: Footer,
    root: Box<[PageRef]>,
}

impl Block {
    /// Opens the block that the manifest describes: reads header, footer and root of a file that
    /// is on this machine.
    ///
    /// # Errors
    /// `Io` if the file cannot be read, `Unsupported` for a later version,
    /// `Corrupt` if a part is damaged or it is another block.
    pub(crate) fn open(env: &Env, path: &Path, meta: &BlockMeta, cache: &Cache) -> Result<Self> {
        let failed = |error| Error::io("cannot open a block", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let block = Self::new(file, path, meta.clone(), cache);
        if block.is_here() {
            block.ends()?;
        }
        Ok(block)
    }

    /// Opens a block without a description from the manifest.
    ///
    /// # Errors
    /// As [`Block::open`].
    pub(crate) fn open_any(env: &Env, path: &Path, cache: &Cache) -> Result<Self> {
        let failed = |error| Error::io("cannot open a block", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let len_bytes = file.len_bytes().map_err(failed)?;
        let read = |bytes: &mut [u8], offset| file.read_at(bytes, offset).map_err(failed);
        let (meta, ends) = read_ends(path, len_bytes, read)?;
        let mut block = Self::new(file, path, meta, cache);
        block.ends = ends.into();
        Ok(block)
    }

    fn new(file: Arc<dyn File>, path: &Path, meta: BlockMeta, cache: &Cache) -> Self {
        if file.may_be_away() {
            cache.note_tiered();
        }
        Self {
            file,
            path: path.to_owned(),
            meta,
            ends: OnceLock::new(),
            cache: cache.clone(),
            owner: cache.next_owner(),
            stretches: Stretches::default(),
        }
    }

    /// Whether its file is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.file.is_here()
    }

    /// Fetches its file if it is not on this machine.
    ///
    /// # Errors
    /// `Away`; `Corrupt` if it is lost.
    pub(crate) fn fetch(&self) -> Result<()> {
        if self.is_here() {
            Ok(())
        } else {
            waiting::fetch(&self.file, &self.path)
        }
    }

    fn ends(&self) -> Result<&Ends> {
        match self.ends.get() {
            Some(ends) => Ok(ends),
            None => self.read_ends(),
        }
    }

    #[cold]
    fn read_ends(&self) -> Result<&Ends> {
        let failed = |error| Error::io("cannot open a block", &self.path, error);
        let len_bytes = self.file.len_bytes().map_err(failed)?;
        let read = |bytes: &mut [u8], offset| self.read_into(bytes, offset);
        let (meta, ends) = read_ends(&self.path, len_bytes, read)?;
        if meta == self.meta {
            Ok(self.ends.get_or_init(|| ends))
        } else {
            Err(corrupt("it is not the block named by the manifest").at(&self.path))
        }
    }

    /// Its description in the manifest.
    pub(crate) fn meta(&self) -> &BlockMeta {
        &self.meta
    }

    /// The cache it shares with all blocks of the database.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Its number in that cache.
    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of memory it holds, without the cache.
    pub(crate) fn memory_bytes(&self) -> usize {
        let root = self.ends.get().map_or(0, |ends| ends.root.len());
        size_of::<Self>() + root * size_of::<PageRef>()
    }

    /// All entries of a series, in order. Reads the index pages of the series,
    /// nearly always one.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if a page cannot be read.
    #[cfg(test)]
    pub(crate) fn entries(&self, id: SeriesId) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.find(id, Timestamp::MIN, Timestamp::MAX, |entry| {
            entries.push(entry);
        })?;
        Ok(entries)
    }

    /// Visits the entries of a series that intersect `from..=to`, in order. Costs a
    /// few comparisons if the block does not cover the id or the time.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if a page cannot be read.
    pub(crate) fn find(
        &self,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
        mut visit: impl FnMut(Entry),
    ) -> Result<()> {
        if !self.meta.reaches(from, to) {
            return Ok(());
        }
        let Ends { footer, root } = self.ends()?;
        if !(footer.first_id..=footer.last_id).contains(&id) {
            return Ok(());
        }
        // A series may begin at the end of the page before its own.
        let start = root.partition_point(|page| page.first_id < id);
        for index in start.saturating_sub(1)..root.len() {
            let page = &root[index];
            if page.first_id > id {
                break;
            }
            if page.first <= to && from <= page.last {
                self.page(index, page)?
                    .find(id, from, to)
                    .for_each(&mut visit);
            }
        }
        Ok(())
    }

    /// Reads the chunk of one of its entries.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if it is not what was written; `Invalid` for a tombstone,
    /// which has no chunk.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Arc<Chunk>> {
        self.check_place(entry)?;
        let mut bytes = vec![0; entry.len_bytes as usize];
        self.read_chunks(&mut bytes, entry.offset)?;
        self.chunk(entry, bytes)
    }

    /// Reads the chunk through the cache, for repeated lookups.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn read_cached(&self, entry: &Entry) -> Result<Arc<Chunk>> {
        if let Some(chunk) = self.cache.chunk(self.owner, entry.offset) {
            return Ok(chunk);
        }
        let chunk = self.read(entry)?;
        self.cache.put_chunk(self.owner, entry.offset, &chunk);
        Ok(chunk)
    }

    /// A walk over all entries and their chunks with large reads that bypass the
    /// cache.
    pub(crate) fn scan(self: &Arc<Self>) -> Scan {
        Scan::new(self.clone())
    }

    pub(crate) fn stretches(&self) -> &Stretches {
        &self.stretches
    }

    pub(crate) fn cached_stretch(&self, start: u64) -> Option<Arc<[u8]>> {
        self.cache.stretch(self.owner, start)
    }

    pub(crate) fn keep_stretch(&self, start: u64, stretch: &Arc<[u8]>) {
        self.cache.put_stretch(self.owner, start, stretch);
    }

    pub(crate) fn last_id(&self) -> Result<SeriesId> {
        Ok(self.ends()?.footer.last_id)
    }

    pub(crate) fn pages(&self) -> Result<usize> {
        Ok(self.ends()?.root.len())
    }

    /// Where the chunks end.
    pub(crate) fn chunks_end(&self) -> Result<u64> {
        Ok(self.ends()?.footer.index_offset)
    }

    fn page(&self, index: usize, page: &PageRef) -> Result<Arc<Page>> {
        let offset = page.offset;
        if let Some(page) = self.cache.page(self.owner, offset) {
            return Ok(page);
        }
        let page = Arc::new(self.read_page(index)?);
        self.cache.put_page(self.owner, offset, &page);
        Ok(page)
    }

    pub(crate) fn read_page(&self, index: usize) -> Result<Page> {
        let ends = self.ends()?;
        let page = &ends.root[index];
        let mut bytes = vec![0; page.len_bytes as usize];
        self.read_into(&mut bytes, page.offset)?;
        if !is_whole(&bytes, page.checksum) {
            return Err(self.damaged_page(ends, index, "fails its checksum"));
        }
        let next = ends.root.get(index + 1);
        let end = next.map_or(ends.footer.index_offset, |next| next.chunks_offset);
        Page::parse(bytes, page, self.meta.family, end)
            .map_err(|_| self.damaged_page(ends, index, "is invalid"))
    }

    pub(crate) fn read_into(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        loop {
            let error = match self.file.read_at(bytes, offset) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(Error::io("cannot read a block", &self.path, error));
            }
            self.fetch()?;
        }
    }

    /// Tombstones and entries of other blocks have no chunk here.
    pub(crate) fn check_place(&self, entry: &Entry) -> Result<()> {
        let (end, chunks_end) = (
            entry.offset.checked_add(u64::from(entry.len_bytes)),
            self.chunks_end()?,
        );
        if entry.len_bytes == 0 || end.is_none_or(|end| end > chunks_end) {
            let message = "the entry has no chunk in this block";
            return Err(Error::new(ErrorKind::Invalid, message).at(&self.path));
        }
        Ok(())
    }

    /// Parses and checks the chunk of an entry.
    pub(crate) fn chunk(&self, entry: &Entry, bytes: Vec<u8>) -> Result<Arc<Chunk>> {
        if !is_whole(&bytes, entry.checksum) {
            return Err(self.damaged(entry, "fails its checksum"));
        }
        let Ok(chunk) = Chunk::from_bytes(bytes) else {
            return Err(self.damaged(entry, "is invalid"));
        };
        let span = (chunk.first(), chunk.last(), chunk.count());
        if span != (entry.first, entry.last, entry.count as usize) {
            return Err(self.damaged(entry, "does not match the index"));
        }
        Ok(Arc::new(chunk))
    }

    #[cold]
    pub(crate) fn damaged(&self, entry: &Entry, what: &str) -> Error {
        let message = format!(
            "the block is damaged: the chunk of series {} from {} to {} {what}",
            entry.id.0, entry.first, entry.last
        );
        self.met(Error::new(ErrorKind::Corrupt, message))
    }

    /// Names the file in an error about damage, and reports it to the operator.
    fn met(&self, error: Error) -> Error {
        let error = error.at(&self.path);
        let text = format_args!("{error}; the rest of it is served");
        self.cache.notices().tell(About::Damage, text);
        error
    }

    #[cold]
    fn damaged_page(&self, ends: &Ends, index: usize, what: &str) -> Error {
        let page = &ends.root[index];
        let last_id = match ends.root.get(index + 1) {
            Some(next) => next.first_id,
            None => ends.footer.last_id,
        };
        let message = format!(
            "the block is damaged: the index of series {} to {} from {} to {} {what}",
            page.first_id.0, last_id.0, page.first, page.last
        );
        self.met(Error::new(ErrorKind::Corrupt, message))
    }
}

/// Reads header, footer and root of a block of `len_bytes` bytes.
fn read_ends(
    path: &Path,
    len_bytes: u64,
    read: impl Fn(&mut [u8], u64) -> Result<()>,
) -> Result<(BlockMeta, Ends)> {
    if len_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
        return Err(corrupt("it is truncated").at(path));
    }
    let mut header_bytes = [0; HEADER_BYTES];
    read(&mut header_bytes, 0)?;
    let header = Header::parse(&header_bytes).map_err(|error| error.at(path))?;
    let mut footer_bytes = [0; FOOTER_BYTES];
    read(&mut footer_bytes, len_bytes - FOOTER_BYTES as u64)?;
    let (footer, checksum) = Footer::parse(&footer_bytes, len_bytes, header.partition)
        .map_err(|error| error.at(path))?;
    if !is_whole(&header_bytes, footer.header_checksum) {
        return Err(corrupt("its footer does not match its header").at(path));
    }
    let ids = [footer.first_id, footer.last_id];
    if ids.map(partition_of) != [header.partition; 2] {
        return Err(corrupt("its series belong to another partition").at(path));
    }
    // It is inside the file: the footer was checked.
    let mut root_bytes = vec![0; footer.pages as usize * PAGE_REF_BYTES];
    read(&mut root_bytes, footer.root_offset)?;
    let root = parse_root(&root_bytes, &footer).map_err(|error| error.at(path))?;
    let meta = footer.meta(header, checksum);
    let root = root.into();
    Ok((meta, Ends { footer, root }))
}
