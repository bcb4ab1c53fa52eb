//! Label blocks: sections of a file of parked series that tell which rows carry a label name, and
//! which of them a value of it.
//!
//! Entries ascend by their keys. A *key* is the name, in a form that ends itself, and the value
//! behind it; without a value the entry is that of all rows that carry the name, which comes before
//! its values. An entry says how many bytes its key shares with the one before it. A block can be
//! decoded by itself. The directory has a *separator* for each: a key above all of the blocks
//! before, and not above its first one. Tested with the files.

use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::row_code::shared_bytes;
use crate::storage::files::series_file::format::{LABELS, SECTION_HEADER_BYTES, SectionHeader};
use crate::storage::files::series_file::pairs::Pairs;
use crate::storage::files::series_file::postings::{put_rows, take_rows};
use latewood_model::limits::LABEL_BYTES_MAX;
use roaring::RoaringBitmap;

/// A block ends with the entry that makes it this long,
const BLOCK_BYTES: usize = 8 * 1024;
/// and this many times as long as its first key: so separators stay a small part of all keys.
const FIRST_KEYS: usize = 16;
/// Above what any is long: a key has at most the labels of a series, a name with escapes twice, and
/// its rows are at most a bit for each id.
const BLOCK_BYTES_MAX: usize = (FIRST_KEYS + 2) * 2 * LABEL_BYTES_MAX;

/// In a name, a byte of 0 is followed by this one. What ends a name is below it.
const ZERO: u8 = 1;
const NAME_END: [u8; 2] = [0, 0];

/// The key of what carries a name; those of its values begin with it.
pub(super) fn name_key(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + NAME_END.len());
    for &byte in name {
        key.push(byte);
        if byte == 0 {
            key.push(ZERO);
        }
    }
    key.extend(NAME_END);
    key
}

/// The least key above those of all values of a name, whose key is `name`.
pub(super) fn behind_name(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.last_mut() {
        *end = ZERO;
    }
    name
}

/// The name and the value of a key, which is empty for that of a name; `None` if it is no key.
pub(super) fn split_key(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut name, mut rest) = (Vec::new(), key);
    loop {
        match rest {
            [0, 0, value @ ..] => return (!name.is_empty()).then_some((name, value)),
            [0, ZERO, behind @ ..] => {
                name.push(0);
                rest = behind;
            }
            [0, ..] | [] => return None,
            [byte, behind @ ..] => {
                name.push(*byte);
                rest = behind;
            }
        }
    }
}

/// A block that is to be written, or that a file must have.
pub(super) struct LabelBlock {
    pub(super) raw: Vec<u8>,
    pub(super) entries: u32,
    pub(super) separator: Vec<u8>,
}

/// The label blocks of these pairs.
pub(super) fn blocks_of(pairs: Pairs) -> impl Iterator<Item = LabelBlock> {
    let (mut entries, mut last) = (pairs.entries(), Vec::new());
    let mut is_first = true;
    std::iter::from_fn(move || {
        let mut entry = Some(entries.next()?);
        let mut block = LabelBlock {
            raw: Vec::new(),
            entries: 0,
            separator: Vec::new(),
        };
        let (mut out, mut enough) = (Put::default(), BLOCK_BYTES);
        while out.0.len() < enough
            && let Some((key, lows)) = entry.take().or_else(|| entries.next())
        {
            let mut shared = shared_bytes(&last, &key);
            if block.entries == 0 {
                let len = if is_first { 0 } else { shared + 1 };
                block.separator = key[..len].to_vec();
                enough = enough.max(FIRST_KEYS * key.len());
                (shared, is_first) = (0, false);
            }
            out.number(shared as u64);
            out.string(&key[shared..]);
            put_rows(&mut out, lows.as_slice());
            block.entries += 1;
            last = key;
        }
        block.raw = out.0;
        Some(block)
    })
}

/// The entries of a block, read in their order.
#[derive(Default)]
pub(super) struct Entries {
    raw: Vec<u8>,
    /// Where the next one begins.
    at: usize,
    /// Those that are still to be read.
    left: u32,
    /// The key of the one that was read last, and where its rows are.
    key: Vec<u8>,
    rows_at: usize,
}

