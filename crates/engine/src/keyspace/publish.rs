//! The one way files become part of the database, and stop being it.
//!
//! A publication edits a copy of the manifest, makes sure that the log is
//! durable up to everything the files hold, writes the copy, and hands the
//! blocks it names to every shard. Before the rename of MANIFEST.new a failure
//! changes nothing; from there on it is not known which manifest a restart
//! would find, so writes stop as they do when the log fails.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::Env;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::observe::notices::{About, Stopped};
use crate::storage::block::{Block, BlockMeta, BlockSet, Cache, PartitionBlocks};
use crate::storage::files::LostBlock;
use crate::storage::files::directory::{
    block_path, paths, put_in_force, remove_if_there, series_file_path, sweep, write_new,
};
use crate::storage::files::manifest::Manifest;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The files of an open database.
pub(crate) struct Store {
    dir: PathBuf,
    pub(crate) published: Mutex<Published>,
    pub(crate) next_file: AtomicU64,
    halted: OnceLock<String>,
    /// How long samples of any series are kept, by the wall clock; 0 is for ever.
    pub(crate) retention_ms: AtomicU64,
    pub(crate) cache: Cache,
    /// Blocks that the start had to leave out.
    pub(crate) lost: Mutex<Vec<LostBlock>>,
}

/// What is in force.
#[derive(Default)]
pub(crate) struct Published {
    pub(crate) manifest: Manifest,
    /// Files no longer named that could not be removed yet.
    pub(crate) unremoved: BTreeSet<PathBuf>,
    /// How many copiers need a file to stay, named or not.
    pub(crate) pinned: BTreeMap<PathBuf, usize>,
    /// The group behind the last removal of everything, set by
    /// [`Published::forget`] and carried by the next manifest: none before it
    /// is needed.
    pub(crate) log_start: u64,
}

impl Published {
    /// Whether everything was removed and no manifest says so yet.
    pub(crate) fn owes_removal(&self) -> bool {
        self.log_start > self.manifest.log_start
    }

    /// Removes the files that are named no more and that nobody copies. What
    /// stays is tried again next time, and at the next open.
    pub(crate) fn remove_unnamed(&mut self, env: &Env) {
        // Then the manifest on disk still names them.
        if self.owes_removal() {
            return;
        }
        let pinned = &self.pinned;
        self.unremoved
            .retain(|path| pinned.contains_key(path) || remove_if_there(env, path).is_err());
    }
}

impl Store {
    /// That of an empty directory; `cache` keeps index pages and chunks of
    /// blocks at hand.
    pub(crate) fn new(dir: &Path, cache: Cache, retention_ms: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            published: Mutex::default(),
            next_file: AtomicU64::new(1),
            halted: OnceLock::new(),
            retention_ms: retention_ms.into(),
            cache,
            lost: Mutex::default(),
        }
    }

    /// The database's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the file of block `number` stands.
    pub(crate) fn block_path(&self, number: u64) -> PathBuf {
        block_path(&self.dir, number)
    }

    /// Where series file `number` stands.
    pub(crate) fn series_file_path(&self, number: u64) -> PathBuf {
        series_file_path(&self.dir, number)
    }

    /// Refuses once a publication has failed half-way.
    pub(crate) fn check_halted(&self) -> Result<()> {
        match self.halted.get() {
            None => Ok(()),
            Some(reason) => Err(Error::new(
                ErrorKind::Halted,
                format!("writes are stopped since the manifest failed: {reason}"),
            )),
        }
    }
}

impl Core {
    /// A number for a new block or series file. None is given twice.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.store.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// A copy of the manifest in force. No shard may be locked.
    pub(crate) fn manifest(&self) -> Manifest {
        self.store.published.lock().manifest.clone()
    }

    /// How often everything was removed. No shard may be locked.
    pub(crate) fn epoch(&self) -> u64 {
        self.store.published.lock().manifest.epoch
    }

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

    /// Lets the log forget what the manifest in force says it may.
    ///
    /// # Errors
    /// Those of [`crate::log::Log::trim`].
    pub(crate) fn trim_log(&self) -> Result<()> {
        match self.log() {
            Some(wal) => wal.trim(Position(self.manifest().log_start)),
            None => Ok(()),
        }
    }

