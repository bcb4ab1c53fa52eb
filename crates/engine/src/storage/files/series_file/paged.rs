//! Reading the rows of parked series at random: one page for one row.
//!
//! An open file holds its directory, and that a bit for each id of its partition. The directory was
//! verified against the footer, which is the manifest's, and each other section is verified against
//! the directory: so a page of another file, or of another time, is found. Tested with the files.

use crate::base::error::{Error, Result};
use crate::base::partition::{first_of, partition_of};
use crate::io::{Env, File};
use crate::storage::files::bytes::Take;
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crate::storage::files::series_file::directory::Directory;
use crate::storage::files::series_file::format::{
    DIRECTORY, DIRECTORY_LEN_BYTES, FOOTER_BYTES, HEADER_BYTES, Opened, SECTION_BYTES_MAX,
    SectionHeader, VERSION_PARKED, chained, damaged, word_at,
};
use crate::storage::files::series_file::links::Links;
use crate::storage::files::series_file::pages::{PageTable, PageTerms, low_bits};
use crate::storage::files::series_file::sections::Sections;
use latewood_model::SeriesId;
use roaring::RoaringBitmap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::bulk::Decompressor;

/// The rows of parked series of a partition, read page by page. It stays readable after its file is
/// removed.
#[derive(Debug)]
pub(crate) struct ParkedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: SeriesFileMeta,
    /// Without sections, of which there is less here.
    directory: Directory,
    pages: PageTable,
    sections: Sections,
    /// How long the label blocks are, as they are read.
    label_bytes: u64,
}

impl ParkedFile {
    /// Opens the file at `path`, which must be the one that `meta` describes: reads header, footer
    /// and directory.
    ///
    /// # Errors
    /// `Unsupported` for a later version; `Corrupt` if one of these is damaged or the file does
    /// not match the manifest; `Io`, also if the file does not exist.
    pub(crate) fn open(env: &Env, path: &Path, meta: &SeriesFileMeta) -> Result<Self> {
        let opened = Opened::new(env, path, meta)?;
        if opened.version != VERSION_PARKED {
            return Err(damaged("it is not a file of parked series").at(path));
        }
        let (mut directory, header, at) = read_directory(&*opened.file, path, meta)?;
        let sections = directory.sections();
        let chain = chained(directory.chain(opened.chain), &header.bytes());
        // A fuzzer skips the last check.
        let is_of_file = sections.end() == at
            && directory.pages.ids.len() == meta.rows
            && (cfg!(fuzzing) || chain == opened.closed_chain);
        if !is_of_file {
            return Err(damaged("its directory does not match its footer").at(path));
        }
        let pages = PageTable::of(&directory.pages.pages);
        let label_bytes = directory.blocks.raw_bytes();
        directory.forget_sections();
        Ok(Self {
            file: opened.file,
            path: path.to_owned(),
            meta: *meta,
            directory,
            pages,
            sections,
            label_bytes,
        })
    }

    /// Its description in the manifest.
    pub(crate) fn meta(&self) -> &SeriesFileMeta {
        &self.meta
    }

    /// Whether it has a row of this series.
    pub(crate) fn contains(&self, id: SeriesId) -> bool {
        partition_of(id) == self.meta.partition
            && self.directory.pages.ids.contains(u32::from(low_bits(id)))
    }

