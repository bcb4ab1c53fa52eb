//! Removing all series, by FLUSHALL and when recovery replays it from the log.
//!
//! The log says it first and durably, then the file of metadata, then a manifest without
//! files. The same manifest tells the log to begin behind that group: replayed once more, it
//! would take away a floor that came later. Tested by `tests/db_store` and
//! `tests/merge`.

use crate::base::error::{Error, Result};
use crate::keyspace::core::Core;
use crate::keyspace::store::{Published, Store};
use crate::log::{Log, Position};
use crate::series::shard::ShardGuard;
use crate::series::shards::AllShards;
use crate::storage::files::directory::paths;
use latewood_model::Timestamp;
use std::path::Path;
use std::sync::atomic::Ordering;

impl Published {
    /// Names nothing any more: the group at `position` removed it. Until the
    /// next publication the files stay; nobody may name them again.
    pub(crate) fn forget(&mut self, dir: &Path, position: Position) {
        self.unremoved.extend(paths(dir, &self.manifest));
        self.manifest.epoch += 1;
        self.manifest.partitions.clear();
        self.manifest.floor = Timestamp::MIN;
        self.floor = Timestamp::MIN;
        self.log_start = position.0 + 1;
    }
}

impl Store {
    /// Whether everything was removed and no manifest says so yet.
    pub(crate) fn owes_removal(&self) -> bool {
        self.published.lock().owes_removal()
    }
}

impl Core {
    /// Takes all series and blocks away from readers.
    pub(crate) fn clear_series(&self, states: &mut AllShards<'_>) {
        self.keys.clear();
        self.parked_keys.clear();
        states.iter_mut().for_each(|state| state.clear_series());
        self.store.set_no_blocks();
        self.index.clear();
        self.shards.expiring.store(0, Ordering::Relaxed);
        self.store.rows_unknown.lock().clear();
    }

    /// Removes everything: series, samples, blocks. The files go with the
    /// manifest that no longer names them.
    ///
    /// # Errors
    /// Those of the log and of [`Core::publish`]; `Io` if the metadata cannot be written. Once the
    /// log says it, `Unknown` instead of `Halted`.
    pub(crate) fn clear(&self) -> Result<Position> {
        // The file is written below, and not before the log says it.
        let mut saving = self.metadata.hold_saves();
        let mut published = self.store.published.lock();
        let mut states: Vec<ShardGuard<'_>> = self.shards.lock_all();
        self.clear_series(&mut states);
        if self.log().is_some() {
            states[0].group.flush_all();
        }
        let position = self.log_group(&mut states[0])?;
        // A sender that comes after this is not forgotten.
        self.metadata.clear();
        drop(states);
        self.log_readers_of_nothing()?;
        // Before the log may forget what it holds, it must not lose this.
        self.sync_to(self.log().map_or(position, Log::written))?;
        published.forget(self.store.dir(), position);
        // Where one of these fails, a restart finds the old manifest and that group.
        saving.save(&self.env, self.store.dir())?;
        let forgotten = self.publish_locked(&mut published, &mut |_| Ok(()));
        let forgotten = forgotten.and_then(|_| self.log().map_or(Ok(()), |log| log.trim(position)));
        forgotten.map_err(Error::amid_write)?;
        Ok(position)
    }
}
