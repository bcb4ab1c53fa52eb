//! Rows of parked series: reading them from files, before a lock is taken, and leaving that to threads
//! for which nobody waits ([`crate::io::waiting::leave_rows`]).
//!
//! Tested by `recovery/tests/parked.rs` and `tests/db_rows.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::waiting::leaves_rows;
use crate::keyspace::core::Core;
use crate::observe::notices::About;
use crate::series::presence::{BROUGHT_MAX, Linked, Parked};
use crate::storage::files::parked::{ParkedFile, no_row};
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Refuses to go on where this thread leaves rows to others.
pub(super) fn leave_rows() -> Result<()> {
    if leaves_rows() {
        let text = "the rows of parked series are not at hand";
        return Err(Error::new(ErrorKind::Away, text));
    }
    Ok(())
}

impl Core {
    /// What was read of a file of parked series; damage is told to the operator.
    pub(super) fn told<T>(&self, read: Result<T>) -> Result<T> {
        read.inspect_err(|error| {
            if error.kind() == ErrorKind::Corrupt {
                self.observe.notices.tell(About::Damage, error);
            }
        })
    }

    /// Reads the row of a parked series from its file.
    pub(super) fn read_parked(&self, id: SeriesId) -> Result<Parked> {
        self.store.parked.note_read();
        let file = self.store.parked.file_of(id).ok_or_else(|| no_row(id))?;
        self.as_parked(self.row_in(&file, id)?, &file)
    }

    /// The row of a series that a file must have.
    pub(super) fn row_in(&self, file: &ParkedFile, id: SeriesId) -> Result<SeriesRow> {
        let read = file.read(id).and_then(|row| row.ok_or_else(|| no_row(id)));
        let path = || self.store.series_file_path(file.meta().number);
        self.told(read.map_err(|error| error.or_at(path)))
    }

    /// The series of a row of this file.
    fn as_parked(&self, row: SeriesRow, file: &ParkedFile) -> Result<Parked> {
        let checked = row.check_parked();
        let path = || self.store.series_file_path(file.meta().number);
        checked.map_err(|error| error.or_at(path))?;
        Ok(Parked { row })
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
            if state.parked.is_away(place)
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
            match self.told(file.read_some(page, &ids)) {
                Ok(rows) => {
                    for row in rows {
                        brought = brought.and(self.hold(row, &file));
                    }
                }
                Err(error) => brought = brought.and(Err(error)),
            }
        }
        brought
    }

    /// Brings the rows of those series that are ends of compaction rules to hand, as
    /// [`Core::bring_or_leave`]. No lock may be held.
    ///
    /// # Errors
    /// Those of [`Core::bring_or_leave`].
    pub(crate) fn bring_linked(&self, ids: impl Iterator<Item = SeriesId>) -> Result<()> {
        let is_away = |id: &SeriesId| self.linked_away(*id) != Linked::default();
        self.bring_away(&ids.filter(is_away).collect::<Vec<_>>())
    }

    /// The same for a series if it is the destination of one.
    ///
    /// # Errors
    /// Those of [`Core::bring_or_leave`].
    pub(crate) fn bring_destination(&self, id: SeriesId) -> Result<()> {
        if self.linked_away(id).is_destination {
            return self.bring_away(&[id]);
        }
        Ok(())
    }

    /// Which ends of rules a series is that is parked and whose row is not at hand.
    fn linked_away(&self, id: SeriesId) -> Linked {
        let (state, place) = (self.shards.lock_of(id), self.shards.place_of(id));
        match state.parked.held(place) {
            Some(_) => Linked::default(),
            None => state.parked.linked(place),
        }
    }

    fn bring_away(&self, away: &[SeriesId]) -> Result<()> {
        if away.is_empty() {
            return Ok(());
        }
        leave_rows()?;
        self.bring(away)
    }

    /// Keeps the row of a file at hand, if it is what counts.
    fn hold(&self, row: SeriesRow, file: &ParkedFile) -> Result<()> {
        let (id, place) = (row.id, self.shards.place_of(row.id));
        let parked = self.as_parked(row, file)?;
        let mut state = self.shards.lock_of(id);
        let newest = self.store.parked.file_of(id);
        if state.parked.is_filed(place)
            && newest.is_some_and(|newest| newest.meta().number == file.meta().number)
        {
            state.parked.hold(place, parked);
        }
        Ok(())
    }

    /// Whether a series is parked and its row not at hand.
    pub(crate) fn is_away(&self, id: SeriesId) -> bool {
        let place = self.shards.place_of(id);
        self.shards.lock_of(id).parked.is_away(place)
    }

    /// The parked series that may be under these keys, which the map of keys lacks, and whose rows are
    /// not at hand.
    pub(crate) fn away<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Vec<SeriesId> {
        // What cannot be read is an error for whoever takes the key.
        let parked = keys.filter_map(|key| self.parked_keys.find(key).ok()?);
        parked.filter(|&id| self.is_away(id)).collect()
    }

    /// Wakes those of the series that are parked. Reads their rows, many at a time. No lock may be held.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if rows cannot be read: these series stay parked.
    pub(crate) fn wake_some(&self, ids: &[SeriesId]) -> Result<()> {
        let mut woken = Ok(());
        for some in ids.chunks(BROUGHT_MAX) {
            let brought = self.bring(some);
            for &id in some {
                let woke = self.wake(&mut self.shards.lock_of(id), id);
                woken = woken.and(woke.map(drop));
            }
            woken = woken.and(brought);
            self.index.relieve();
        }
        woken
    }

    /// As [`Core::bring`], unless this thread leaves rows to others.
    ///
    /// # Errors
    /// Those of [`Core::bring`]; `Away` if it leaves them.
    pub(crate) fn bring_or_leave(&self, ids: &[SeriesId]) -> Result<()> {
        if ids.iter().any(|&id| self.is_away(id)) {
            leave_rows()?;
        }
        self.bring(ids)
    }
}
