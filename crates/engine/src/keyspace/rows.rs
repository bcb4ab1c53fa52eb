//! Rows of parked series: reading them from files, before a lock is taken, and leaving that to threads
//! for which nobody waits ([`crate::io::waiting::leave_rows`]).
//!
//! Tested by `recovery/tests/parked.rs` and `tests/db_rows.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::waiting::leaves_rows;
use crate::keyspace::core::Core;
use crate::series::presence::Parked;
use crate::storage::files::parked::ParkedFile;
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Core {
    /// Reads the row of a parked series from its file.
    pub(super) fn read_parked(&self, id: SeriesId) -> Result<Parked> {
        self.store.parked.note_read();
        let file = self.store.parked.file_of(id);
        let row = file.map(|file| file.read(id)).transpose()?.flatten();
        let row = row.ok_or_else(|| {
            let text = format!("no file of parked series has series {}", id.0);
            Error::new(ErrorKind::Corrupt, text)
        })?;
        Ok(Parked::new(row, || 0))
    }

    /// Brings the rows of those series to hand that are parked: whoever takes the locks of their
    /// shards next finds them there, unless very many others were brought meanwhile. The reads of
    /// the files overlap. No lock may be held.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if a row cannot be read; the others are at hand.
    pub(crate) fn bring(&self, ids: &[SeriesId]) -> Result<()> {
        let files = self.store.parked.get();
        if files.is_empty() {
            return Ok(());
        }
        // By page; pages by file.
        let mut wanted: BTreeMap<(u64, usize), (Arc<ParkedFile>, BTreeSet<SeriesId>)> =
            BTreeMap::new();
        for &id in ids {
            let place = self.shards.place_of(id);
            let state = self.shards.lock_of(id);
            if state.parked.is_filed(place)
                && state.parked.held(place).is_none()
                && let Some(file) = files.file_of(id)
                && let Some(page) = file.page_of(id)
            {
                let page = wanted.entry((file.meta().number, page));
                page.or_insert_with(|| (file.clone(), BTreeSet::new()))
                    .1
                    .insert(id);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        self.store.parked.note_read();
        if wanted.len() > 1 {
            for (&(_, page), (file, _)) in &wanted {
                file.will_read(std::iter::once(page));
            }
        }
        let mut brought = Ok(());
        for ((_, page), (file, ids)) in wanted {
            match file.read_page(page) {
                Ok(rows) => rows
                    .into_iter()
                    .filter(|row| ids.contains(&row.id))
                    .for_each(|row| self.hold(row, &file)),
                Err(error) => brought = brought.and(Err(error)),
            }
        }
        brought
    }

    /// Keeps the row of a file at hand, if it is what counts.
    fn hold(&self, row: SeriesRow, file: &ParkedFile) {
        let (id, place) = (row.id, self.shards.place_of(row.id));
        let mut state = self.shards.lock_of(id);
        let newest = self.store.parked.file_of(id);
        if state.parked.is_filed(place)
            && newest.is_some_and(|newest| newest.meta().number == file.meta().number)
        {
            state.parked.hold(place, Parked::new(row, || 0));
        }
    }

    /// Whether a series is parked and its row not at hand.
    fn is_away(&self, id: SeriesId) -> bool {
        let (state, place) = (self.shards.lock_of(id), self.shards.place_of(id));
        state.parked.is_filed(place) && state.parked.held(place).is_none()
    }

    /// The parked series that may be under keys of these hashes and whose rows are not at hand. The
    /// map of keys lacks the keys.
    pub(crate) fn away(&self, hashes: impl Iterator<Item = u64>) -> Vec<SeriesId> {
        let parked = hashes.filter_map(|hash| self.parked_keys.find(hash));
        parked.filter(|&id| self.is_away(id)).collect()
    }

    /// As [`Core::bring`], unless this thread leaves rows to others.
    ///
    /// # Errors
    /// Those of [`Core::bring`]; `Away` if it leaves them.
    pub(crate) fn bring_or_leave(&self, ids: &[SeriesId]) -> Result<()> {
        if leaves_rows() && ids.iter().any(|&id| self.is_away(id)) {
            let text = "the rows of parked series are not at hand";
            return Err(Error::new(ErrorKind::Away, text));
        }
        self.bring(ids)
    }
}
