//! A walk over a block, series by series.

use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::storage::block::{Block, Entry, Scan};
use latewood_model::SeriesId;
use std::sync::Arc;

/// Stands before the entries of a series of a block.
pub(crate) struct Cursor {
    pub(crate) block: Arc<Block>,
    scan: Scan,
    next: Option<Entry>,
}

impl Cursor {
    /// Before the first series of `block`.
    pub(crate) fn new(block: &Arc<Block>) -> Result<Self> {
        let mut scan = block.scan();
        let next = scan.advance()?;
        Ok(Self {
            block: block.clone(),
            scan,
            next,
        })
    }

    /// The series that comes next; `None` at the end.
    pub(crate) fn id(&self) -> Option<SeriesId> {
        self.next.map(|entry| entry.id)
    }

    /// All entries of `id` where that is the series that comes next; none
    /// otherwise.
    pub(crate) fn take(&mut self, id: SeriesId) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next.filter(|entry| entry.id == id) {
            entries.push(entry);
            self.next = self.scan.advance()?;
        }
        Ok(entries)
    }

    /// The chunk of an entry that was taken.
    pub(crate) fn chunk(&mut self, entry: &Entry) -> Result<Arc<Chunk>> {
        self.scan.chunk(entry)
    }
}

/// The smallest series that any cursor stands before.
pub(crate) fn next_id<'a>(cursors: impl IntoIterator<Item = &'a Cursor>) -> Option<SeriesId> {
    cursors.into_iter().filter_map(Cursor::id).min()
}
