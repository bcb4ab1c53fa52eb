//! The seam to files, time, randomness and memory, and the durability contract.
//!
//! The engine touches the world only through [`Disk`], [`Clock`], [`Random`]
//! and [`Process`]. Two implementations keep the same contract and pass the same
//! tests (`tests/disk_contract.rs`): [`disk::RealDisk`] and the simulated
//! `sim::SimDisk`, which loses, tears and reorders whatever the contract
//! does not protect. Code that is right on the simulated disk relies on
//! nothing but these words:
//!
//! - A byte is **written** once `write_at` returned: every reader on this
//!   machine sees it and it survives the death of the process, not a power cut.
//! - A file's bytes and length are **durable** once `sync` on it returned.
//! - A name (created, renamed or removed) is durable once `sync_dir` on its
//!   directory returned. Syncing a file does not make its name durable.
//! - A failed write or sync leaves those bytes in an unknown state; a later
//!   sync that succeeds says nothing about them.
//! - Dropping a handle makes nothing durable.
//! - A write may tear at any byte when power fails, but does not harm bytes
//!   that it left as they were.

pub(crate) mod quarantine;
pub(crate) mod small;
pub(crate) mod trusted;

pub mod clock;
mod directories;
pub mod directory;
pub mod disk;
mod mapped;
mod nowhere;
pub mod process;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod waiting;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Directories and the names in them.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory and whichever parents are missing, durably.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The names of the files in a directory, sorted.
    ///
    /// # Errors
    /// What the operating system refuses; a name that is no UTF-8.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Opens an existing file to read and sync it; it refuses to be written.
    ///
    /// # Errors
    /// `NotFound` where there is none, and what the operating system refuses.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file to read and write.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Creates a file of `len_bytes` zeros, every one of them written, so that
    /// later writes inside it need no new space. Neither its bytes nor its
    /// name are durable yet.
    ///
    /// # Errors
    /// `AlreadyExists` where the name is taken, and what the operating system
    /// refuses: then there is no file.
    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>>;

    /// Bytes that the file system of `path` has free for this process, if it says.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn free_bytes(&self, path: &Path) -> io::Result<Option<u64>> {
        let _ = path;
        Ok(None)
    }

    /// Creates a file of `len_bytes` zeros whose space is reserved but not
    /// written, made for many small writes: they reach the kernel without a
    /// system call where the file system allows, and its syncs cost more than
    /// those of [`Disk::create`]. Neither its bytes nor its name are durable yet.
    ///
    /// # Errors
    /// As [`Disk::create`].
    fn reserve(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        self.create(path, len_bytes)
    }

    /// Opens an existing file, fully written once, for many small writes.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn open_mapped(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_to_write(path)
    }

    /// Renames a file, replacing what holds the new name. Another process sees
    /// the old or the new state, never a third; durable after `sync_dir`.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name; both names are the same bytes from then on,
    /// and each can be removed by itself. Durable after `sync_dir`.
    ///
    /// # Errors
    /// `AlreadyExists` where the new name is taken, `NotFound` where there is
    /// no file, `CrossesDevices` or `Unsupported` where a file cannot have two
    /// names, and what the operating system refuses.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file's name; durable after `sync_dir`. Open handles go on.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive lock that a file stands for, creating the file if
    /// needed. The lock ends when the value is dropped or the process dies.
    ///
    /// # Errors
    /// `WouldBlock` where another holder has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>>;

    /// The same for a process that only reads. Without write permission the lock is
    /// shared with other such readers. If the file does not exist and cannot be
    /// created, no lock is taken, and [`DirectoryLock::kept_others_out`] tells
    /// whether another process took it meanwhile.
    ///
    /// # Errors
    /// As [`Disk::lock`].
    fn lock_to_read(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.lock(path)
    }
}

