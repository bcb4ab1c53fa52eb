//! Giving a series another key.
//!
//! The series stays in its place; only the map of keys changes. A series under the
//! new key is removed in the same group of the log, so a crash shows both changes
//! or neither. All shards that could see half of the change are locked: those of
//! both series, and those that would create either key.
//!
//! A writer that looked up a key before it had the lock must look it up again
//! after a rename. The counter `Keys::renames` tells it, at the cost of one load
//! per batch. Tested by `tests/db_rename.rs`, `tests/db_races.rs` and the model test.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::series::shard::{ShardGuard, ShardState};
use latewood_model::SeriesId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Db {
    /// Renames the series under `from` to `to`. If a series exists under `to`, it
    /// is removed with `replace`; without, nothing changes. Returns whether the
    /// series was renamed.
    ///
    /// # Errors
    /// `NoSuchKey`, `Limit` if the key is too long, `Invalid` if somebody owns one of the two, errors
    /// of the log.
    pub fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<(bool, Position)> {
        let core = &self.core;
        core.check_writable()?;
        core.check_key(to)?;
        core.check_not_owned(from)?;
        core.check_not_owned(to)?;
        self.rules.purge(from)?;
        self.rules.purge(to)?;
        // Closed buckets reach the destinations before the source is removed.
        self.rules.recompute_key_for_removal(to)?;
        loop {
            let (source, target) = (core.find(from)?, core.find(to)?);
            let Some(source) = source else {
                return Err(Error::new(ErrorKind::NoSuchKey, "the key does not exist"));
            };
            if from == to || (target.is_some() && !replace) {
                return Ok((replace, Position::default()));
            }
            let mut locked = Locked::new(core, [Some(source), target], [from, to]);
            if core.names(from).0 == Some(source) && core.names(to) == (target, false) {
                let position = self.rename_in(&mut locked, [from, to], source, target)?;
                return Ok((true, position));
            }
        }
    }

    fn rename_in(
        &self,
        locked: &mut Locked<'_>,
        [from, to]: [&[u8]; 2],
        source: SeriesId,
        target: Option<SeriesId>,
    ) -> Result<Position> {
        let shard = self.core.shards.shard_of(source);
        let place = self.core.shards.place_of(source);
        let key = Arc::<[u8]>::from(to);
        // awake: the map of keys has it.
        if let Some(series) = locked.state(shard).slab.get_mut(place) {
            let options = series.options(self.core.labels_of(source));
            self.core.check_fits_log(to, &options)?;
        }
        let state = locked.state(shard);
        self.core.mark_old_look(state, source);
        if let Some(series) = state.slab.get_mut(place) {
            series.key = key.clone();
        }
        self.core.mark_look(state, source);
        if let Some(target) = target {
            self.core
                .take_out(locked.state(self.core.shards.shard_of(target)), target)?;
        }
        let state = locked.state(shard);
        if self.core.log().is_some() {
            if let Some(target) = target {
                state.group.delete_series(target);
            }
            state.group.rename(source, to);
        }
        let logged = self.core.log_group(state);
        self.core
            .keys
            .remove(self.core.keys.hash(from), from, source);
        self.core.keys.insert(self.core.keys.hash(to), key, source);
        // After the change: a reader of the new count finds the new keys.
        self.core.keys.renames.fetch_add(1, Ordering::Release);
        logged
    }
}

/// Several shards, locked in ascending order.
pub(crate) struct Locked<'a>(Vec<(usize, ShardGuard<'a>)>);

impl<'a> Locked<'a> {
    /// Locks the shards of `ids` and those in which `keys` would be created.
    pub(crate) fn new<const I: usize, const K: usize>(
        core: &'a Core,
        ids: [Option<SeriesId>; I],
        keys: [&[u8]; K],
    ) -> Self {
        let of_ids = ids.into_iter().flatten().map(|id| core.shards.shard_of(id));
        let of_keys = keys.map(|key| core.shards.shard_of_hash(core.keys.hash(key)));
        let mut numbers: Vec<usize> = of_ids.chain(of_keys).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lock = |number: usize| (number, core.shards[number].lock());
        Self(numbers.into_iter().map(lock).collect())
    }

    pub(crate) fn state(&mut self, number: usize) -> &mut ShardState {
        let held = self.0.iter_mut().find(|(held, _)| *held == number);
        &mut held.expect("locked when this was made").1
    }
}
