//! Copying files of a database into another folder, durably.

use crate::base::error::{Error, Result};
use crate::io::Env;
pub(super) use crate::io::small::{copy_file as copy, link_or_copy};
use std::io;
use std::path::Path;

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
