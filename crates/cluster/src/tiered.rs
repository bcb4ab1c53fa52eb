//! A disk that is a cache: blocks of a checkpoint that are not on this machine have their names,
//! and their bytes are fetched from the object store when they are needed.
//!
//! A file of the right length that was there at the start is verified first, and nothing comes. Else
//! whole files come, are verified against the listing of the checkpoint, synced and renamed. A block
//! that a checkpoint names may leave again, if there is a limit ([`room`]).
//! Whoever reads one that is not here is told so
//! (`latewood_engine::io::waiting`), and waits for it, up to a limit, or asks for it only. A file
//! that was asked for comes before those that nobody asked for.
//!
//! Invariants: all blocks that are open are known, with what becomes of their bytes. A file that was
//! removed while it was away does not come back; who holds it can still
//! have it read. Tested by `tests/tablet/away.rs`.

mod cached;
mod fetcher;
mod room;

pub use room::CacheFigures;

use crate::checkpoint::{Checkpoint, Objects, Row};
use crate::retry::Retry;
use cached::{Cached, Handle};
use fetcher::Fetcher;
use latewood_engine::io::{DirectoryLock, Disk, Env, File};
use latewood_engine::names;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The disk of a tablet.
#[derive(Clone, Debug)]
pub(crate) struct TieredDisk {
    below: Arc<dyn Disk>,
    fetcher: Arc<Fetcher>,
    dir: PathBuf,
    /// Where second names may stand for blocks that are not here.
    gathered: PathBuf,
}

/// The limit of a tablet's cache and what it holds.
#[derive(Clone, Debug)]
pub struct Cache(Arc<Fetcher>);

impl Cache {
    /// What it holds, which looks at each block.
    pub fn figures(&self) -> CacheFigures {
        self.0.cache_figures()
    }

    /// Has blocks that a checkpoint names leave this machine, those read least recently first, while
    /// they have more than this many bytes; 0 is no limit. Waits for nothing.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.0.room.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.0.make_room_later();
    }
}

impl TieredDisk {
    /// The disk of `env` with the files of `rows`, below `dir`, of which those that are there have
    /// the right length and are not verified. Files come from `objects`; attempts are repeated as
    /// `retry` says. In the folder `gathered`, a file may be linked that is not here.
    pub(crate) fn new(
        env: &Env,
        objects: &Objects,
        retry: Retry,
        dir: &Path,
        gathered: &Path,
        rows: Vec<Row>,
    ) -> Self {
        let below = Arc::clone(&env.disk);
        let files = rows.into_iter().map(|row| {
            let path = dir.join(&row.file.path);
            let is_held = env.disk.open(&path).is_ok();
            (path.clone(), Arc::new(Cached::away(path, row, is_held)))
        });
        Self {
            fetcher: Fetcher::new(Arc::clone(&below), objects.clone(), retry, files.collect()),
            below,
            dir: dir.to_owned(),
            gathered: gathered.to_owned(),
        }
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache(Arc::clone(&self.fetcher))
    }

    /// Blocks of a newer checkpoint, of which those that are unknown here are away. Returns these.
    ///
    /// # Errors
    /// One that has other bytes than the block of its name; then none is known.
    pub(crate) fn expect(&self, rows: Vec<Row>) -> Result<Vec<PathBuf>, PathBuf> {
        let mut files = self.fetcher.files.lock();
        let mut new = Vec::new();
        for row in rows {
            let path = self.dir.join(&row.file.path);
            match files.get(&path) {
                Some(held) if held.row().is_some_and(|held| held.file == row.file) => {}
                Some(_) => return Err(path),
                None => {
                    let is_held = self.below.open(&path).is_ok();
                    let away = Cached::away(path.clone(), row, is_held);
                    new.push((path, Arc::new(away)));
                }
            }
        }
        let paths = new.iter().map(|(path, _)| path.clone()).collect();
        files.extend(new);
        Ok(paths)
    }

    /// Takes back what [`TieredDisk::expect`] made known.
    pub(crate) fn forget(&self, paths: &[PathBuf]) {
        let mut files = self.fetcher.files.lock();
        paths.iter().for_each(|path| drop(files.remove(path)));
    }

    /// A checkpoint counts: the blocks that it names may leave.
    pub(crate) fn counts(&self, checkpoint: &Checkpoint) {
        let files = self.fetcher.files.lock();
        for row in &checkpoint.listing.files {
            if let Some(block) = files.get(&self.dir.join(&row.file.path)) {
                block.counts(row);
            }
        }
        drop(files);
        self.fetcher.make_room();
    }

    /// From now on a read waits `wait` for a file at most; before, for as long as it takes.
    pub(crate) fn limit_waits(&self, wait: Duration) {
        self.fetcher.limit_waits(wait);
    }

    /// Has all files fetched, in this order, while nobody asks for others.
    pub(crate) fn fetch_all(&self, order: &[PathBuf]) {
        self.fetcher.fetch_later(order);
    }

    /// Bytes of the files that must be downloaded.
    pub(crate) fn away_bytes(&self) -> u64 {
        self.fetcher.away_bytes()
    }

    /// Fetches nothing more; returns when nothing is under way, which the end of an attempt takes.
    pub(crate) fn stop(&self) {
        self.fetcher.stop();
    }
}

impl Disk for TieredDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.below.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        // In this order: a file that arrives in between is in both.
        let away = self.fetcher.names_in(path);
        let mut names = self.below.list(path)?;
        if !away.is_empty() {
            names.extend(away);
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let is_block = path.parent() == Some(&self.dir.join(names::BLOCKS));
        match self.fetcher.open(path, is_block)? {
            Some(cached) => Ok(Arc::new(Handle::new(cached, &self.fetcher))),
            None => self.below.open(path),
        }
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.below.open_to_write(path)
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        self.below.create(path, len_bytes)
    }

    fn reserve(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        self.below.reserve(path, len_bytes)
    }

    fn open_mapped(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.below.open_mapped(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fetcher.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fetcher.link(from, to, to.starts_with(&self.gathered))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.fetcher.remove(path)? {
            return Ok(());
        }
        self.below.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.below.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.below.lock(path)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.below.lock_to_read(path)
    }
}
