//! The end of a recovery: the key map, the back links of rules, and partitions
//! without series, which depend on all files and the whole log. Tested by
//! `tests/db_store.rs` and `tests/db_quarantine.rs`.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::log::Log;
use crate::recovery::Recovery;
use crate::series::shard::ShardState;
use crate::storage::files::manifest::Manifest;
use crate::storage::files::table::ManifestFound;
use latewood_model::SeriesId;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

impl Recovery<'_> {
    /// Drops the series that a crash kept from getting a key. Who follows a remote log hears of it.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn drop_unnamed(&self) -> Result<()> {
        let is_followed = self.core.may_be_followed();
        for shard in &self.core.shards {
            let mut state = shard.lock();
            for id in std::mem::take(&mut state.unnamed) {
                self.core.take_out(&mut state, id)?;
                if is_followed {
                    state.group.delete_series(id);
                }
            }
            if is_followed {
                self.core.log_group(&mut state)?;
            }
        }
        Ok(())
    }

    /// Ends a recovery: drops what got no key, makes the key map and the back
    /// links of rules. The keys of series that had to go because another one
    /// has their key: none, unless files or log lost something.
    /// `named` are the series that got their keys behind what is lost, in order.
    pub(crate) fn rebuild(&self, named: &[SeriesId]) -> Result<Vec<Arc<[u8]>>> {
        self.drop_unnamed()?;
        self.rebuild_all(named)
    }

    /// The same where the log goes on: what has no key yet may get one.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if a parked series cannot be read.
    pub(crate) fn rebuild_all(&self, named: &[SeriesId]) -> Result<Vec<Arc<[u8]>>> {
        let displaced = self.map_keys(named)?;
        self.tie_rules()?;
        let ended = std::mem::take(&mut *self.rules.ended_in_log.lock());
        for (number, shard) in self.core.shards.iter().enumerate() {
            let mut state = shard.lock();
            self.count_late(&mut state, number, &ended);
            state.restored.clear();
            state.watched.replays = None;
        }
        Ok(displaced)
    }

    /// Counts the late samples that the log had of a shard, but for those of destinations whose rule
    /// ended there behind what their rows hold: which of these the rule wrote is not known.
    fn count_late(&self, state: &mut ShardState, shard: usize, ended: &BTreeMap<SeriesId, u64>) {
        let position = state.watched.replays.unwrap_or_default();
        for (place, &count) in std::mem::take(&mut state.replayed_late).iter() {
            let id = self.core.shards.id_of(shard, place);
            let held = state.restored_position(place);
            if ended.get(&id).is_some_and(|&end| end > held) {
                continue;
            }
            // awake: others had no late sample.
            let series = state.slab.get_mut(place);
            if series.is_some_and(|series| series.count_replayed_late(count.get())) {
                // A flush for memory may have written the series without it.
                state.note_changed(id);
                let now_ns = || self.core.env.clock.monotonic_ns();
                state.heads.owe(partition_of(id), position, now_ns);
            }
        }
    }

    /// Puts the manifest of a new directory in force, and otherwise one without
    /// what the log says was removed: everything, or all series of a partition;
    /// then removes the files
    /// that no manifest names.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::publish`].
    pub(crate) fn tidy(&self, found: ManifestFound) -> Result<()> {
        let manifest = self.core.store.manifest();
        let live = self.live_partitions();
        let is_dead = |partition: &u32| !live.contains(partition);
        let lost_blocks = !self.core.store.lost.lock().is_empty();
        if found == ManifestFound::Absent
            || lost_blocks
            || self.core.store.owes_removal()
            || manifest.partitions.keys().any(is_dead)
        {
            if self.core.store.owes_removal() {
                // The log before FLUSHALL goes with this manifest.
                self.core.log_readers_of_nothing()?;
                let end = self.core.log().map(Log::written);
                self.core.sync_for_files(end.unwrap_or_default())?;
            }
            self.core.publish(&mut |manifest: &mut Manifest| {
                manifest
                    .partitions
                    .retain(|partition, _| !is_dead(partition));
                Ok(())
            })?;
        }
        self.core.store.sweep_files()?;
        self.core.trim_log()
    }

    fn live_partitions(&self) -> BTreeSet<u32> {
        let mut live = BTreeSet::new();
        for (number, shard) in self.core.shards.iter().enumerate() {
            let state = shard.lock();
            let places = self.core.there(&state, 0);
            live.extend(places.map(|place| partition_of(self.core.shards.id_of(number, place))));
        }
        live
    }

    /// Enters every awake series under its key; the keys of those in another's way.
    fn map_keys(&self, named: &[SeriesId]) -> Result<Vec<Arc<[u8]>>> {
        let shards = self.core.shards.iter();
        // awake: only these are in the map of keys.
        let series = shards.map(|shard| shard.lock().slab.len()).sum();
        // Series that woke in the replay.
        self.core.keys.clear();
        self.core.keys.reserve(series);
        let doubled = std::thread::scope(|scope| {
            let shards =
                (0..self.core.shards.len()).map(|shard| scope.spawn(move || self.map_shard(shard)));
            let workers: Vec<_> = shards.collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<_>>| match worker.join() {
                Ok(doubled) => doubled,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().flat_map(join).collect::<Vec<_>>()
        });
        let mut rivals = BTreeMap::<Arc<[u8]>, BTreeSet<SeriesId>>::new();
        for id in self.core.parked_keys.take_doubled() {
            // One that the log woke or removed is in no parked one's way.
            if let Some(key) = self.parked_key(id)?
                && self.has_several(&key)?
            {
                let mut parked = self.wake_rivals(&key)?;
                rivals.entry(key).or_default().append(&mut parked);
            }
        }
        for (key, pair) in doubled {
            let mut parked = self.wake_rivals(&key)?;
            let rivals = rivals.entry(key).or_default();
            rivals.extend(pair);
            rivals.append(&mut parked);
        }
        let mut gone = Vec::new();
        for (key, ids) in &rivals {
            gone.extend(self.displace(key, ids, named)?);
        }
        Ok(gone)
    }

    /// Whether more than one parked series has this key: most that share a fingerprint do not, and those
    /// stay parked.
    fn has_several(&self, key: &Arc<[u8]>) -> Result<bool> {
        let mut count = 0;
        for id in self.core.parked_keys.find_all(key)? {
            count += usize::from(self.parked_key(id)?.as_ref() == Some(key));
        }
        Ok(count > 1)
    }

    /// The key of a series, if it is parked. Its row is at hand then.
    fn parked_key(&self, id: SeriesId) -> Result<Option<Arc<[u8]>>> {
        let mut state = self.core.shards.lock_of(id);
        self.core.stored_position(&mut state, id)?;
        let parked = state.parked.held(self.core.shards.place_of(id));
        Ok(parked.map(|parked| parked.row.key.clone()))
    }

    /// Wakes the parked series that may have a key of awake ones. Returns those that have it.
    fn wake_rivals(&self, key: &Arc<[u8]>) -> Result<BTreeSet<SeriesId>> {
        let mut rivals = BTreeSet::new();
        while let Some(id) = self.core.parked_keys.find(key)? {
            let mut state = self.core.shards.lock_of(id);
            let position = self.core.stored_position(&mut state, id)?;
            self.core.wake_found(&mut state, key, id)?;
            if let Some(position) = NonZeroU64::new(position) {
                // By which rivals are told apart.
                state
                    .restored
                    .insert(self.core.shards.place_of(id), position);
            }
            // awake: it woke a line before.
            let series = state.series(id);
            if series.is_some_and(|series| series.key == *key) {
                rivals.insert(id);
            }
        }
        Ok(rivals)
    }

    /// The same for one shard: pairs of series with one key. Its series expire from now
    /// on.
    fn map_shard(&self, shard: usize) -> Vec<(Arc<[u8]>, [SeriesId; 2])> {
        let mut state = self.core.shards[shard].lock();
        let ShardState {
            slab,
            sealer,
            heads,
            ..
        } = &mut *state;
        // awake: the log is applied to no other.
        for (place, series) in slab.iter_mut() {
            if self.core.is_follower() {
                series.begin_following(sealer);
            } else if series.end_replay(sealer) {
                let id = self.core.shards.id_of(shard, place);
                heads.note(series, partition_of(id));
            }
        }
        let mut doubled = Vec::new();
        // awake: the keys of the others were noted as their files were read.
        for (place, series) in state.slab.iter() {
            let id = self.core.shards.id_of(shard, place);
            if state.unnamed.contains(&id) {
                continue;
            }
            let key = &series.key;
            let hash = self.core.keys.hash(key);
            let other = self.core.keys.insert(hash, key.clone(), id);
            let parked = self.core.may_be_parked(key).then_some(id);
            doubled.extend(other.or(parked).map(|other| (key.clone(), [other, id])));
        }
        doubled
    }

    /// Leaves the one of several series with one key that got it last, as far
    /// as can be told; the key, once for each that had to go.
    fn displace(
        &self,
        key: &Arc<[u8]>,
        rivals: &BTreeSet<SeriesId>,
        named: &[SeriesId],
    ) -> Result<Vec<Arc<[u8]>>> {
        let rank = |id: &SeriesId| {
            let state = self.core.shards.lock_of(*id);
            let restored = state.restored_position(self.core.shards.place_of(*id));
            (named.iter().rposition(|named| named == id), restored, *id)
        };
        let Some(&winner) = rivals.iter().max_by_key(|id| rank(id)) else {
            return Ok(Vec::new());
        };
        let mut gone = Vec::new();
        for &id in rivals.iter().filter(|&&id| id != winner) {
            let mut state = self.core.shards.lock_of(id);
            let series = self.core.take_out(&mut state, id)?;
            gone.extend(series.map(|series| series.key));
        }
        self.core
            .keys
            .insert(self.core.keys.hash(key), key.clone(), winner);
        Ok(gone)
    }
}
