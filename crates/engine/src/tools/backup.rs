//! A copy of a database while it is served.
//!
//! The log is pinned first, then the manifest is read and every file it names
//! is linked into the copy: those never change. A file that went away
//! meanwhile means that the manifest is an old one already, and all is done
//! again with the new one. Last comes the log up to what is written then. So
//! the copy is the database as a killed process would leave it a moment later,
//! and opening it is an ordinary recovery. FORMAT is written at the very end:
//! an unfinished copy is no database. Tested by `tests/tools.rs`.

use super::copying::{copy, empty_folder, link_or_copy, write};
use super::{list, manifest_bytes};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::names;
use crate::store::Manifest;
use std::io::ErrorKind as IoKind;
use std::path::Path;

/// How often a manifest may be found to be an old one.
const ATTEMPTS: usize = 100;
/// The folders of a database.
pub(super) const FOLDERS: [&str; 3] = [names::BLOCKS, names::SERIES, names::WAL];

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// Blocks and series files.
    pub files: u64,
    /// Bytes that were copied, not linked.
    pub copied_bytes: u64,
    /// Segments of the log.
    pub segments: u64,
}

impl Db {
    /// Copies the database into the folder `to`, made where missing, while it
    /// goes on being used. The copy holds everything acknowledged before the
    /// call, and of what is written meanwhile a part that ends somewhere. Blocks
    /// and series files are hard links where `to` is on the same file system,
    /// else copies. It is durable at return.
    ///
    /// # Errors
    /// `Invalid` where `to` is not empty or the database has no log, `Io`. An
    /// unfinished copy stays and is no database.
    pub fn backup(&self, to: &Path) -> Result<Backup> {
        let (env, dir) = (&self.core.env, self.directory());
        let Some(wal) = &self.core.wal else {
            let message = "a database without a log cannot be backed up";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        empty_folder(env, to, &FOLDERS)?;
        let pin = wal.pin();
        let mut backup = Backup::default();
        let manifest = link_files(env, dir, to, &mut backup)?;
        for (path, len_bytes) in pin.segments() {
            let name = path.file_name().unwrap_or_default();
            let copied = copy(env, &path, &to.join(names::WAL).join(name), Some(len_bytes));
            backup.copied_bytes +=
                copied.map_err(|error| Error::io("cannot back up the log", &path, error))?;
            backup.segments += 1;
        }
        drop(pin);
        finish(env, dir, to, manifest.as_deref())
            .map_err(|error| Error::io("cannot finish the backup", to, error))?;
        Ok(backup)
    }
}

/// Links what the manifest names; its bytes.
fn link_files(env: &Env, dir: &Path, to: &Path, backup: &mut Backup) -> Result<Option<Vec<u8>>> {
    for _ in 0..ATTEMPTS {
        let Some(bytes) = manifest_bytes(env, dir)? else {
            return Ok(None);
        };
        let path = dir.join(names::MANIFEST);
        let manifest = Manifest::decode(&bytes).map_err(|error| error.at(&path))?;
        if link_all(env, dir, to, &manifest, backup)? {
            return Ok(Some(bytes));
        }
        for folder in [names::BLOCKS, names::SERIES] {
            let folder = to.join(folder);
            for name in list(env, &folder)? {
                let removed = env.disk.remove(&folder.join(name));
                removed.map_err(|error| Error::io("cannot begin anew", &folder, error))?;
            }
        }
        *backup = Backup::default();
    }
    let message = "files were replaced faster than they could be linked; try again";
    Err(Error::new(ErrorKind::Limit, message))
}

/// Whether every file was there.
fn link_all(
    env: &Env,
    dir: &Path,
    to: &Path,
    manifest: &Manifest,
    backup: &mut Backup,
) -> Result<bool> {
    let blocks = manifest
        .blocks()
        .map(|block| (names::BLOCKS, names::block(block.number)));
    let series = manifest.series_files();
    let series = series.map(|file| (names::SERIES, names::series_file(file.number)));
    for (folder, name) in blocks.chain(series) {
        let from = dir.join(folder).join(&name);
        match link_or_copy(env, &from, &to.join(folder).join(&name)) {
            Ok(copied) => {
                backup.files += 1;
                backup.copied_bytes += copied;
            }
            Err(error) if error.kind() == IoKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("cannot back up a file", &from, error)),
        }
    }
    Ok(true)
}

/// Names, manifest, and the FORMAT that makes it a database.
pub(super) fn finish(
    env: &Env,
    dir: &Path,
    to: &Path,
    manifest: Option<&[u8]>,
) -> std::io::Result<()> {
    for folder in FOLDERS {
        env.disk.sync_dir(&to.join(folder))?;
    }
    if let Some(bytes) = manifest {
        write(env, &to.join(names::MANIFEST), bytes)?;
    }
    env.disk.sync_dir(to)?;
    // Under another name until it is whole, as in a new directory.
    let unfinished = to.join(names::FORMAT_NEW);
    copy(env, &dir.join(names::FORMAT), &unfinished, None)?;
    env.disk.rename(&unfinished, &to.join(names::FORMAT))?;
    env.disk.sync_dir(to)
}
