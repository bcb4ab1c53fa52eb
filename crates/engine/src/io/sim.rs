//! A simulated machine for tests: a disk that keeps only what its contract
//! promises, a clock that moves when told, and seeded randomness.
//!
//! The disk lives in memory. Of each file it knows the live bytes, the durable
//! bytes and which 512-byte sectors differ (`sim/image.rs`); of each directory the
//! live names, the durable names and the changes between, those of directories
//! included. [`SimDisk::crash`] makes the disk a power cut leaves: synced bytes are
//! there, each unsynced sector is kept, lost or torn, or each page as a whole, as
//! where it was written through a mapping; each unsynced change of a name is kept
//! or lost, and with a directory all that is in it. [`SimDisk::kill`] makes the disk a killed process leaves: everything
//! written is there, and what was unsynced still is. A [`Fault`] makes one
//! operation fail, do nothing, or be the last before the power goes; a [`Hold`] keeps
//! operations waiting.
//!
//! Public so that tests of every crate can use it; the engine never does. Its
//! own tests are `tests/disk_contract.rs` and `tests/disk_sim.rs`.

mod clock;
mod crash;
mod fault;
mod file;
mod hold;
mod image;
mod process;

pub use clock::{SimClock, SimRandom, seed};
pub use fault::{Fault, Op, Trouble};
pub use hold::Hold;
pub use process::SimProcess;

use super::directories::{Directories, create_dir_all};
use super::{DirectoryLock, Disk, Env, File};
use file::SimFile;
use image::{FileImage, NameChange, apply_change};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    released: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<u64, FileImage>,
    next_file: u64,
    directories: BTreeSet<PathBuf>,
    durable_directories: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names since the last sync of their directory, in order.
    changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    trace: Vec<Op>,
    looks: Vec<Op>,
    faults: Vec<(Fault, u64)>,
    /// What waits, and how many do.
    held: Vec<Op>,
    waiting: usize,
    free_bytes: Option<u64>,
    dead: bool,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans one fault, beside those planned before.
    pub fn plan(&self, fault: Fault) {
        self.state.lock().faults.push((fault, 0));
    }

    /// Takes back all faults that have not struck.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Says from now on that this much is free; nothing is refused for it.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state.lock().free_bytes = Some(bytes);
    }

    /// How many operations of a kind were asked for.
    pub fn count(&self, op: Op) -> u64 {
        let state = self.state.lock();
        let all = state.trace.iter().chain(&state.looks);
        all.filter(|&&done| done == op).count() as u64
    }

    /// How many operations were asked for that change something.
    pub fn count_all(&self) -> u64 {
        self.state.lock().trace.len() as u64
    }

    /// The operations asked for, in order.
    pub fn trace(&self) -> Vec<Op> {
        self.state.lock().trace.clone()
    }

    /// Sectors written and not synced, over all files that have a name.
    pub fn unsynced_sectors(&self) -> usize {
        let state = self.state.lock();
        let named = state.names.values();
        named.map(|id| state.files[id].unsynced_sectors()).sum()
    }

    /// The live bytes of a file, for tests that damage them.
    ///
    /// # Errors
    /// `NotFound` where there is none.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state.lock();
        let id = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.files[id].bytes().to_vec())
    }

    /// Replaces a file's bytes, durably, behind everyone's back.
    ///
    /// # Errors
    /// `NotFound` where there is none.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(id, FileImage::durable(bytes));
        Ok(())
    }

    /// A simulated machine around this disk; its randomness starts at `seed`.
    pub fn env(&self, seed: u64) -> Env {
        Env {
            disk: Arc::new(self.clone()),
            clock: Arc::new(SimClock::default()),
            random: Arc::new(SimRandom::new(seed)),
            process: Arc::new(SimProcess::default()),
        }
    }
}

impl State {
    fn change(&mut self, change: NameChange) {
        apply_change(&mut self.names, &mut self.directories, &change);
        self.changes.push(change);
    }

    fn has_directory(&self, path: &Path) -> bool {
        // The root of everything, and where a relative path begins.
        let always = [Path::new("/"), Path::new(".")];
        always.contains(&path) || self.directories.contains(path)
    }

    fn file(&mut self, id: u64) -> &mut FileImage {
        self.files.entry(id).or_default()
    }
}

impl Disk for SimDisk {
    fn free_bytes(&self, _path: &Path) -> io::Result<Option<u64>> {
        Ok(self.state.lock().free_bytes)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        create_dir_all(self, path, &|path: &Path| self.sync_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        state.look(Op::List)?;
        if !state.has_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state
            .names
            .keys()
            .filter(|name| name.parent() == Some(path));
        let names = inside.filter_map(|name| Some(name.file_name()?.to_str()?.to_owned()));
        Ok(names.collect())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        state.look(Op::Open)?;
        let id = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile::to_read(self, id))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        state.look(Op::Open)?;
        let id = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile::to_write(self, id))
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        self.wait_while_held(&mut state, Op::Create);
        let done = state.enter(Op::Create)?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|dir| state.has_directory(dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let id = state.next_file;
        state.next_file += 1;
        state.files.insert(id, FileImage::zeros(len_bytes));
        if done {
            state.change(NameChange::Set(path.to_owned(), id));
        }
        Ok(SimFile::to_write(self, id))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let done = state.enter(Op::Rename)?;
        let id = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        if done {
            state.change(NameChange::Move(from.to_owned(), to.to_owned(), id));
        }
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let done = state.enter(Op::Link)?;
        let id = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inside = to.parent().is_some_and(|dir| state.has_directory(dir));
        if !inside {
            return Err(io::ErrorKind::NotFound.into());
        }
        if done {
            state.change(NameChange::Set(to.to_owned(), id));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let done = state.enter(Op::Remove)?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if done {
            state.change(NameChange::Clear(path.to_owned()));
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.enter(Op::SyncDir)? {
            return Ok(());
        }
        let (synced, kept) = std::mem::take(&mut state.changes)
            .into_iter()
            .partition(|change| change.directory() == Some(path));
        let synced: Vec<NameChange> = synced;
        state.changes = kept;
        let state = &mut *state;
        for change in &synced {
            let directories = &mut state.durable_directories;
            apply_change(&mut state.durable_names, directories, change);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let mut state = self.state.lock();
        state.alive()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }
}

impl Directories for SimDisk {
    fn is_dir(&self, path: &Path) -> bool {
        self.state.lock().has_directory(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.enter(Op::CreateDir)? {
            state.change(NameChange::Directory(path.to_owned()));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl DirectoryLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state.lock().locks.remove(&self.path);
    }
}