    pub(crate) fn publish_locked(
        &self,
        published: &mut Published,
        edit: &mut dyn FnMut(&mut Manifest) -> Result<()>,
    ) -> Result<()> {
        self.check_writable()?;
        let store = &self.store;
        let mut next = published.manifest.clone();
        next.log_start = next.log_start.max(published.log_start);
        edit(&mut next)?;
        next.next_file = store.next_file.load(Ordering::Relaxed).max(next.next_file);
        next.next_id = next.next_id.max(self.next_id_of_all());
        let blocks = Arc::new(self.open_blocks(&next, &self.blocks.get())?);
        self.sync_before(&next)?;
        write_new(&self.env, &store.dir, &next)?;
        put_in_force(&self.env, &store.dir).map_err(|error| self.halt(error))?;
        self.blocks.set(blocks);
        let named = |manifest| paths(&store.dir, manifest).into_iter().collect();
        let (old, new): (BTreeSet<_>, BTreeSet<_>) = (named(&published.manifest), named(&next));
        published.unremoved.extend(old.difference(&new).cloned());
        published.manifest = next;
        self.disk_budget.note_catalogue(&published.manifest);
        published.remove_unnamed(&self.env);
        Ok(())
    }

    /// Makes durable what the next manifest builds upon: the names of new files
    /// and the log up to what they hold.
    fn sync_before(&self, next: &Manifest) -> Result<()> {
        let dir = &self.store.dir;
        for folder in [names::blocks_dir(dir), names::series_dir(dir)] {
            let synced = self.env.disk.sync_dir(&folder);
            synced.map_err(|error| Error::io("cannot sync a data directory", &folder, error))?;
        }
        self.sync_to(Position(next.log_next_min() - 1))
    }

    /// The blocks that `next` names: those already open and the new ones.
    pub(crate) fn open_blocks(&self, next: &Manifest, held: &BlockSet) -> Result<BlockSet> {
        let held = held.partitions.values();
        let held = held.flat_map(|blocks| blocks.base.iter().chain(&blocks.late));
        let held: BTreeMap<u64, &Arc<Block>> =
            held.map(|block| (block.meta().number, block)).collect();
        let open = |meta: &BlockMeta| match held.get(&meta.number) {
            Some(block) => Ok(Arc::clone(block)),
            None => {
                let path = self.store.block_path(meta.number);
                Block::open(&self.env, &path, meta, &self.store.cache).map(Arc::new)
            }
        };
        let mut partitions = BTreeMap::new();
        for (&partition, files) in &next.partitions {
            let blocks = PartitionBlocks {
                base: files.base.iter().map(open).collect::<Result<_>>()?,
                late: files.late.iter().map(open).collect::<Result<_>>()?,
            };
            if !blocks.base.is_empty() || !blocks.late.is_empty() {
                partitions.insert(partition, blocks);
            }
        }
        Ok(BlockSet {
            flush: next.flush,
            floor: next.floor,
            partitions,
        })
    }

    /// Removes every file that the manifest in force does not name.
    pub(crate) fn sweep_files(&self) -> Result<()> {
        sweep(&self.env, &self.store.dir, &self.manifest())
    }

    /// Ids from here on were never given.
    fn next_id_of_all(&self) -> u64 {
        let shards = self.shards.iter().enumerate();
        let next_ids = shards.map(|(number, shard)| match shard.lock().next_place {
            0 => 0,
            // Ids in use fit 32 bits.
            next_place => u64::from(self.shards.id_of(number, next_place - 1).0) + 1,
        });
        next_ids.max().unwrap_or(0)
    }

    /// Stops all writes: it is not known which manifest is in force.
    fn halt(&self, error: Error) -> Error {
        self.store.halted.get_or_init(|| {
            self.notices.tell(About::Halt, Stopped(&error));
            error.to_string()
        });
        match self.log() {
            Some(wal) => wal.halt(error),
            None => error,
        }
    }
}
