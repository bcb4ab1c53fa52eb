//! The pages of a file of parked series, as its directory has them: what a sweep has to know of
//! them, and which series they hold.
//!
//! Rows are noted as they are met ([`Pages::note`], [`Pages::end_page`]). Tested with the files.

use crate::base::partition::PARTITION_BITS;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::format::{SECTION_HEADER_BYTES, SectionHeader};
use crate::storage::files::series_file::postings::{IDS_BYTES, bits_of};
use latewood_model::{SeriesId, Timestamp};
use roaring::RoaringBitmap;
use std::ops::Range;

/// The bits of an id that differ within a partition.
const LOW_BITS: u64 = (1 << PARTITION_BITS) - 1;

/// What tells whether retention may have left nothing of some row of a page: lower bounds of what
/// `rules/ends/terms.rs` judges by. `i64::MAX` where there is no such row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageTerms {
    /// The oldest of the newest timestamps of its rows; the smallest one if a row has no sample.
    pub(crate) newest_min: Timestamp,
    /// When the first of those with a retention of their own is past it: the newest timestamp and
    /// the retention; the smallest one if such a row has no sample.
    pub(crate) ends_min_ms: i64,
}

impl PageTerms {
    const NONE: Self = Self {
        newest_min: i64::MAX,
        ends_min_ms: i64::MAX,
    };

    fn note(&mut self, row: &SeriesRow) {
        self.newest_min = self.newest_min.min(row.newest.unwrap_or(i64::MIN));
        let retention_ms = row.options.retention_ms;
        if retention_ms > 0 {
            let end_ms = row
                .newest
                .map(|newest| newest.saturating_add_unsigned(retention_ms));
            self.ends_min_ms = self.ends_min_ms.min(end_ms.unwrap_or(i64::MIN));
        }
    }

    /// Whether some row of the page may have ended, with this floor and time of the database.
    pub(crate) fn may_have_ended(&self, floor: Timestamp, now_ms: i64) -> bool {
        // One without a sample ends at once where it has a retention of its own.
        self.newest_min < floor || self.ends_min_ms < now_ms || self.ends_min_ms == i64::MIN
    }
}

/// A page. It begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) header: SectionHeader,
    /// Its first row: the low bits of the id.
    pub(super) first: u16,
    pub(super) terms: PageTerms,
}

/// All pages of a file, and their ids.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) pages: Vec<Page>,
    /// The low bits of the ids of all rows.
    pub(super) ids: RoaringBitmap,
    /// First row and terms of the page that is not over.
    open: Option<(u16, PageTerms)>,
}

pub(super) fn low_bits(id: SeriesId) -> u16 {
    (id.0 & LOW_BITS) as u16
}

impl Pages {
    /// Adds a row to the page that is not over.
    pub(super) fn note(&mut self, row: &SeriesRow) {
        let low = low_bits(row.id);
        self.ids.insert(u32::from(low));
        let (_, terms) = self.open.get_or_insert((low, PageTerms::NONE));
        terms.note(row);
    }

    /// The page is over, and this is the header of its section.
    pub(super) fn end_page(&mut self, header: SectionHeader) {
        let page = self.open.take().map(|(first, terms)| Page {
            header,
            first,
            terms,
        });
        self.pages.extend(page);
    }

    pub(super) fn put(&self, out: &mut Put) {
        let (mut newest, mut end) = (0, 0);
        for page in &self.pages {
            out.raw(&page.header.bytes());
            out.number(u64::from(page.first));
            out.step(newest, page.terms.newest_min);
            out.step(end, page.terms.ends_min_ms);
            (newest, end) = (page.terms.newest_min, page.terms.ends_min_ms);
        }
        // They are low bits.
        out.raw(&bits_of(self.ids.iter().map(|low| low as u16)));
    }

