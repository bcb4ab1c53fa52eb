//! Copying files of a database into another folder, durably.

use crate::base::error::{Error, Result};
use crate::io::{Env, small};
use std::io::{self, ErrorKind as IoKind};
use std::path::Path;

/// Copies the first `len_bytes` of a file, all of it without; the bytes. The
/// copy is durable, its name not yet.
///
/// # Errors
/// What the operating system refuses.
pub(super) fn copy(env: &Env, from: &Path, to: &Path, len_bytes: Option<u64>) -> io::Result<u64> {
    let source = env.disk.open(from)?;
    let len = match len_bytes {
        Some(len) => len,
        None => source.len_bytes()?,
    };
    small::copy(&*source, 0, len, &*env.disk.create(to, 0)?).map(|()| len)
}

/// Gives a file that never changes a second name, or copies it where that is
/// not possible; the bytes written.
///
/// # Errors
/// What the operating system refuses.
pub(super) fn link_or_copy(env: &Env, from: &Path, to: &Path) -> io::Result<u64> {
    match env.disk.link(from, to) {
        Ok(()) => Ok(0),
        Err(error)
            if matches!(
                error.kind(),
                IoKind::CrossesDevices | IoKind::Unsupported | IoKind::PermissionDenied
            ) =>
        {
            copy(env, from, to, None)
        }
        Err(error) => Err(error),
    }
}

/// Writes a small file, durably but for its name.
///
/// # Errors
/// What the operating system refuses.
pub(super) fn write(env: &Env, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = env.disk.create(path, 0)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// Makes the folder `dir` ready for a copy: it must be empty or not there.
///
/// # Errors
/// `Invalid` where there is something in it, `Io`.
pub(super) fn empty_folder(env: &Env, dir: &Path, folders: &[&str]) -> Result<()> {
    let failed = |error| Error::io("cannot make the folder of the copy", dir, error);
    env.disk.create_dir_all(dir).map_err(failed)?;
    let mut held = env.disk.list(dir).map_err(failed)?;
    for folder in folders {
        held.extend(super::read::list(env, &dir.join(folder))?);
    }
    if let Some(name) = held.first() {
        let message = format!("the folder is not empty: it holds {name}");
        return Err(Error::new(crate::ErrorKind::Invalid, message).at(dir));
    }
    for folder in folders {
        let folder = dir.join(folder);
        env.disk.create_dir_all(&folder).map_err(failed)?;
    }
    Ok(())
}
