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
use crate::storage::files::parked::{CurrentParked, ParkedFiles};
use latewood_model::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Two to this power is how many numbers of files there are for each group of a remote log.
const NUMBERS_PER_GROUP_LOG2: u32 = 16;
/// A manifest has none beyond twice this.
const NUMBERS_MAX: u64 = 1 << 62;

/// The files of an open database.
pub(crate) struct Store {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    /// The blocks as they stand now.
    pub(crate) blocks: Arc<CurrentBlocks>,
    /// The files of parked series as they stand now.
    pub(crate) parked: CurrentParked,
    pub(crate) disk_budget: DiskBudget,
    pub(crate) published: Mutex<Published>,
    pub(crate) next_file: AtomicU64,
    /// How long samples of all series are kept, by the wall clock; 0 means forever.
    pub(crate) retention_ms: AtomicU64,
    /// See [`crate::Options::park_after_ms`].
    pub(crate) park_after_ms: AtomicU64,
    pub(crate) cache: Cache,
    /// Blocks that the start had to leave out.
    pub(crate) lost: Mutex<Vec<LostBlock>>,
    /// Damage that the operator has not accepted.
    pub(crate) doubts: Mutex<Arc<[Doubt]>>,
    /// No flush of an owner of the log before this one has a greater number.
    flush_before: AtomicU64,
    /// Partitions whose series may have newer rows than the series files, though they are marked
    /// as if these had them, up to the flush that may bring these: until then a flush here writes
    /// all rows. No other lock is requested while it is held.
    pub(crate) rows_unknown: Mutex<BTreeMap<u32, u64>>,
    /// Files of this flush and later ones hold what no cut told of.
    pub(crate) untold_from: AtomicU64,
    /// Owners of the log before this one froze series for flushes that are in no files. No
    /// checkpoint may be without these.
    pub(crate) carries_cuts: AtomicBool,
    /// Why it is not known which manifest is in force, if so.
    pub(super) manifest_failed: OnceLock<String>,
}

/// What is in force.
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
    /// The floor that the log says since then, which readers see. The next manifest of the owner
    /// carries it.
    pub(crate) floor: Timestamp,
}

impl Default for Published {
    fn default() -> Self {
        Self {
            manifest: Manifest::default(),
            unremoved: BTreeSet::new(),
            pinned: BTreeMap::new(),
            log_start: 0,
            floor: Timestamp::MIN,
        }
    }
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
            parked: CurrentParked::default(),
            disk_budget: DiskBudget::new(options.disk_budget_bytes),
            dir: dir.to_owned(),
            published: Mutex::default(),
            next_file: AtomicU64::new(1),
            retention_ms: options.retention_ms.into(),
            park_after_ms: options.park_after_ms.into(),
            cache,
            lost: Mutex::default(),
            doubts: Mutex::new(Arc::default()),
            manifest_failed: OnceLock::new(),
            flush_before: AtomicU64::new(0),
            rows_unknown: Mutex::default(),
            untold_from: AtomicU64::new(u64::MAX),
            carries_cuts: AtomicBool::new(false),
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

    /// Numbers of files and of flushes are from now on none that an owner of the remote log gave
    /// who wrote no group behind `applied`: a file of the same number would be taken for that one,
    /// and what was frozen for a flush of the same number would be dropped with this one. An owner
    /// writes far fewer files than 2^16 for each group of its log.
    pub(crate) fn begin_numbers(&self, applied: Position) {
        let first = applied.0.saturating_mul(1 << NUMBERS_PER_GROUP_LOG2);
        let first = first.min(NUMBERS_MAX);
        self.next_file.fetch_max(first, Ordering::Relaxed);
        self.flush_before.fetch_max(first, Ordering::Relaxed);
    }

    /// The number of the next flush. No shard may be locked.
    pub(crate) fn next_flush(&self) -> u64 {
        let before = self.flush_before.load(Ordering::Relaxed);
        self.published.lock().manifest.flush.max(before) + 1
    }

    /// A copy of the manifest in force. No shard may be locked.
    pub(crate) fn manifest(&self) -> Manifest {
        self.published.lock().manifest.clone()
    }

    /// The seed of the hashes of keys that files keep. No shard may be locked.
    pub(crate) fn key_seed(&self) -> u64 {
        self.published.lock().manifest.key_seed
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
        published.floor = Timestamp::MIN;
        self.show_floor(Timestamp::MIN);
    }

    /// Raises the floor to that of a record of the log, for readers too.
    pub(crate) fn apply_floor(&self, published: &mut Published, floor: Timestamp) {
        published.floor = published.floor.max(floor);
        self.show_floor(self.blocks.floor().max(floor));
    }

    /// The caller holds the lock of the manifest.
    fn show_floor(&self, floor: Timestamp) {
        let held = self.blocks.get();
        self.blocks.set(Arc::new(BlockSet {
            flush: held.flush,
            floor,
            partitions: held.partitions.clone(),
        }));
    }

    /// The files of parked series that `next` names.
    pub(crate) fn open_parked(&self, next: &Manifest) -> Result<ParkedFiles> {
        ParkedFiles::open(&self.env, &self.dir, next, &self.parked.get())
    }

    /// Readers see no files any more. The index is cleared beside it.
    pub(crate) fn set_no_blocks(&self) {
        self.parked.set(Arc::default());
        self.blocks.set(Arc::new(BlockSet {
            flush: self.blocks.get().flush,
            floor: Timestamp::MIN,
            partitions: BTreeMap::new(),
        }));
    }
}
