//! A simulated machine for tests: a disk that keeps only what its contract
//! promises, a clock that moves when told, and seeded randomness.
//!
//! The disk lives in memory. Of each file it knows the live bytes, the durable
//! bytes and which 512-byte sectors differ (`sim/image.rs`); of each directory the
//! live names, the durable names and the changes between. [`SimDisk::crash`]
//! makes the disk a power cut leaves: synced bytes are there, each unsynced
//! sector is kept, lost or torn, each unsynced change of a name is kept or
//! lost. [`SimDisk::kill`] makes the disk a killed process leaves: everything
//! written is there, and what was unsynced still is. A [`Fault`] makes one
//! operation fail, do nothing, or be the last before the power goes; a [`Hold`] keeps
//! operations waiting.
//!
//! Public so that tests of every crate can use it; the engine never does. Its
//! own tests are `tests/disk_contract.rs` and `tests/disk_sim.rs`.

mod clock;
mod hold;
mod image;
mod process;

pub use clock::{SimClock, SimRandom};
pub use hold::Hold;
pub use process::SimProcess;

use super::{DirectoryLock, Disk, Env, File};
use image::{FileImage, NameChange, apply_change};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an operation on the disk does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `File::write_at`.
    Write,
    /// `File::sync` of something written since the last.
    Sync,
    /// `File::sync` with nothing to make durable but perhaps a cut.
    IdleSync,
    /// `File::truncate`.
    Truncate,
    /// `Disk::create`.
    Create,
    /// `Disk::rename`.
    Rename,
    /// `Disk::link`.
    Link,
    /// `Disk::remove`.
    Remove,
    /// `Disk::sync_dir`.
    SyncDir,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The operation answers an error of this kind and does nothing, but a
    /// failed sync leaves its sectors lost for good, as Linux does.
    Fail(io::ErrorKind),
    /// The operation answers Ok and does nothing: as if the code had forgotten
    /// it.
    Skip,
    /// The power goes: this and every later operation fails.
    PowerCut,
}

/// Trouble for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which operations count; `None` counts them all.
    pub op: Option<Op>,
    /// How many of them go well first.
    pub after: u64,
    /// What then goes wrong, once.
    pub trouble: Trouble,
}

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
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names since the last sync of their directory, in order.
    changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    trace: Vec<Op>,
    faults: Vec<(Fault, u64)>,
    /// What waits, and how many do.
    held: Vec<Op>,
    waiting: usize,
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

    /// How many operations of a kind were asked for.
    pub fn count(&self, op: Op) -> u64 {
        let state = self.state.lock();
        state.trace.iter().filter(|&&done| done == op).count() as u64
    }

    /// How many operations were asked for.
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

    /// The disk as a power cut now would leave it; `seed` decides the fate of
    /// whatever is not durable.
    pub fn crash(&self, seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let state = self.state.lock();
        let mut names = state.durable_names.clone();
        // Journals commit in order, other file systems in any: try both.
        let in_order = random.below(2) == 0;
        let kept_until = random.below(state.changes.len() as u64 + 1);
        for (index, change) in state.changes.iter().enumerate() {
            let kept = if in_order {
                (index as u64) < kept_until
            } else {
                random.below(2) == 0
            };
            if kept {
                apply_change(&mut names, change);
            }
        }
        let files = state
            .files
            .iter()
            .filter(|(id, _)| names.values().any(|named| named == *id))
            .map(|(id, file)| (*id, file.crash(&random)))
            .collect();
        Self {
            state: Arc::new(Mutex::new(State {
                files,
                next_file: state.next_file,
                directories: state.directories.clone(),
                durable_names: names.clone(),
                names,
                ..State::default()
            })),
            ..Self::default()
        }
    }

    /// The disk as a killed process leaves it: all that was written is there,
    /// durable or not, and nobody holds a lock.
    pub fn kill(&self) -> Self {
        let state = self.state.lock();
        Self {
            state: Arc::new(Mutex::new(State {
                files: state.files.clone(),
                next_file: state.next_file,
                directories: state.directories.clone(),
                names: state.names.clone(),
                durable_names: state.durable_names.clone(),
                changes: state.changes.clone(),
                ..State::default()
            })),
            ..Self::default()
        }
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
    /// Counts an operation and says whether it is to be done.
    fn enter(&mut self, op: Op) -> io::Result<bool> {
        self.trace.push(op);
        if self.dead {
            return Err(io::Error::other("the power is off"));
        }
        let mut done = true;
        for (fault, seen) in &mut self.faults {
            if fault.op.is_some_and(|wanted| wanted != op) {
                continue;
            }
            *seen += 1;
            if *seen != fault.after + 1 {
                continue;
            }
            match fault.trouble {
                Trouble::Fail(kind) => return Err(kind.into()),
                Trouble::Skip => done = false,
                Trouble::PowerCut => {
                    self.dead = true;
                    return Err(io::Error::other("the power goes off"));
                }
            }
        }
        Ok(done)
    }

    fn alive(&self) -> io::Result<()> {
        match self.dead {
            true => Err(io::Error::other("the power is off")),
            false => Ok(()),
        }
    }

    fn change(&mut self, change: NameChange) {
        apply_change(&mut self.names, &change);
        self.changes.push(change);
    }

    fn file(&mut self, id: u64) -> &mut FileImage {
        self.files.entry(id).or_default()
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        let all = path.ancestors().map(Path::to_owned);
        state.directories.extend(all);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive()?;
        if !state.directories.contains(path) {
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
        let state = self.state.lock();
        state.alive()?;
        let id = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile::handle(self, id))
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        self.wait_while_held(&mut state, Op::Create);
        let done = state.enter(Op::Create)?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path
            .parent()
            .is_some_and(|dir| state.directories.contains(dir))
        {
            return Err(io::ErrorKind::NotFound.into());
        }
        let id = state.next_file;
        state.next_file += 1;
        state.files.insert(id, FileImage::zeros(len_bytes));
        if done {
            state.change(NameChange::Set(path.to_owned(), id));
        }
        Ok(SimFile::handle(self, id))
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
        let inside = to
            .parent()
            .is_some_and(|dir| state.directories.contains(dir));
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
        for change in &synced {
            apply_change(&mut state.durable_names, change);
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

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: u64,
    written: Mutex<bool>,
}

impl SimFile {
    fn handle(disk: &SimDisk, id: u64) -> Arc<dyn File> {
        Arc::new(Self {
            disk: disk.clone(),
            id,
            written: Mutex::new(false),
        })
    }
}

impl File for SimFile {
    fn len_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.state.lock();
        state.alive()?;
        Ok(state.file(self.id).bytes().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.alive()?;
        let file = state.file(self.id).bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = file
            .get(start..)
            .and_then(|rest| rest.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        *self.written.lock() = true;
        let mut state = self.disk.state.lock();
        let entered = state.enter(Op::Write);
        // A write that the power cut met may have got anywhere.
        if matches!(entered, Ok(true)) || state.dead {
            state.file(self.id).write(bytes, offset);
        }
        entered.map(|_| ())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let op = match state.file(self.id).owes_writes() {
            true => Op::Sync,
            false => Op::IdleSync,
        };
        self.disk.wait_while_held(&mut state, op);
        match state.enter(op) {
            Ok(true) => state.file(self.id).sync(),
            Ok(false) => {}
            Err(error) => {
                if !state.dead {
                    state.file(self.id).fail_sync();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        if *self.written.lock() || len_bytes > self.len_bytes()? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut state = self.disk.state.lock();
        if state.enter(Op::Truncate)? {
            state.file(self.id).truncate(len_bytes);
        }
        Ok(())
    }
}
