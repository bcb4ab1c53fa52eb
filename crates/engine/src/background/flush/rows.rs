//! The rows of files of parked series in the order of their ids, page by page. Of rows of one series
//! the newest counts. Tested with the passes that merge them.

use crate::base::error::Result;
use crate::storage::files::SeriesRow;
use crate::storage::files::parked::ParkedFile;
use latewood_model::SeriesId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) struct Rows<'a>(Vec<Cursor<'a>>);

struct Cursor<'a> {
    file: &'a ParkedFile,
    next_page: usize,
    rows: VecDeque<SeriesRow>,
}

impl<'a> Rows<'a> {
    /// Those of files in their order, the oldest first.
    pub(super) fn new(files: &'a [Arc<ParkedFile>]) -> Self {
        let cursors = files.iter().map(|file| Cursor {
            file,
            next_page: 0,
            rows: VecDeque::new(),
        });
        Self(cursors.collect())
    }

    /// Takes those of series before `end`.
    ///
    /// # Errors
    /// `Corrupt` if a page is damaged, `Io`.
    pub(super) fn take_before(&mut self, end: SeriesId) -> Result<BTreeMap<SeriesId, SeriesRow>> {
        let mut rows = BTreeMap::new();
        for cursor in &mut self.0 {
            while let Some(row) = cursor.next_before(end)? {
                rows.insert(row.id, row);
            }
        }
        Ok(rows)
    }
}

impl Cursor<'_> {
    fn next_before(&mut self, end: SeriesId) -> Result<Option<SeriesRow>> {
        if self.rows.is_empty() && self.next_page < self.file.pages() {
            self.rows = self.file.read_page(self.next_page)?.into();
            self.next_page += 1;
        }
        Ok(self.rows.pop_front_if(|row| row.id < end))
    }
}
