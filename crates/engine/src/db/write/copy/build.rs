//! A series on its way: it has a number and samples, but no key.
//!
//! Its shard lists it as unnamed, the log holds its samples, and no reader can
//! find it. [`Build::publish`] gives it key, options, labels and expiry in one group
//! of the log, together with the removal of a series under that key. Dropping an
//! unpublished build removes its series; after a crash the replay removes it.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::db::Db;
use crate::db::write::rename::Locked;
use crate::keyspace::admission::{admit_series, admit_write};
use crate::log::Position;
use latewood_model::{DuplicatePolicy, Sample, SeriesId, SeriesOptions, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A series without a key, to be published or dropped.
pub(crate) struct Build<'a> {
    db: &'a Db,
    id: SeriesId,
    is_published: bool,
}

impl<'a> Build<'a> {
    /// Begins a series that will have the key `to` and `options`.
    pub(crate) fn begin(db: &'a Db, to: &[u8], options: &SeriesOptions) -> Result<Self> {
        let core = &db.core;
        core.check_fits_log(to, options)?;
        admit_series(core)?;
        // Neither retention nor IGNORE may drop what the original holds, and
        // labels would make the series known to the index.
        let plain = SeriesOptions {
            encoding: options.encoding,
            chunk_size_bytes: options.chunk_size_bytes,
            ..SeriesOptions::default()
        };
        let shard = core.shards.shard_of_hash(core.keys.hash(to));
        let mut guard = core.shards[shard].lock();
        let state = &mut *guard;
        let id = core.next_id(state, shard)?;
        state.next_place += 1;
        core.insert_unnamed(state, id, &plain);
        let build = Self {
            db,
            id,
            is_published: false,
        };
        if core.log().is_some() {
            state.group.build(id, &plain);
        }
        let logged = core.log_group(state);
        drop(guard);
        logged.map(|_| build)
    }

    /// Adds samples, newer than all before and ascending.
    pub(crate) fn push(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        let core = &self.db.core;
        admit_write(core)?;
        let mut guard = core.shards.lock_of(self.id);
        let state = &mut *guard;
        // FLUSHALL may have removed it.
        // awake: what has no key does not park.
        let Some(series) = state.slab.get_mut(core.shards.place_of(self.id)) else {
            return Ok(());
        };
        for (&timestamp, &value) in timestamps.iter().zip(values) {
            let sample = Sample::new(timestamp, value);
            series.append(sample, DuplicatePolicy::Block, &mut state.sealer)?;
            if series.memory_moved() {
                state.heads.note(series, partition_of(self.id));
            }
            if core.log().is_some() {
                let group = &mut state.group;
                group.sample(self.id, timestamp, value, DuplicatePolicy::Block);
            }
        }
        core.log_group(state).map(|_| ())
    }

    /// Gives the series the key `to`; whether it did. Without `replace` it does not
    /// if the key exists.
    pub(crate) fn publish(
        mut self,
        to: &[u8],
        options: SeriesOptions,
        expires_at_ms: Option<i64>,
        replace: bool,
    ) -> Result<(bool, Position)> {
        let core = &self.db.core;
        // It may have got an owner while samples were copied.
        core.check_not_owned(to)?;
        // Closed buckets reach the destinations before the source is removed.
        self.db.rules.recompute_key_for_removal(to)?;
        loop {
            self.db.rules.purge(to)?;
            let target = core.find(to)?;
            if target.is_some() && !replace {
                return Ok((false, Position::default()));
            }
            let mut locked = Locked::new(core, [Some(self.id), target], [to]);
            if core.names(to) != (target, false) {
                continue;
            }
            let named = Named {
                key: to,
                options: &options,
                expires_at_ms,
            };
            let position = self.db.name_in(&mut locked, self.id, target, &named)?;
            self.is_published = true;
            return Ok((true, position));
        }
    }
}

impl Drop for Build<'_> {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        let core = &self.db.core;
        let mut state = core.shards.lock_of(self.id);
        let gone = core.take_out(&mut state, self.id);
        if gone.is_ok_and(|gone| gone.is_some()) && core.log().is_some() {
            state.group.delete_series(self.id);
            // The builder got the error of a failed log; a replay drops the series.
            let _ = core.log_group(&mut state);
        }
    }
}

/// What an unnamed series gets.
struct Named<'a> {
    key: &'a [u8],
    options: &'a SeriesOptions,
    expires_at_ms: Option<i64>,
}

impl Db {
    fn name_in(
        &self,
        locked: &mut Locked<'_>,
        id: SeriesId,
        target: Option<SeriesId>,
        named: &Named<'_>,
    ) -> Result<Position> {
        let state = locked.state(self.core.shards.shard_of(id));
        let key = Arc::<[u8]>::from(named.key);
        // awake: what has no key does not park.
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            // FLUSHALL removed it: the copy came first.
            return Ok(Position::default());
        };
        series.set_options(named.options, &mut state.sealer)?;
        series.key = key.clone();
        state.unnamed.retain(|&unnamed| unnamed != id);
        if let Some(target) = target {
            self.core
                .take_out(locked.state(self.core.shards.shard_of(target)), target)?;
        }
        let state = locked.state(self.core.shards.shard_of(id));
        state.counters.created += 1;
        self.core.index_labels(id, Some(&named.options.labels));
        self.core.mark_look(state, id);
        if self.core.log().is_some() {
            if let Some(target) = target {
                state.group.delete_series(target);
            }
            state.group.rename(id, named.key);
            state.group.alter(id, named.options);
        }
        if named.expires_at_ms.is_some() {
            self.core.set_expiry(state, id, named.expires_at_ms);
        }
        let logged = self.core.log_group(state);
        self.core
            .keys
            .insert(self.core.keys.hash(named.key), key, id);
        // The labels were there before the key.
        self.core.keys.renames.fetch_add(1, Ordering::Release);
        logged
    }
}
