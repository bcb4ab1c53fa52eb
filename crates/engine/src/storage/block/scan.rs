//! A walk over a whole block, for merges and checks.
//!
//! Entries are read page by page, chunks through a window of one large read. Chunks
//! that are not requested are only read as part of a window. The walk bypasses the
//! cache.

use crate::base::error::Result;
use crate::format::chunk::{Chunk, damaged};
use crate::storage::block::entry::{Entry, Kind};
use crate::storage::block::format::corrupt;
use crate::storage::block::reader::Block;
use crate::storage::block::stats;
use crate::storage::block::window::Window;
use crate::storage::block::writer::STATS_SAMPLES_MIN;
use latewood_codec::Stats;
use latewood_model::Timestamp;
use std::sync::Arc;

/// Bytes of one read.
const WINDOW_BYTES: u64 = 1024 * 1024;

/// A walk over the entries of a block, in order.
#[derive(Debug)]
pub(crate) struct Scan {
    block: Arc<Block>,
    page: usize,
    entries: std::vec::IntoIter<Entry>,
    window: Window,
}

impl Scan {
    pub(crate) fn new(block: Arc<Block>) -> Self {
        Self {
            block,
            page: 0,
            entries: Vec::new().into_iter(),
            window: Window::default(),
        }
    }

    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    /// `Io` and `Corrupt` where an index page cannot be read.
    pub(crate) fn advance(&mut self) -> Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some(entry));
            }
            if self.page == self.block.pages()? {
                return Ok(None);
            }
            let page = self.block.read_page(self.page)?;
            self.page += 1;
            self.entries = page.entries().collect::<Vec<_>>().into_iter();
        }
    }

    /// The chunk of an entry. Fastest in the order of the entries.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn chunk(&mut self, entry: &Entry) -> Result<Arc<Chunk>> {
        if !self.window.holds(entry) {
            self.block.check_place(entry)?;
            let (from, to) = entry.bytes_span();
            let to = to.max(self.block.chunks_end()?.min(from + WINDOW_BYTES));
            self.window.load(&self.block, from, to)?;
        }
        self.window.chunk(&self.block, entry)
    }
}

impl Block {
    /// Reads the whole block and checks every checksum and invariant: entries
    /// ascend and add up to the totals of the footer, and every chunk matches its
    /// entry, including the statistics.
    ///
    /// # Errors
    /// `Io`, and `Corrupt` at the first violation.
    pub(crate) fn verify(self: &Arc<Self>) -> Result<()> {
        let mut scan = self.scan();
        let (mut entries, mut series, mut samples) = (0_u64, 0_u64, 0_u64);
        let (mut first, mut last) = (Timestamp::MAX, Timestamp::MIN);
        let mut before: Option<Entry> = None;
        while let Some(entry) = scan.advance()? {
            if let Some(before) = &before {
                let ascends = entry.id > before.id
                    || entry.id == before.id
                        && (entry.kind != Kind::Base || entry.first > before.last);
                if !ascends {
                    return Err(self.damaged(&entry, "is out of order"));
                }
            }
            entries += 1;
            samples = samples.saturating_add(u64::from(entry.count));
            series += u64::from(before.is_none_or(|before| before.id != entry.id));
            (first, last) = (first.min(entry.first), last.max(entry.last));
            before = Some(entry);
            if entry.kind != Kind::Tombstone {
                let chunk = scan.chunk(&entry)?;
                let known = expected_stats(&entry, &chunk);
                if !known.is_ok_and(|known| same(known, entry.values)) {
                    return Err(self.damaged(&entry, "has statistics that do not match the index"));
                }
                if decodes(&chunk).is_err() {
                    return Err(self.damaged(&entry, "does not decode"));
                }
            }
        }
        let meta = self.meta();
        let sound = (entries, series, samples) == (meta.entries, meta.series, meta.samples)
            && (first, last) == (meta.first, meta.last)
            && before.map(|before| before.id) == Some(self.last_id()?);
        if sound {
            Ok(())
        } else {
            Err(corrupt("its entries do not match its footer").at(self.path()))
        }
    }
}

/// The statistics that the entry of a chunk must have.
fn expected_stats(entry: &Entry, chunk: &Chunk) -> Result<Option<Stats>> {
    match entry.kind {
        Kind::Base if chunk.count() >= STATS_SAMPLES_MIN => stats::of(chunk),
        _ => Ok(None),
    }
}

/// Equal bit for bit: both are NaN if all values are.
fn same(left: Option<Stats>, right: Option<Stats>) -> bool {
    let bits = |stats: Stats| {
        let numbers = [stats.min, stats.max, stats.sum].map(f64::to_bits);
        (numbers, stats.nan_count)
    };
    left.map(bits) == right.map(bits)
}

fn decodes(chunk: &Chunk) -> Result<()> {
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    for index in 0..chunk.frame_count() {
        timestamps.clear();
        values.clear();
        let frame = chunk.frame(index)?;
        frame
            .decode(&mut timestamps, &mut values)
            .map_err(damaged)?;
        if !timestamps.is_sorted_by(|a, b| a < b) {
            return Err(corrupt("its timestamps do not ascend"));
        }
    }
    Ok(())
}
