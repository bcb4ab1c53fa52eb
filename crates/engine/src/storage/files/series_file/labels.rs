//! The labels of the rows of a file of parked series, from pair to rows, and the hashes of its keys.
//!
//! An answer reads the label blocks that it needs, and each of them once. Tested with the files.

use crate::base::error::{Error, Result};
use crate::base::key_hash::key_hash;
use crate::base::partition::first_of;
use crate::storage::files::series_file::ParkedFile;
use crate::storage::files::series_file::directory::HASH_BYTES;
use crate::storage::files::series_file::format::{LABELS, damaged};
use crate::storage::files::series_file::label_blocks::{Entries, behind_name, name_key, split_key};
use latewood_model::{SeriesId, Timestamp};
use roaring::RoaringBitmap;
use std::ops::ControlFlow;

/// Newest samples that a file tells of, at most.
pub(crate) const NEWEST_MAX: usize = 4;

impl ParkedFile {
    /// The low bits of the ids of the rows that carry the label `name` with one of these values, which
    /// ascend. Reads a block for each value, or fewer.
    ///
    /// # Errors
    /// `Corrupt` if a part of the file is damaged, `Io`.
    pub(crate) fn carry_any(&self, name: &[u8], values: &[Box<[u8]>]) -> Result<RoaringBitmap> {
        let mut found = RoaringBitmap::new();
        let mut add = |rows: &RoaringBitmap| {
            found |= rows;
            ControlFlow::Continue(())
        };
        if values.len() as u64 > self.pair_count() {
            // It has fewer values than are looked for.
            self.values(name, &mut |value, rows| {
                let is_wanted = values.binary_search_by(|wanted| (**wanted).cmp(value));
                match is_wanted {
                    Ok(_) => add(rows),
                    Err(_) => ControlFlow::Continue(()),
                }
            })?;
        } else {
            self.carry_each(name, values, &mut |_, rows| add(rows))?;
        }
        Ok(found)
    }

