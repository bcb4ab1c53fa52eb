//! Series as wholes: creating, altering and removing them, and deleting samples.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::io::waiting::fetching;
use crate::keyspace::admission::{admit_series, admit_write};
use crate::keyspace::defaults::check_options;
use crate::log::Position;
use crate::rules::backfill::Wanted;
use crate::series::Deleted;
use latewood_model::{MadeBy, SeriesOptions, Timestamp};

impl Db {
    /// Creates an empty series.
    ///
    /// # Errors
    /// `KeyExists`, `Invalid` options or an owned series, `Limit`, errors of the log.
    pub fn create(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        check_options(options)?;
        let core = &self.core;
        core.check_key(key)?;
        core.check_not_owned(key)?;
        admit_write(&self.core)?;
        self.rules.purge(key)?;
        let hash = core.keys.hash(key);
        let mut state = loop {
            if core.locate(hash, key)?.is_none() {
                admit_series(core)?;
            }
            let state = core.shards[core.shards.shard_of_hash(hash)].lock();
            match core.names(key) {
                (Some(_), _) => {
                    return Err(Error::new(ErrorKind::KeyExists, "key already exists"));
                }
                (None, true) => {}
                (None, false) => break state,
            }
        };
        match core.create_in(&mut state, key, hash, MadeBy::Create, options) {
            Ok(_) => core.log_group(&mut state),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Sets all options of a series. Stored samples keep their encoding.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` options or an owned series, errors of the log.
    pub fn alter(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        check_options(options)?;
        self.alter_with(key, |old| *old = options.clone())
    }

    /// As [`Db::alter`], with the options that `change` makes from the current
    /// ones, atomically. `change` is called under a lock.
    ///
    /// # Errors
    /// Those of [`Db::alter`].
    pub fn alter_with(
        &self,
        key: &[u8],
        change: impl FnOnce(&mut SeriesOptions),
    ) -> Result<Position> {
        self.core.check_not_owned(key)?;
        admit_write(&self.core)?;
        self.rules.recompute_key(key, Wanted::Nothing)?;
        let (mut guard, id) = self.core.lock_series(key)?;
        let state = &mut *guard;
        let place = self.core.shards.place_of(id);
        if let Some(series) = state.slab.get_mut(place) {
            let mut options = series.options(self.core.labels_of(id));
            change(&mut options);
            check_options(&options)?;
            self.core.check_fits_log(key, &options)?;
            let is_other_look = options.labels != self.core.labels_of(id);
            if is_other_look {
                self.core.mark_old_look(state, id);
            }
            let expired = match state.slab.get_mut(place) {
                Some(series) => series.set_options(&options, &mut state.sealer)?,
                None => None,
            };
            state.recount(place);
            self.core.index_labels(id, Some(&options.labels));
            if is_other_look {
                self.core.mark_look(state, id);
            }
            if self.core.log().is_some() {
                state.group.expired(id, expired);
                state.group.alter(id, &options);
            }
        }
        state.note_rules(place);
        self.core.log_group(state)
    }

    /// Removes the samples of `from..=to`. Returns how many were visible to
    /// readers.
    ///
    /// # Errors
    /// `NoSuchKey`; `Invalid` if a rule needs samples that retention has already
    /// removed, or if somebody owns the series; errors of the log. If a damaged block prevents counting, the
    /// samples are removed and the error says so.
    pub fn delete_range(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(u64, Position)> {
        fetching(|| self.try_delete_range(key, from, to))
    }

    fn try_delete_range(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(u64, Position)> {
        self.core.check_writable()?;
        self.core.check_not_owned(key)?;
        self.rules.recompute_key(key, Wanted::Rows(from, to))?;
        let (mut guard, id) = self.core.lock_series(key)?;
        let state = &mut *guard;
        let place = self.core.shards.place_of(id);
        // Older samples are not visible.
        let from = from.max(self.core.store.blocks.floor());
        let watched = self.core.watched_span(state, id, from, to);
        let deleted = match state.slab.get_mut(place) {
            Some(series) => {
                series.check_rules_keep(from)?;
                let deleted = series.delete_range(from, to, &mut state.sealer)?;
                state.recount(place);
                self.core.mark_span(state, id, watched);
                deleted
            }
            None => Deleted::default(),
        };
        if self.core.log().is_some() {
            state.group.expired(id, deleted.expired);
            // There are no samples before 0.
            state.group.delete_range(id, from, to.max(-1));
        }
        state.note_rules(place);
        let position = self.core.log_group(state)?;
        drop(guard);
        let counted = deleted.count().map_err(|error| {
            let text = format!("the samples are deleted, but not counted: {error}");
            // What is away may be there later: that is no reason to delete once more.
            let is_away = error.is_away();
            let kind = if is_away {
                ErrorKind::Unknown
            } else {
                error.kind()
            };
            Error::new(kind, text)
        })?;
        Ok((counted, position))
    }

    /// Removes series. Returns how many existed.
    ///
    /// # Errors
    /// `Invalid` if somebody owns one of them, and then none is removed; errors of the log.
    pub fn remove(&self, keys: &[&[u8]]) -> Result<(u64, Position)> {
        let core = &self.core;
        core.check_writable()?;
        keys.iter().try_for_each(|key| core.check_not_owned(key))?;
        let (mut removed, mut position) = (0, Position::default());
        for &key in keys {
            let done = self.remove_one(key).map_err(|error| match removed {
                0 => error,
                _ => error.amid_write(),
            });
            if let Some(end) = done? {
                position = position.max(end);
                removed += 1;
            }
        }
        Ok((removed, position))
    }

    /// `None` if there is no such series.
    fn remove_one(&self, key: &[u8]) -> Result<Option<Position>> {
        // Closed buckets reach the destinations before the source is removed.
        // Damaged samples do not keep a series from being removed, blocks that are away do.
        self.rules.recompute_key_for_removal(key)?;
        let Some((mut state, id)) = self.core.lock_if_there(key)? else {
            return Ok(None);
        };
        self.core.remove_in(&mut state, key, id).map(Some)
    }
}