/// The bytes of one file.
pub trait File: Send + Sync + Debug {
    /// The length in bytes.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before the buffer is full; `WouldBlock` where it must
    /// be fetched first.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file where needed.
    ///
    /// # Errors
    /// What the operating system refuses; the bytes are then in an unknown
    /// state.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all bytes written so far, through any handle, durable.
    ///
    /// # Errors
    /// What the operating system refuses; never try again and believe it.
    fn sync(&self) -> io::Result<()>;

    /// Makes durable all that readers see in it, long runs of zeros aside, also what a
    /// failed sync lost before: the kernel may keep such pages in memory and count them as written
    /// (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    /// Reads the whole file from the disk. Only before the first write.
    ///
    /// # Errors
    /// What the operating system refuses.
    fn sync_again(&self) -> io::Result<()> {
        self.sync()
    }

    /// Cuts the file to `len_bytes`; durable after `sync`. Only before the
    /// first write through this handle, since writes may go through a mapping
    /// that must not lose its pages.
    ///
    /// # Errors
    /// `InvalidInput` after a write or for a length beyond the end, and what
    /// the operating system refuses.
    fn truncate(&self, len_bytes: u64) -> io::Result<()>;

    /// Says that these bytes will be read soon, so that they are on their way meanwhile. Only a
    /// hint.
    fn will_read(&self, offset: u64, len_bytes: u64) {
        let _ = (offset, len_bytes);
    }

    /// Whether it is one of a disk that is a cache: its bytes may not be on this machine now, or
    /// later. Its length is known.
    fn may_be_away(&self) -> bool {
        false
    }

    /// Whether its bytes are on this machine.
    fn is_here(&self) -> bool {
        true
    }

    /// Fetches the bytes of a file that is not on this machine; waits for them, as if it had done
    /// so since `since`, or only asks for them. Does nothing with other files.
    ///
    /// # Errors
    /// `WouldBlock` if it only asked, `InvalidData` if they are lost: missing or wrong where they
    /// are kept; any other kind if they did not come, and may later.
    fn fetch(&self, since: Option<Instant>) -> io::Result<()> {
        let _ = since;
        Ok(())
    }
}

/// A lock on a directory; dropping it lets go.
pub trait DirectoryLock: Send + Sync + Debug {
    /// Whether nobody can have written there since it was taken.
    fn kept_others_out(&self) -> bool {
        true
    }
}

/// Time.
pub trait Clock: Send + Sync + Debug {
    /// Wall-clock milliseconds since the Unix epoch; may jump.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since an arbitrary start; never goes back.
    fn monotonic_ns(&self) -> u64;

    /// The same, with the time in which the machine was suspended, where it can be.
    fn boottime_ns(&self) -> u64 {
        self.monotonic_ns()
    }
}

/// Randomness, for salts and seeds, not for secrets.
pub trait Random: Send + Sync + Debug {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;
}

/// The memory of this process.
pub trait Process: Send + Sync + Debug {
    /// Bytes of anonymous memory it has in RAM now, where the system says:
    /// what it allocated and touched, mapped files aside.
    fn anonymous_bytes(&self) -> Option<u64>;

    /// Bytes of memory it may have: those of the machine or, where that is
    /// less, of its control group.
    fn memory_bytes(&self) -> Option<u64>;
}

/// The world the engine runs in.
#[derive(Clone, Debug)]
pub struct Env {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Memory.
    pub process: Arc<dyn Process>,
}

impl Env {
    /// The machine's own files, time and randomness.
    pub fn real() -> Self {
        Self {
            disk: Arc::new(disk::RealDisk),
            clock: Arc::new(clock::RealClock::default()),
            random: Arc::new(clock::RealRandom),
            process: Arc::new(process::RealProcess),
        }
    }

    /// The machine's own time and randomness, and a disk without files.
    pub(crate) fn without_files() -> Self {
        Self {
            disk: Arc::new(nowhere::Nowhere),
            ..Self::real()
        }
    }
}
