//! The machine's file system.
//!
//! There are two ways to write, for two uses of the log. A file from `reserve`
//! or `open_mapped` is written through a shared mapping: copying a log group
//! needs no system call, and the bytes belong to the kernel at once, so they
//! survive a killed process. `sync` is fdatasync, which flushes dirty mapped
//! pages too, but takes two to three times as long for a short record as where
//! that came by pwrite. So a file from `create` or `open_to_write`, for logs that
//! are synced for each batch, is written by pwrite, and so is any file that
//! cannot be mapped.
//!
//! Direct writes (O_DIRECT) have a short record on disk in about a sixth less
//! time (`benches/disk.rs`), but only as whole blocks: the last one, not full
//! yet, would be written again with each record, and a crash in the middle
//! could take records with it that were durable and acknowledged. Filling each
//! block up would make the log of single samples a hundred times as long. So
//! they are not used. A submission queue (io_uring) could save the system
//! calls at most, a twentieth of what the disk takes.
//!
//! Tested by `tests/disk_contract.rs`.

use super::directories::{Directories, create_dir_all};
use super::mapped::{Mapped, Put};
use super::{DirectoryLock, Disk, File};
use parking_lot::Mutex;
use rustix::fs::Advice;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are compared with the disk at a time: whole pages of any size.
const COMPARED_BYTES: usize = 4 << 20;
/// Bytes written per system call while a new file is filled with zeros.
const FILL_BYTES: usize = 1024 * 1024;

/// The machine's file system.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        create_dir_all(self, path, &|path: &Path| self.sync_dir(path))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<Option<u64>> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Some(found.f_bavail.saturating_mul(found.f_frsize)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().into_string().map_err(|name| {
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("file name {} is no UTF-8", name.display()),
                    )
                })?);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::File::open(path)?;
        Ok(Arc::new(RealFile::new(file, Mapping::Unwanted)))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Arc::new(RealFile::new(file, Mapping::Unwanted)))
    }

    fn open_mapped(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // A copy of the file may have lost blocks of zeros.
        allocate(&file, file.metadata()?.len())?;
        Ok(Arc::new(RealFile::new(file, Mapping::Untried)))
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = create_new(path)?;
        whole_or_gone(path, fill(&file, len_bytes))?;
        Ok(Arc::new(RealFile::new(file, Mapping::Unwanted)))
    }

    fn reserve(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = create_new(path)?;
        let allocated = allocate(&file, len_bytes);
        let made = allocated.and_then(|is_allocated| {
            if is_allocated {
                Ok(())
            } else {
                fill(&file, len_bytes)
            }
        });
        whole_or_gone(path, made)?;
        Ok(Arc::new(RealFile::new(file, Mapping::Untried)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        held(file.try_lock(), file)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let refused = match self.lock(path) {
            Err(error) if is_read_only(&error) => error,
            locked => return locked,
        };
        match fs::File::open(path) {
            // Over NFS a file that is only read can be locked in no other way.
            Ok(file) => held(file.try_lock_shared(), file),
            // The process that serves the directory creates the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Box::new(Unlocked(path.to_owned())))
            }
            Err(_) => Err(refused),
        }
    }
}

impl Directories for RealDisk {
    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }
}

