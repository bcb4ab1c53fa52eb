//! The directory of a file of parked series: where its pages, its label blocks and the hashes of its
//! keys are, and what is asked most often of them.
//!
//! A writer and a sequential reader make it of the rows and sections that they meet; the bytes of
//! both are the same. Tested with the files.

use crate::base::partition::first_of;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::expiries::Expiries;
use crate::storage::files::series_file::format::{
    HASHES, SECTION_HEADER_BYTES, SectionHeader, chained,
};
use crate::storage::files::series_file::label_blocks::LabelBlocks;
use crate::storage::files::series_file::labels::NEWEST_MAX;
use crate::storage::files::series_file::links::LinkList;
use crate::storage::files::series_file::pages::{Pages, low_bits};
use crate::storage::files::series_file::sections::Sections;
use latewood_model::{MadeBy, SeriesId, Timestamp};

/// Bytes of the hash of a key.
pub(super) const HASH_BYTES: usize = 8;

/// Sections stand in the order of the fields.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) pages: Pages,
    pub(super) blocks: LabelBlocks,
    pub(super) hashes: Option<SectionHeader>,
    /// What the hashes are made with.
    pub(super) key_seed: u64,
    /// How many pairs of a label name and a value the rows carry.
    pub(super) pair_count: u64,
    /// Rows that a sender did not make.
    made_otherwise: u64,
    /// The newest samples, ascending by time and series, and the low bits of their series.
    newest: Vec<(Timestamp, u16)>,
    pub(super) expiries: Expiries,
    /// Which rows rules tie to which series.
    pub(super) links: LinkList,
}

impl Directory {
    pub(super) fn new(key_seed: u64) -> Self {
        Self {
            key_seed,
            ..Self::default()
        }
    }

    /// Adds a row to the page that is not over.
    pub(super) fn note(&mut self, row: &SeriesRow) {
        self.pages.note(row);
        self.expiries.note(row);
        self.links.note(row);
        self.made_otherwise += u64::from(row.made_by != MadeBy::Sender);
        if let Some(newest) = row.newest {
            let sample = (newest, low_bits(row.id));
            let at = self.newest.partition_point(|held| *held < sample);
            self.newest.insert(at, sample);
            if self.newest.len() > NEWEST_MAX {
                self.newest.remove(0);
            }
        }
    }

    /// The newest samples with their series.
    pub(super) fn newest(&self, partition: u32) -> Vec<(Timestamp, SeriesId)> {
        let first = first_of(partition).0;
        let samples = self.newest.iter();
        let id = |&(at, low)| (at, SeriesId(first + u64::from(low)));
        samples.map(id).collect()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Put::default();
        self.pages.put(&mut out);
        self.blocks.put(&mut out);
        if let Some(hashes) = &self.hashes {
            out.raw(&hashes.bytes());
        }
        out.raw(&self.key_seed.to_le_bytes());
        out.number(self.pair_count);
        out.number(self.made_otherwise);
        out.number(self.newest.len() as u64);
        for &(at, low) in &self.newest {
            out.signed(at);
            out.number(u64::from(low));
        }
        self.links.put(&mut out);
        // Whether it is there is told by what follows.
        self.expiries.put(&mut out);
        out.0
    }

    /// Reads a directory of `count` pages; `None` if it contradicts itself.
    pub(super) fn decode(bytes: &[u8], count: u32) -> Option<Self> {
        let mut bytes = Take(bytes);
        let pages = Pages::take(&mut bytes, count)?;
        let blocks = LabelBlocks::take(&mut bytes)?;
        let hashes = bytes.raw(SECTION_HEADER_BYTES as u64)?;
        let hashes = SectionHeader::from_bytes(hashes.try_into().ok()?);
        let (key_seed, pair_count) = (bytes.long()?, bytes.number()?);
        let made_otherwise = bytes.number()?;
        let mut newest: Vec<(Timestamp, u16)> = Vec::new();
        for _ in 0..bytes.count().filter(|&count| count <= NEWEST_MAX)? {
            let sample = (bytes.signed()?, u16::try_from(bytes.number()?).ok()?);
            let is_sound = newest.last().is_none_or(|last| *last < sample)
                && pages.ids.contains(u32::from(sample.1));
            newest.push(Some(sample).filter(|_| is_sound)?);
        }
        let links = LinkList::take(&mut bytes, &pages.ids)?;
        let expiries = Expiries::take(&mut bytes, &pages.ids)?;
        let rows = pages.ids.len();
        let is_sound = bytes.is_empty()
            && hashes.rows & HASHES != 0
            && u64::from(hashes.rows & !HASHES) == rows
            && u64::from(hashes.raw_len) == rows * HASH_BYTES as u64
            && blocks.headers.is_empty() == (pair_count == 0)
            && pair_count <= blocks.entries()
            && made_otherwise <= rows;
        is_sound.then_some(Self {
            pages,
            blocks,
            hashes: Some(hashes),
            key_seed,
            pair_count,
            made_otherwise,
            newest,
            expiries,
            links,
        })
    }

    /// Whether senders made the series of all rows.
    pub(super) fn all_sent(&self) -> bool {
        self.made_otherwise == 0
    }

    /// The headers of all sections before it, in their order.
    fn headers(&self) -> impl Iterator<Item = &SectionHeader> {
        let pages = self.pages.pages.iter().map(|page| &page.header);
        pages.chain(&self.blocks.headers).chain(&self.hashes)
    }

    /// The checksum over all headers up to here; `chain` is that of the file's own.
    pub(super) fn chain(&self, chain: u32) -> u32 {
        let headers = self.headers();
        headers.fold(chain, |chain, header| chained(chain, &header.bytes()))
    }

    /// Where its sections are.
    pub(super) fn sections(&self) -> Sections {
        Sections::of(self.headers())
    }

    /// Forgets pages and headers of label blocks, of which an open file holds less.
    pub(super) fn forget_sections(&mut self) {
        self.pages.pages = Vec::new();
        self.blocks.headers = Vec::new();
    }

    /// Bytes of memory that it holds without sections.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.ids.serialized_size()
            + self.blocks.memory_bytes()
            + self.newest.capacity() * size_of::<(Timestamp, u16)>()
            + self.expiries.memory_bytes()
            + self.links.memory_bytes()
    }
}
