//! Publication: adding files to the database and removing them.
//!
//! A publication edits a copy of the manifest, makes sure that the log is
//! durable up to everything the files hold, writes the copy, and hands the
//! blocks it names to every shard. Before the rename of MANIFEST.new a failure
//! changes nothing; from there on it is not known which manifest a restart
//! would find, so writes stop as they do when the log fails.

use crate::base::error::{Error, Result};
use crate::base::names;
use crate::io::small::Context;
use crate::keyspace::core::Core;
use crate::keyspace::store::Published;
use crate::log::Position;
use crate::storage::files::directory::{paths, put_in_force, write_new};
use crate::storage::files::manifest::Manifest;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Changes the manifest by `edit` and puts it in force: durably, then for
    /// every reader. The files it names must be written and synced. Files that
    /// it no longer names are removed, once nobody copies them. `edit` is called under a lock; where it
    /// refuses, nothing happens. No shard may be locked.
    ///
    /// # Errors
    /// Those of `edit`; `Halted`; `Io` and `Corrupt` where a new block cannot be
    /// opened or the manifest not be written. The database's writes are halted
    /// where it is not known whether the manifest was replaced.
    pub(crate) fn publish(&self, edit: &mut dyn FnMut(&mut Manifest) -> Result<()>) -> Result<()> {
        self.publish_locked(&mut self.store.published.lock(), edit)
    }

    /// Trims the log as far as the current manifest allows.
    ///
    /// # Errors
    /// Those of [`crate::log::Log::trim`].
    pub(crate) fn trim_log(&self) -> Result<()> {
        match self.log() {
            Some(_) if self.is_log_given_up() => Ok(()),
            Some(log) => log.trim(Position(self.store.manifest().log_start)),
            None => Ok(()),
        }
    }

    pub(crate) fn publish_locked(
        &self,
        published: &mut Published,
        edit: &mut dyn FnMut(&mut Manifest) -> Result<()>,
    ) -> Result<()> {
        self.check_publishable()?;
        self.put_in_force(published, edit)
    }

    /// The same also of a database that follows the log of another.
    pub(crate) fn put_in_force(
        &self,
        published: &mut Published,
        edit: &mut dyn FnMut(&mut Manifest) -> Result<()>,
    ) -> Result<()> {
        let store = &self.store;
        let mut next = published.manifest.clone();
        next.log_start = next.log_start.max(published.log_start);
        edit(&mut next)?;
        if self.log().is_some() {
            // Of a database that follows it stays that of the files: newer ones are told by it.
            next.floor = next.floor.max(published.floor);
        }
        next.next_file = store.next_file.load(Ordering::Relaxed).max(next.next_file);
        next.next_id = next.next_id.max(self.next_id_of_all());
        let mut blocks = self.store.open_blocks(&next, &self.store.blocks.get())?;
        blocks.floor = blocks.floor.max(published.floor);
        let parked = self.store.open_parked(&next)?;
        self.sync_before(&next)?;
        write_new(&self.env, &store.dir, &next)?;
        put_in_force(&self.env, &store.dir).map_err(|error| self.halt(error))?;
        self.store.blocks.set(Arc::new(blocks));
        self.set_parked_files(parked);
        let named = |manifest| paths(&store.dir, manifest).into_iter().collect();
        let (old, new): (BTreeSet<_>, BTreeSet<_>) = (named(&published.manifest), named(&next));
        published.unremoved.extend(old.difference(&new).cloned());
        published.manifest = next;
        self.store.disk_budget.note_catalogue(&published.manifest);
        published.remove_unnamed(&self.env);
        Ok(())
    }

    /// Makes durable what the next manifest builds upon: the names of new files
    /// and the log up to what they hold.
    fn sync_before(&self, next: &Manifest) -> Result<()> {
        let dir = &self.store.dir;
        for folder in [names::blocks_dir(dir), names::series_dir(dir)] {
            let synced = self.env.disk.sync_dir(&folder);
            synced.context("cannot sync a data directory", &folder)?;
        }
        self.sync_for_files(Position(next.log_next_min() - 1))
    }

    /// Ids from here on were never given.
    fn next_id_of_all(&self) -> u64 {
        let shards = self.shards.iter().enumerate();
        let next_ids = shards.map(|(number, shard)| match shard.lock().next_place {
            0 => 0,
            next_place => self.shards.id_of(number, next_place - 1).0 + 1,
        });
        next_ids.max().unwrap_or(0)
    }

    /// Stops all writes, because it is not known which manifest is current.
    fn halt(&self, error: Error) -> Error {
        let what = "the manifest failed";
        // The first failure counts.
        let _ = self.store.manifest_failed.set(error.to_string());
        match self.log() {
            Some(log) => log.halt_since(what, error),
            None => {
                self.observe.halt.stop(what, &error);
                error
            }
        }
    }
}