    /// Calls `each` with those of `values`, which ascend, that the label `name` has, and the low bits
    /// of the ids of the rows that carry it. Reads a block for each value, or fewer.
    ///
    /// # Errors
    /// As [`ParkedFile::carry_any`].
    pub(crate) fn carry_each(
        &self,
        name: &[u8],
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(&[u8], &RoaringBitmap) -> ControlFlow<()>,
    ) -> Result<()> {
        let (name, mut entries) = (name_key(name), Cursor::new(self));
        // No label has an empty value: that key is the one of the name.
        for value in values.iter().filter(|value| !value.is_empty()) {
            let key = [&*name, value].concat();
            if !entries.seek(&key)? {
                break;
            }
            if entries.key() == key && each(value, &entries.rows()?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The low bits of the ids of the rows that carry the label `name`. Reads a block.
    ///
    /// # Errors
    /// As [`ParkedFile::carry_any`].
    pub(crate) fn carry(&self, name: &[u8]) -> Result<RoaringBitmap> {
        let (key, mut entries) = (name_key(name), Cursor::new(self));
        if entries.seek(&key)? && entries.key() == key {
            return entries.rows();
        }
        Ok(RoaringBitmap::new())
    }

    /// Calls `each` with every label name, in byte order, and the low bits of the ids of the rows that
    /// carry it. Reads one or two blocks a name.
    ///
    /// # Errors
    /// As [`ParkedFile::carry_any`].
    pub(crate) fn names(
        &self,
        each: &mut dyn FnMut(&[u8], &RoaringBitmap) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut entries = Cursor::new(self);
        let mut next = Vec::new();
        while entries.seek(&next)? {
            let key = split_key(entries.key()).filter(|(_, value)| value.is_empty());
            let (name, _) = key.ok_or_else(|| entries.invalid())?;
            if each(&name, &entries.rows()?).is_break() {
                break;
            }
            next = behind_name(entries.key().to_vec());
        }
        Ok(())
    }

    /// Calls `each` with every value of the label `name`, in byte order, and the low bits of the ids of
    /// the rows that carry it. Reads the blocks of this name.
    ///
    /// # Errors
    /// As [`ParkedFile::carry_any`].
    pub(crate) fn values(
        &self,
        name: &[u8],
        each: &mut dyn FnMut(&[u8], &RoaringBitmap) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut entries = Cursor::new(self);
        let name = name_key(name);
        if !entries.seek(&name)? || !entries.key().starts_with(&name) {
            return Ok(());
        }
        if entries.key() != name {
            return Err(entries.invalid());
        }
        while entries.advance()?
            && let Some(value) = entries.key().strip_prefix(&*name)
        {
            if each(value, &entries.rows()?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// How many pairs of a label name and a value its rows carry. O(1).
    pub(crate) fn pair_count(&self) -> u64 {
        self.directory().pair_count
    }

    /// Whether senders made the series of all rows: then their keys say their labels, unless they were
    /// renamed. O(1).
    pub(crate) fn all_sent(&self) -> bool {
        self.directory().all_sent()
    }

    /// The hash of the key of each row (`base/key_hash.rs`), in the order of their ids. Reads one
    /// section; all rows if the file was written with another seed.
    ///
    /// # Errors
    /// As [`ParkedFile::carry_any`].
    pub(crate) fn key_hashes(&self, key_seed: u64) -> Result<Vec<u64>> {
        let directory = self.directory();
        if directory.key_seed == key_seed {
            let (_, raw) = self.read_section(self.pages() + directory.blocks.len())?;
            let (hashes, rest) = raw.as_chunks::<HASH_BYTES>();
            if hashes.len() as u64 != self.len() || !rest.is_empty() {
                return Err(damaged("the hashes of its keys do not match its rows").at(self.path()));
            }
            return Ok(hashes.iter().copied().map(u64::from_le_bytes).collect());
        }
        let mut hashes = Vec::new();
        for page in 0..self.pages() {
            let rows = self.read_page(page)?;
            hashes.extend(rows.iter().map(|row| key_hash(key_seed, &row.key)));
        }
        Ok(hashes)
    }

    /// The newest samples of the rows that have the newest ones, at most [`NEWEST_MAX`], with the ids
    /// of their series, ascending. O(1).
    pub(crate) fn newest(&self) -> Vec<(Timestamp, SeriesId)> {
        self.directory().newest(self.meta().partition)
    }

    /// When those of its rows expire that do, with the ids of their series, ascending. Linear in them.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (SeriesId, i64)> {
        let first = first_of(self.meta().partition).0;
        let times = self.directory().expiries.iter();
        times.map(move |(low, at_ms)| (SeriesId(first + u64::from(low)), at_ms))
    }
}

/// A place among the entries of all label blocks, which moves forward only.
struct Cursor<'a> {
    file: &'a ParkedFile,
    /// Where it is.
    block: Option<usize>,
    entries: Entries,
}

impl<'a> Cursor<'a> {
    fn new(file: &'a ParkedFile) -> Self {
        Self {
            file,
            block: None,
            entries: Entries::default(),
        }
    }

    /// Moves to the first entry whose key is not below `key`; `false` if there is none. Keys ascend
    /// from call to call.
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let blocks = &self.file.directory().blocks;
        if blocks.len() == 0 {
            return Ok(false);
        }
        let block = blocks.block_of(key);
        if self.block.is_none_or(|at| at < block) {
            self.enter(block)?;
        }
        let mut is_there = true;
        while is_there && self.entries.key() < key {
            is_there = self.advance()?;
        }
        Ok(is_there)
    }

    /// Moves to the next entry; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        let next = self.block.map_or(0, |block| block + 1);
        let blocks = &self.file.directory().blocks;
        if self.entries.advance().ok_or_else(|| self.invalid())? {
            let is_below = next == blocks.len() || self.key() < blocks.separator(next);
            return is_below.then_some(true).ok_or_else(|| self.invalid());
        }
        if next == blocks.len() {
            return Ok(false);
        }
        self.enter(next)?;
        Ok(true)
    }

    /// Moves to the first entry of a block.
    fn enter(&mut self, block: usize) -> Result<()> {
        let directory = self.file.directory();
        let (header, raw) = self.file.read_section(self.file.pages() + block)?;
        self.entries = Entries::new(raw, header.rows & !LABELS);
        self.block = Some(block);
        let is_there = self.entries.advance() == Some(true)
            && self.entries.key() >= directory.blocks.separator(block)
            && !self.entries.key().is_empty()
            && (block + 1 == directory.blocks.len()
                || self.entries.key() < directory.blocks.separator(block + 1));
        is_there.then_some(()).ok_or_else(|| self.invalid())
    }

    fn key(&self) -> &[u8] {
        self.entries.key()
    }

    fn rows(&self) -> Result<RoaringBitmap> {
        let rows = self.entries.rows();
        let rows = rows.filter(|rows| rows.is_subset(&self.file.directory().pages.ids));
        rows.ok_or_else(|| self.invalid())
    }

    #[cold]
    fn invalid(&self) -> Error {
        damaged("a label block is invalid").at(self.file.path())
    }
}