    /// Reads `count` pages; `None` if they contradict themselves.
    pub(super) fn take(bytes: &mut Take<'_>, count: u32) -> Option<Self> {
        let mut pages: Vec<Page> = Vec::new();
        let (mut newest_min, mut ends_min_ms) = (0, 0);
        for _ in 0..count {
            let header = bytes.raw(SECTION_HEADER_BYTES as u64)?;
            let header = SectionHeader::from_bytes(header.try_into().ok()?);
            let first = u16::try_from(bytes.number()?).ok()?;
            newest_min = bytes.step(newest_min)?;
            ends_min_ms = bytes.step(ends_min_ms)?;
            let terms = PageTerms {
                newest_min,
                ends_min_ms,
            };
            pages.push(Page {
                header,
                first,
                terms,
            });
        }
        let mut ids = RoaringBitmap::from_lsb0_bytes(0, bytes.raw(IDS_BYTES as u64)?);
        ids.optimize();
        let pages = Self {
            pages,
            ids,
            open: None,
        };
        pages.is_sound().then_some(pages)
    }

    /// Whether each page begins with a row behind those of the page before, and has as many rows as
    /// its section says.
    fn is_sound(&self) -> bool {
        let table = PageTable::of(&self.pages);
        let is_sound = |page: usize| {
            let (rows, first) = (table.lows(page), u32::from(self.pages[page].first));
            let count = u64::from(self.pages[page].header.rows);
            rows.start == first
                && rows.start < rows.end
                && self.ids.contains(first)
                && self.ids.range_cardinality(rows) == count
        };
        let first = self.pages.first().map(|page| u32::from(page.first));
        (0..self.pages.len()).all(is_sound) && self.ids.min() == first
    }
}

/// What an open file holds of its pages, since a partition has thousands.
#[derive(Debug)]
pub(super) struct PageTable {
    firsts: Box<[u16]>,
    newest_min: Bounds,
    ends_min_ms: Bounds,
}

impl PageTable {
    pub(super) fn of(pages: &[Page]) -> Self {
        Self {
            firsts: pages.iter().map(|page| page.first).collect(),
            newest_min: Bounds::of(pages.iter().map(|page| page.terms.newest_min)),
            ends_min_ms: Bounds::of(pages.iter().map(|page| page.terms.ends_min_ms)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// The page with this row, if any has it.
    pub(super) fn page_of(&self, low: u16) -> usize {
        let behind = self.firsts.partition_point(|first| *first <= low);
        behind.saturating_sub(1)
    }

    /// The low bits that ids of a page may have.
    pub(super) fn lows(&self, page: usize) -> Range<u32> {
        let next = self.firsts.get(page + 1);
        let end = next.map_or(1 << PARTITION_BITS, |next| u32::from(*next));
        u32::from(self.firsts[page])..end
    }

    /// What tells whether a row of a page may have ended: bounds no higher than those that the file
    /// says, and less than a second lower where these are within a hundred years of the least.
    pub(super) fn terms(&self, page: usize) -> PageTerms {
        PageTerms {
            newest_min: self.newest_min.of_page(page),
            ends_min_ms: self.ends_min_ms.of_page(page),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.firsts)
            + size_of_val(&*self.newest_min.above)
            + size_of_val(&*self.ends_min_ms.above)
    }
}

const SECOND_MS: u64 = 1000;

/// A lower bound for each page, in four bytes: nothing where all are `i64::MAX`.
#[derive(Debug)]
struct Bounds {
    /// The least one but `i64::MIN`.
    least: i64,
    /// How many whole seconds each is above that, and one; [`Bounds::LOWEST`] and [`Bounds::HIGHEST`] say
    /// which end it is.
    above: Box<[u32]>,
}

impl Bounds {
    const LOWEST: u32 = 0;
    const HIGHEST: u32 = u32::MAX;

    fn of(bounds: impl Iterator<Item = i64> + Clone) -> Self {
        if bounds.clone().all(|bound| bound == i64::MAX) {
            return Self {
                least: 0,
                above: Box::default(),
            };
        }
        let least = bounds.clone().filter(|&bound| bound > i64::MIN).min();
        let least = least.unwrap_or(0);
        let above = bounds.map(|bound| match bound {
            i64::MIN => Self::LOWEST,
            i64::MAX => Self::HIGHEST,
            // It fits.
            _ => (bound.abs_diff(least) / SECOND_MS + 1).min(u64::from(Self::HIGHEST - 1)) as u32,
        });
        let above = above.collect();
        Self { least, above }
    }

    fn of_page(&self, page: usize) -> i64 {
        match self.above.get(page) {
            None | Some(&Self::HIGHEST) => i64::MAX,
            Some(&Self::LOWEST) => i64::MIN,
            Some(above) => self.least + i64::from(above - 1) * SECOND_MS as i64,
        }
    }
}
