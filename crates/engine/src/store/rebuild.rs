//! What only all of the files and the log together tell: keys, the back links
//! of rules, and which partitions still have series.

use super::manifest::Manifest;
use super::table::ManifestFound;
use crate::block::partition_of;
use crate::core::Core;
use crate::error::Result;
use crate::shard::ShardState;
use latewood_model::SeriesId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Core {
    /// Ends a recovery: drops what got no key, makes the key map and the back
    /// links of rules. The keys of series that had to go because another one
    /// has their key: none, unless files or log lost something.
    /// `named` are the series that got their keys behind what is lost, in order.
    pub(crate) fn rebuild(&self, named: &[SeriesId]) -> Vec<Arc<[u8]>> {
        self.drop_unnamed();
        let displaced = self.map_keys(named);
        self.tie_rules();
        for shard in &self.shards {
            shard.lock().restored = Vec::new();
        }
        displaced
    }

    /// Puts the manifest of a new directory in force, and otherwise one without
    /// what the log says was removed: everything, or all series of a partition;
    /// then removes the files
    /// that no manifest names.
    ///
    /// # Errors
    /// Those of [`Core::publish`].
    pub(crate) fn tidy(&self, found: ManifestFound) -> Result<()> {
        let manifest = self.manifest();
        let live = self.live_partitions();
        let is_dead = |partition: &u32| !live.contains(partition);
        let lost_blocks = !self.store.lost.lock().is_empty();
        if found == ManifestFound::Absent
            || lost_blocks
            || self.store.owes_removal()
            || manifest.partitions.keys().any(is_dead)
        {
            self.publish(&mut |manifest: &mut Manifest| {
                manifest
                    .partitions
                    .retain(|partition, _| !is_dead(partition));
                Ok(())
            })?;
        }
        self.sweep_files()?;
        self.trim_log()
    }

    fn live_partitions(&self) -> BTreeSet<u32> {
        let mut live = BTreeSet::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let state = shard.lock();
            let places = (0..state.slab.places()).filter(|&place| state.slab.get(place).is_some());
            live.extend(places.map(|place| partition_of(self.id_of(number, place))));
        }
        live
    }

    /// Enters every series under its key; the keys of those in another's way.
    fn map_keys(&self, named: &[SeriesId]) -> Vec<Arc<[u8]>> {
        let count = |state: &ShardState| state.slab.places();
        let places: usize = self.shards.iter().map(|shard| count(&shard.lock())).sum();
        self.keys.reserve(places);
        let doubled = std::thread::scope(|scope| {
            let shards =
                (0..self.shards.len()).map(|shard| scope.spawn(move || self.map_shard(shard)));
            let workers: Vec<_> = shards.collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<_>>| match worker.join() {
                Ok(doubled) => doubled,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().flat_map(join).collect::<Vec<_>>()
        });
        let displace = |(one, other)| self.displace(one, other, named);
        doubled.into_iter().filter_map(displace).collect()
    }

    /// The same for one shard: pairs of series with one key.
    fn map_shard(&self, shard: usize) -> Vec<(SeriesId, SeriesId)> {
        let state = self.shards[shard].lock();
        let mut doubled = Vec::new();
        for place in 0..state.slab.places() {
            if let Some(series) = state.slab.get(place) {
                let (id, key) = (self.id_of(shard, place), series.key.clone());
                let other = self.keys.insert(self.keys.hash(&key), key, id);
                doubled.extend(other.map(|other| (other, id)));
            }
        }
        doubled
    }

    /// Leaves the one of two series with one key that got it last, as far as
    /// can be told; the key.
    fn displace(&self, one: SeriesId, other: SeriesId, named: &[SeriesId]) -> Option<Arc<[u8]>> {
        let rank = |id: SeriesId| {
            let state = self.shards[self.shard_of(id)].lock();
            let restored = state.restored_position(self.place_of(id));
            (named.iter().rposition(|&named| named == id), restored, id)
        };
        let (winner, loser) = match rank(one) > rank(other) {
            true => (one, other),
            false => (other, one),
        };
        let lost = self.take_out(&mut self.shards[self.shard_of(loser)].lock(), loser)?;
        let hash = self.keys.hash(&lost.key);
        self.keys.insert(hash, lost.key.clone(), winner);
        Some(lost.key)
    }
}