fn held(locked: Result<(), TryLockError>, file: fs::File) -> io::Result<Box<dyn DirectoryLock>> {
    match locked {
        Ok(()) => Ok(Box::new(RealLock(file))),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether it says that nothing may be written, not that nothing may be read.
fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn create_new(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

/// The result of creating the file at `path`. On failure the file is removed, so
/// that the next attempt meets the cause, not the remains of this one.
fn whole_or_gone(path: &Path, made: io::Result<()>) -> io::Result<()> {
    made.inspect_err(|_| {
        // The failure is reported; a file that stays is harmless.
        let _ = fs::remove_file(path);
    })
}

/// Allocates `len_bytes` for `file` where none are allocated; false if its file system
/// cannot.
fn allocate(file: &fs::File, len_bytes: u64) -> io::Result<bool> {
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(file, flags, 0, len_bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL) => Ok(false),
        allocated => allocated.map(|()| true).map_err(io::Error::from),
    }
}

/// Writes `len_bytes` zeros.
fn fill(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    let zeros = vec![0_u8; FILL_BYTES];
    let mut filled = 0;
    while filled < len_bytes {
        let step = (len_bytes - filled).min(FILL_BYTES as u64);
        // `step` is at most FILL_BYTES, so it fits.
        file.write_all_at(&zeros[..step as usize], filled)?;
        filled += step;
    }
    Ok(())
}

/// An open lock file: the kernel's lock lasts as long as the handle.
#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "held for its lock")] fs::File);

impl DirectoryLock for RealLock {}

/// Stands for a lock whose file is not there and cannot be made.
#[derive(Debug)]
pub(super) struct Unlocked(pub(super) PathBuf);

impl DirectoryLock for Unlocked {
    fn kept_others_out(&self) -> bool {
        !self.0.exists()
    }
}

/// An open file, mapped at its first write if it is to be mapped at all.
#[derive(Debug)]
struct RealFile {
    file: fs::File,
    /// Held while bytes are copied: writers of one file take turns, which
    /// makes copying into the mapping sound whatever the callers do.
    mapping: Mutex<Mapping>,
}

#[derive(Debug)]
enum Mapping {
    /// Nothing written yet; to be mapped.
    Untried,
    /// Nothing written yet; not to be mapped.
    Unwanted,
    /// All bytes the file had at its first write.
    Mapped(Mapped),
    /// Written by system calls: so wanted, or the file is empty, its file system
    /// maps nothing, or a page could not be had.
    Unmapped,
}

impl RealFile {
    fn new(file: fs::File, mapping: Mapping) -> Self {
        Self {
            file,
            mapping: Mutex::new(mapping),
        }
    }

    /// Checks that the file still has all the bytes that were mapped.
    fn check_len(&self, mapped_bytes: u64) -> io::Result<()> {
        if self.len_bytes()? < mapped_bytes {
            let message = "the file was truncated while it was written to";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        Ok(())
    }
}

impl File for RealFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut mapping = self.mapping.lock();
        *mapping = match std::mem::replace(&mut *mapping, Mapping::Unmapped) {
            Mapping::Untried => Mapped::new(&self.file).map_or(Mapping::Unmapped, Mapping::Mapped),
            Mapping::Unwanted => Mapping::Unmapped,
            other => other,
        };
        if let Mapping::Mapped(mapped) = &mut *mapping {
            match mapped.put(bytes, offset) {
                Put::Copied => return Ok(()),
                Put::Outside => {}
                Put::Lost => {
                    let mapped_bytes = mapped.len_bytes();
                    *mapping = Mapping::Unmapped;
                    // What was written there is gone: no later write makes up for it.
                    self.check_len(mapped_bytes)?;
                }
            }
        }
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let (full, mapped_bytes) = match &mut *self.mapping.lock() {
            Mapping::Mapped(mapped) => (mapped.take_full(), mapped.len_bytes()),
            _ => (None, 0),
        };
        // Without the lock: it can take as long as a thousand writes.
        if let Some(full) = full {
            // Where the system will not, the sync only takes longer.
            let _ = full.unmap();
        }
        self.file.sync_data()?;
        // Behind the end of a file the rest of its last page takes writes, for nothing.
        self.check_len(mapped_bytes)
    }

    fn sync_again(&self) -> io::Result<()> {
        self.file.sync_data()?;
        let len_bytes = self.len_bytes()?;
        let (mut seen, mut stored) = (Vec::new(), Vec::new());
        for offset in (0..len_bytes).step_by(COMPARED_BYTES) {
            // At most COMPARED_BYTES, so it fits.
            let len = (len_bytes - offset).min(COMPARED_BYTES as u64) as usize;
            seen.resize(len, 0);
            stored.resize(len, 0);
            self.read_at(&mut seen, offset)?;
            if seen.iter().fold(0, |all, byte| all | byte) == 0 {
                continue;
            }
            let (range, advice) = (NonZeroU64::new(len as u64), Advice::DontNeed);
            rustix::fs::fadvise(&self.file, offset, range, advice)?;
            // A page that cannot be read is lost, too.
            let is_stored = self.read_at(&mut stored, offset).is_ok() && seen == stored;
            if !is_stored {
                self.file.write_all_at(&seen, offset)?;
            }
        }
        self.file.sync_data()
    }

    fn will_read(&self, offset: u64, len_bytes: u64) {
        let (range, advice) = (NonZeroU64::new(len_bytes), Advice::WillNeed);
        // A read that was not announced only takes longer.
        let _ = rustix::fs::fadvise(&self.file, offset, range, advice);
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        let mapping = self.mapping.lock();
        if !matches!(*mapping, Mapping::Untried | Mapping::Unwanted)
            || len_bytes > self.len_bytes()?
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.set_len(len_bytes)
    }
}