    /// The ids of its rows, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SeriesId> {
        let first = first_of(self.meta.partition).0;
        let lows = self.directory.pages.ids.iter();
        lows.map(move |low| SeriesId(first + u64::from(low)))
    }

    /// The low bits of the same.
    pub(crate) fn low_ids(&self) -> &RoaringBitmap {
        &self.directory.pages.ids
    }

    /// Which of its rows are ends of compaction rules, ascending, and the other ends. Reads no rows.
    pub(crate) fn links(&self) -> impl Iterator<Item = Links> {
        self.directory.links.iter(self.meta.partition)
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> u64 {
        self.meta.rows
    }

    /// The page with the row of this series, if there is one.
    pub(crate) fn page_of(&self, id: SeriesId) -> Option<usize> {
        let page = || self.pages.page_of(low_bits(id));
        self.contains(id).then(page)
    }

    /// How many pages it has.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// What tells whether a row of a page may have ended.
    pub(crate) fn terms(&self, page: usize) -> PageTerms {
        self.pages.terms(page)
    }

    /// The rows of a page, ascending.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged, `Io`.
    pub(crate) fn read_page(&self, page: usize) -> Result<Vec<SeriesRow>> {
        self.rows(page, u32::MAX, |_| true)
    }

    /// The rows of these series, which are on one page, as far as there are any.
    ///
    /// # Errors
    /// `Corrupt` if what is read of the page is damaged, `Io`.
    pub(crate) fn read_some(
        &self,
        page: usize,
        ids: &BTreeSet<SeriesId>,
    ) -> Result<Vec<SeriesRow>> {
        let last = ids.last().map_or(0, |&id| low_bits(id).into());
        self.rows(page, last, |id| ids.contains(&id))
    }

    /// The rows of a page up to that of the low bits `last` that `is_wanted`. The others are passed over.
    fn rows(
        &self,
        page: usize,
        last: u32,
        is_wanted: impl Fn(SeriesId) -> bool,
    ) -> Result<Vec<SeriesRow>> {
        let (_, raw) = self.read_section(page)?;
        let (mut bytes, mut before) = (Take(&raw), Before::default());
        let (first, mut rows) = (first_of(self.meta.partition).0, Vec::new());
        let invalid = || damaged("a series is invalid").at(&self.path);
        let lows = self.pages.lows(page);
        for low in self.directory.pages.ids.range(lows) {
            if low > last {
                return Ok(rows);
            }
            let id = SeriesId(first + u64::from(low));
            let own = before.step(&mut bytes, VERSION_PARKED);
            let own = own.filter(|_| before.is_at(id, self.meta.position));
            let own = own.ok_or_else(invalid)?;
            if is_wanted(id) {
                rows.push(before.row(own).ok_or_else(invalid)?);
            }
        }
        if bytes.is_empty() {
            Ok(rows)
        } else {
            Err(damaged("the rows of a page do not match its directory").at(&self.path))
        }
    }

    /// The header and the bytes of a section.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged, `Io`.
    pub(super) fn read_section(&self, section: usize) -> Result<(SectionHeader, Vec<u8>)> {
        let range = self.sections.range(section);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = self.file.read_at(&mut bytes, range.start);
        read.map_err(|error| self.failed(error))?;
        let read = bytes
            .split_first_chunk()
            .map(|(header, stored)| (SectionHeader::from_bytes(header), stored))
            .filter(|(header, _)| self.sections.is_of(section, header))
            .ok_or_else(|| damaged("the header of a section does not match its directory"))
            .and_then(|(header, stored)| Ok((header, decompress(&header, stored)?)));
        read.map_err(|error| error.at(&self.path))
    }

    /// The row of a series, if it has one.
    ///
    /// # Errors
    /// As [`ParkedFile::read_page`].
    pub(crate) fn read(&self, id: SeriesId) -> Result<Option<SeriesRow>> {
        let Some(page) = self.page_of(id) else {
            return Ok(None);
        };
        let rows = self.rows(page, low_bits(id).into(), |other| other == id);
        Ok(rows?.pop())
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// How long the labels are that it has, as they are read.
    pub(crate) fn label_bytes(&self) -> u64 {
        self.label_bytes
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the system to fetch these pages, which will be read next, so that it does so at once.
    pub(crate) fn will_read(&self, pages: impl Iterator<Item = usize>) {
        for page in pages {
            let range = self.sections.range(page);
            self.file.will_read(range.start, range.end - range.start);
        }
    }

    /// Bytes of memory it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sections = self.pages.memory_bytes() + self.sections.memory_bytes();
        // Its own fields are among those of the file.
        size_of::<Self>() + self.directory.memory_bytes() + sections
    }

    #[cold]
    fn failed(&self, error: io::Error) -> Error {
        Error::io("cannot read a series file", &self.path, error)
    }
}

/// The directory of a file, the header of its section and where that begins.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(super) fn read_directory(
    file: &dyn File,
    path: &Path,
    meta: &SeriesFileMeta,
) -> Result<(Directory, SectionHeader, u64)> {
    let failed = |error| Error::io("cannot open a series file", path, error);
    let no_directory = || damaged("its directory is invalid").at(path);
    // Behind the header and before the length of the section.
    let end = meta.len_bytes - FOOTER_BYTES as u64 - DIRECTORY_LEN_BYTES as u64;
    let mut len = [0; DIRECTORY_LEN_BYTES];
    file.read_at(&mut len, end).map_err(failed)?;
    let len = u64::from(word_at(&len, 0));
    let is_there = end.checked_sub(len).filter(|&at| at >= HEADER_BYTES as u64);
    let at = is_there.ok_or_else(no_directory)?;
    let mut section = vec![0; len as usize];
    file.read_at(&mut section, at).map_err(failed)?;
    let (header, stored) = section.split_first_chunk().ok_or_else(no_directory)?;
    let header = SectionHeader::from_bytes(header);
    if header.section_len() != len || header.rows & DIRECTORY == 0 {
        return Err(no_directory());
    }
    let raw = decompress(&header, stored).map_err(|error| error.at(path))?;
    let directory = Directory::decode(&raw, header.rows & !DIRECTORY);
    Ok((directory.ok_or_else(no_directory)?, header, at))
}

thread_local! {
    /// Making one, of 100 KB, takes longer than a page.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The bytes of a section, without the name of the file in an error.
fn decompress(header: &SectionHeader, stored: &[u8]) -> Result<Vec<u8>> {
    if header.raw_len as usize > SECTION_BYTES_MAX {
        return Err(damaged("a section is too long"));
    }
    DECOMPRESSOR.with_borrow_mut(|held| {
        let decompressor = match held {
            Some(decompressor) => decompressor,
            None => {
                let new = Decompressor::new();
                held.insert(new.map_err(|_| damaged("a section does not decompress"))?)
            }
        };
        let mut raw = Vec::new();
        header.decompress(stored, decompressor, &mut raw)?;
        Ok(raw)
    })
}