impl Entries {
    /// Those of a block of `count` entries.
    pub(super) fn new(raw: Vec<u8>, count: u32) -> Self {
        Self {
            raw,
            left: count,
            ..Self::default()
        }
    }

    /// Reads the next entry; `None` if it is invalid, `false` at the end.
    pub(super) fn advance(&mut self) -> Option<bool> {
        let mut bytes = Take(self.raw.get(self.at..)?);
        if self.left == 0 {
            return bytes.is_empty().then_some(false);
        }
        let shared = usize::try_from(bytes.number()?).ok()?;
        let rest = bytes.string()?;
        if self.key.get(shared..)? >= rest {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.rows_at = self.raw.len() - bytes.0.len();
        take_rows(&mut bytes, None)?;
        self.at = self.raw.len() - bytes.0.len();
        self.left -= 1;
        Some(true)
    }

    /// The key of the entry that was read last.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its rows; `None` if they are invalid.
    pub(super) fn rows(&self) -> Option<RoaringBitmap> {
        let mut rows = RoaringBitmap::new();
        take_rows(&mut Take(self.raw.get(self.rows_at..)?), Some(&mut rows))?;
        Some(rows)
    }
}

/// What the directory has of all label blocks.
#[derive(Debug, Default)]
pub(super) struct LabelBlocks {
    pub(super) headers: Vec<SectionHeader>,
    /// The separators, one behind the other, and where each ends. That of the first block is empty.
    separators: Vec<u8>,
    ends: Vec<u32>,
}

impl LabelBlocks {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many entries they have.
    pub(super) fn entries(&self) -> u64 {
        let entries = |header: &SectionHeader| u64::from(header.rows & !LABELS);
        self.headers.iter().map(entries).sum()
    }

    /// The bytes of all of them, as they are read.
    pub(super) fn raw_bytes(&self) -> u64 {
        let raw = |header: &SectionHeader| u64::from(header.raw_len);
        self.headers.iter().map(raw).sum()
    }

    /// Adds a block.
    pub(super) fn push(&mut self, header: SectionHeader, separator: &[u8]) {
        self.headers.push(header);
        self.separators.extend_from_slice(separator);
        // All are in one section, whose length fits.
        self.ends.push(self.separators.len() as u32);
    }

    /// Takes the separators of `other`, if it has as many.
    pub(super) fn take_separators(&mut self, other: Self) {
        if other.len() == self.len() {
            (self.separators, self.ends) = (other.separators, other.ends);
        }
    }

    pub(super) fn separator(&self, block: usize) -> &[u8] {
        let begin = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.separators[begin as usize..self.ends[block] as usize]
    }

    /// The block in which a key is, if any has it. There is at least one block.
    pub(super) fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.separator(middle) <= key {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(super) fn put(&self, out: &mut Put) {
        out.number(self.len() as u64);
        for (block, header) in self.headers.iter().enumerate() {
            out.raw(&header.bytes());
            out.string(self.separator(block));
        }
    }

    /// Reads them; `None` if they contradict themselves.
    pub(super) fn take(bytes: &mut Take<'_>) -> Option<Self> {
        let mut blocks = Self::default();
        for block in 0..bytes.count()? {
            let header = bytes.raw(SECTION_HEADER_BYTES as u64)?;
            let header = SectionHeader::from_bytes(header.try_into().ok()?);
            let separator = bytes.string()?;
            let ascends = match block {
                0 => separator.is_empty(),
                _ => blocks.separator(block - 1) < separator,
            };
            let entries = header.rows & !LABELS;
            let is_sound = ascends
                && header.rows & LABELS != 0
                && (1..=header.raw_len).contains(&entries)
                && header.raw_len as usize <= BLOCK_BYTES_MAX;
            if !is_sound {
                return None;
            }
            blocks.push(header, separator);
        }
        blocks.separators.shrink_to_fit();
        blocks.ends.shrink_to_fit();
        Some(blocks)
    }

    /// Bytes of memory without the headers.
    pub(super) fn memory_bytes(&self) -> usize {
        self.separators.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}
