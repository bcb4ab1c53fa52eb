//! Small files as a whole, folders that may be missing, and what an error of the disk was about:
//! what several readers and writers of files do in the same way.
//!
//! Invariant: a file gets its name only once its bytes are durable, because a durable name must not
//! outlive them. Tested through those who use it, with the power cut at each step.

use super::{Disk, Env, File};
use crate::base::error::{Error, Result};
use std::io;
use std::path::Path;

/// Bytes copied at a time.
const COPY_BYTES: u64 = 1024 * 1024;

/// What failed, for an error of the operating system.
pub(crate) trait Context<T> {
    /// The same, or an `Io` error: `what` failed on `path`.
    fn context(self, what: &str, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &str, path: &Path) -> Result<T> {
        self.map_err(|error| Error::io(what, path, error))
    }
}

/// The same, but `None` where there is no such file.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The names in a folder; none where there is no folder.
pub(crate) fn list_if_there(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<String>> {
    Ok(if_there(disk.list(folder))?.unwrap_or_default())
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if_there(disk.remove(path)).map(drop)
}

/// The bytes of a file; `FileTooLarge` beyond `bytes_max`.
pub(crate) fn read_whole(disk: &dyn Disk, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let len_bytes = file.len_bytes()?;
    if len_bytes > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; len_bytes as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Writes a file anew, durably but for its name.
pub(crate) fn write_new(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_if_there(disk, path)?;
    let file = disk.create(path, 0)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// Gives the file `new` in `dir`, which is durable, the name `name` there, durably.
pub(crate) fn put_in_place(disk: &dyn Disk, dir: &Path, new: &str, name: &str) -> io::Result<()> {
    disk.rename(&dir.join(new), &dir.join(name))?;
    disk.sync_dir(dir)
}

/// Copies `len` bytes of `from`, from `offset` on, to the start of `to`, durably.
pub(crate) fn copy(from: &dyn File, offset: u64, len: u64, to: &dyn File) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let mut bytes = vec![0; (len - done).min(COPY_BYTES) as usize];
        from.read_at(&mut bytes, offset + done)?;
        to.write_at(&bytes, done)?;
        done += bytes.len() as u64;
    }
    to.sync()
}

/// Copies the first `len_bytes` of a file, all of it without; the bytes. The
/// copy is durable, its name not yet.
///
/// # Errors
/// What the operating system refuses.
pub(crate) fn copy_file(
    env: &Env,
    from: &Path,
    to: &Path,
    len_bytes: Option<u64>,
) -> io::Result<u64> {
    let source = env.disk.open(from)?;
    let len = match len_bytes {
        Some(len) => len,
        None => source.len_bytes()?,
    };
    copy(&*source, 0, len, &*env.disk.create(to, 0)?).map(|()| len)
}

/// Gives a file that never changes a second name, or copies it where that is
/// not possible; the bytes written.
///
/// # Errors
/// What the operating system refuses.
pub(crate) fn link_or_copy(env: &Env, from: &Path, to: &Path) -> io::Result<u64> {
    match env.disk.link(from, to) {
        Ok(()) => Ok(0),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::CrossesDevices
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            copy_file(env, from, to, None)
        }
        Err(error) => Err(error),
    }
}
