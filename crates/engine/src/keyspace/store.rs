//! The files of an open database: the current manifest, the blocks that readers
//! see, and the numbers of new files. [`super::publish`] changes them.
//!
//! Lock order: the lock of the manifest comes before those of the shards. Tested
//! by `tests/db_store`.

use crate::base::error::Result;
use crate::base::options::Options;
use crate::io::Env;
use crate::keyspace::disk_budget::DiskBudget;
use crate::log::Position;
use crate::storage::block::{Block, BlockMeta, BlockSet, Cache, CurrentBlocks, PartitionBlocks};
use crate::storage::files::LostBlock;
use crate::storage::files::directory::{block_path, remove_if_there, series_file_path, sweep};
use crate::storage::files::doubt::Doubt;
use crate::storage::files::manifest::Manifest;
use latewood_model::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The files of an open database.
pub(crate) struct Store {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    /// The blocks as they stand now.
    pub(crate) blocks: Arc<CurrentBlocks>,
    pub(crate) disk_budget: DiskBudget,
    pub(crate) published: Mutex<Published>,
    pub(crate) next_file: AtomicU64,
    /// How long samples of all series are kept, by the wall clock; 0 means forever.
    pub(crate) retention_ms: AtomicU64,
    pub(crate) cache: Cache,
    /// Blocks that the start had to leave out.
    pub(crate) lost: Mutex<Vec<LostBlock>>,
    /// Damage that the operator has not accepted.
    pub(crate) doubts: Mutex<Arc<[Doubt]>>,
    /// Why it is not known which manifest is in force, if so.
    pub(super) manifest_failed: OnceLock<String>,
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
    pub(crate) fn new(env: &Env, dir: &Path, cache: Cache, options: &Options) -> Self {
        Self {
            env: env.clone(),
            blocks: Arc::default(),
            disk_budget: DiskBudget::new(options.disk_budget_bytes),
            dir: dir.to_owned(),
            published: Mutex::default(),
            next_file: AtomicU64::new(1),
            retention_ms: options.retention_ms.into(),
            cache,
            lost: Mutex::default(),
            doubts: Mutex::new(Arc::default()),
            manifest_failed: OnceLock::new(),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn block_path(&self, number: u64) -> PathBuf {
        block_path(&self.dir, number)
    }

    pub(crate) fn series_file_path(&self, number: u64) -> PathBuf {
        series_file_path(&self.dir, number)
    }

    /// A number for a new block or series file. None is given twice.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// A copy of the manifest in force. No shard may be locked.
    pub(crate) fn manifest(&self) -> Manifest {
        self.published.lock().manifest.clone()
    }

    /// How often everything was removed. No shard may be locked.
    pub(crate) fn epoch(&self) -> u64 {
        self.published.lock().manifest.epoch
    }

    /// The blocks that `next` names: those already open and the new ones.
    pub(crate) fn open_blocks(&self, next: &Manifest, held: &BlockSet) -> Result<BlockSet> {
        let held = held.partitions.values();
        let held = held.flat_map(PartitionBlocks::all);
        let held: BTreeMap<u64, &Arc<Block>> =
            held.map(|block| (block.meta().number, block)).collect();
        let open = |meta: &BlockMeta| match held.get(&meta.number) {
            Some(block) => Ok(Arc::clone(block)),
            None => {
                let path = self.block_path(meta.number);
                Block::open(&self.env, &path, meta, &self.cache).map(Arc::new)
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
        sweep(&self.env, &self.dir, &self.manifest())
    }

    /// Removes all that files hold when a start meets the group at `position`,
    /// which removed it and which no manifest knows of yet. No floor is left:
    /// samples behind that group may be of any age. No shard may be locked.
    pub(crate) fn clear_files(&self, position: Position) {
        let mut published = self.published.lock();
        published.forget(&self.dir, position);
        self.set_no_blocks();
    }

    /// Takes only the floor away, where some files hold what came later.
    pub(crate) fn drop_floor(&self) {
        let mut published = self.published.lock();
        published.manifest.floor = Timestamp::MIN;
        let held = self.blocks.get();
        self.blocks.set(Arc::new(BlockSet {
            flush: held.flush,
            floor: Timestamp::MIN,
            partitions: held.partitions.clone(),
        }));
    }

    pub(crate) fn set_no_blocks(&self) {
        self.blocks.set(Arc::new(BlockSet {
            flush: self.blocks.get().flush,
            floor: Timestamp::MIN,
            partitions: BTreeMap::new(),
        }));
    }
}
