//! Opening a database directory: made durably, locked, of a known version.
//!
//! FORMAT holds one line, `latewood directory format 1`. It is written under
//! another name, synced and renamed, so it is whole or absent; a directory
//! without it is new. Tested by unit tests on the simulated disk.

use super::small::{Context, if_there, list_if_there, put_in_place, read_whole, write_new};
use super::{DirectoryLock, Env};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use std::io;
use std::path::{Path, PathBuf};

const UNREADABLE_FORMAT: &str = "cannot read the directory's format version";
const FORMAT_PREFIX: &str = "latewood directory format ";
const FORMAT_VERSION: u32 = 1;
/// No FORMAT of any version is longer than this.
const FORMAT_BYTES_MAX: u64 = 256;

/// A directory that no other process writes to until the guard is dropped.
#[derive(Debug)]
pub struct DirectoryGuard {
    path: PathBuf,
    lock: Box<dyn DirectoryLock>,
}

/// In place of the lock of a directory that does not exist.
#[derive(Debug)]
struct Unlocked;

impl DirectoryLock for Unlocked {}

impl DirectoryGuard {
    /// The directory of a database without files.
    pub(crate) fn nowhere() -> Self {
        Self {
            path: PathBuf::new(),
            lock: Box::new(Unlocked),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of damaged files; there once something was.
    pub fn quarantine_dir(&self) -> PathBuf {
        names::quarantine_dir(&self.path)
    }

    /// The folder of the log.
    pub fn log_dir(&self) -> PathBuf {
        names::log_dir(&self.path)
    }

    /// Refuses what was read where there was no lock to take and a server
    /// started meanwhile. To be asked at the end.
    ///
    /// # Errors
    /// `Locked`.
    pub fn check_undisturbed(&self) -> Result<()> {
        if self.lock.kept_others_out() {
            return Ok(());
        }
        let message = "a server started meanwhile and may have changed the files: try again";
        Err(Error::new(ErrorKind::Locked, message).at(&self.path))
    }
}

/// Makes `dir` and its folders durably where they are missing, takes the
/// lock, and checks the format version, or writes it into a new directory.
///
/// # Errors
/// `Locked` where another process holds the directory, `Unsupported` for a
/// format version this build does not know, `Corrupt` for a FORMAT that is
/// none, `Io` for the rest.
pub fn open_directory(env: &Env, dir: &Path) -> Result<DirectoryGuard> {
    let disk = &env.disk;
    let made = disk.create_dir_all(dir);
    made.context("cannot create the data directory", dir)?;
    let lock = env.disk.lock(&dir.join(names::LOCK));
    let lock = lock.map_err(|error| not_locked(dir, error))?;
    check_format(env, dir)?;
    let log = names::log_dir(dir);
    let made = disk.create_dir_all(&log);
    made.context("cannot create the log directory", &log)?;
    Ok(DirectoryGuard {
        path: dir.to_owned(),
        lock,
    })
}

/// Takes the lock of a directory that holds a database already, and checks the
/// format version. Only the file of the lock is made, where it is missing and
/// may be made; no right to change anything is needed. Where there is no lock
/// to take, [`DirectoryGuard::check_undisturbed`] tells at the end whether a server started.
///
/// # Errors
/// `Invalid` where there is no database; else as [`open_directory`].
pub fn open_existing(env: &Env, dir: &Path) -> Result<DirectoryGuard> {
    let path = dir.join(names::FORMAT);
    if if_there(env.disk.open(&path))
        .context(UNREADABLE_FORMAT, &path)?
        .is_none()
    {
        refuse_data_without_format(env, dir)?;
        return Err(Error::new(ErrorKind::Invalid, "there is no database").at(dir));
    }
    let lock = env.disk.lock_to_read(&dir.join(names::LOCK));
    let lock = lock.map_err(|error| not_locked(dir, error))?;
    check_format(env, dir)?;
    Ok(DirectoryGuard {
        path: dir.to_owned(),
        lock,
    })
}

/// Whether the log of the database in `dir` is elsewhere, so that the directory is a cache.
///
/// # Errors
/// `Io`.
pub(crate) fn is_remote(env: &Env, dir: &Path) -> Result<bool> {
    let path = dir.join(names::REMOTE);
    let found = if_there(env.disk.open(&path)).context("cannot look for a remote log", &path)?;
    Ok(found.is_some())
}

/// Says durably that the log of the database in `dir` is elsewhere.
///
/// # Errors
/// `Io`.
pub(crate) fn mark_remote(env: &Env, dir: &Path) -> Result<()> {
    if is_remote(env, dir)? {
        return Ok(());
    }
    let path = dir.join(names::REMOTE);
    let disk = &env.disk;
    // That it is there says it all.
    let marked = disk.create(&path, 0).and_then(|_| disk.sync_dir(dir));
    marked.context("cannot note that the log is remote", &path)
}

/// Refuses a directory that is a cache: without the log that is elsewhere, newer data would be
/// missing.
///
/// # Errors
/// `Invalid`, `Io`.
pub fn require_local(env: &Env, dir: &Path) -> Result<()> {
    if is_remote(env, dir)? {
        let message = "the directory is the cache of a database whose log is in Kafka: serve it with --log and --objects, or make a local database with `latewood cluster restore`";
        Err(Error::new(ErrorKind::Invalid, message).at(dir))
    } else {
        Ok(())
    }
}

fn not_locked(dir: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        let message = "the data directory is in use by another process";
        Error::new(ErrorKind::Locked, message).at(dir)
    } else {
        Error::io("cannot lock the data directory", dir, error)
    }
}

fn check_format(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(names::FORMAT);
    let damaged = || Error::new(ErrorKind::Corrupt, "the directory's FORMAT is damaged").at(&path);
    let read = match read_whole(&*env.disk, &path, FORMAT_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(damaged()),
        read => if_there(read).context(UNREADABLE_FORMAT, &path)?,
    };
    let Some(bytes) = read else {
        refuse_data_without_format(env, dir)?;
        let written = write_new_format(env, dir);
        let replace = |()| put_in_place(&*env.disk, dir, names::FORMAT_NEW, names::FORMAT);
        let written = written.and_then(replace);
        return written.context("cannot write the format version", &path);
    };
    let version: u32 = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.strip_prefix(FORMAT_PREFIX)?.trim_end().parse().ok())
        .ok_or_else(damaged)?;
    if version != FORMAT_VERSION {
        let message = format!(
            "the directory has format version {version}, this build knows version {FORMAT_VERSION}"
        );
        return Err(Error::new(ErrorKind::Unsupported, message).at(&path));
    }
    Ok(())
}

/// FORMAT is durable before the first segment and the first manifest can be:
/// one without it has lost a file that it had, or is an unfinished copy.
fn refuse_data_without_format(env: &Env, dir: &Path) -> Result<()> {
    let has = |folder: &Path, is_data: fn(&str) -> bool| {
        let listed = list_if_there(&*env.disk, folder);
        let listed = listed.context("cannot list a data directory", folder);
        listed.map(|names| names.iter().any(|name| is_data(name)))
    };
    if has(dir, |name| name == names::MANIFEST)?
        || has(&names::log_dir(dir), |name| {
            names::parse_segment(name).is_some()
        })?
        || has(&names::blocks_dir(dir), |name| {
            names::parse_block(name).is_some()
        })?
        || has(&names::series_dir(dir), |name| {
            names::parse_series_file(name).is_some()
        })?
    {
        let message = "the directory holds data but its FORMAT is missing: a file is lost, or it is an unfinished copy";
        return Err(Error::new(ErrorKind::Corrupt, message).at(dir));
    }
    Ok(())
}

/// Writes FORMAT under the name of an unfinished one, durably but for the name.
pub(crate) fn write_new_format(env: &Env, dir: &Path) -> io::Result<()> {
    let text = format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n");
    write_new(&*env.disk, &dir.join(names::FORMAT_NEW), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::disk::Unlocked;

    #[test]
    fn a_server_that_started_where_there_was_no_lock_is_noticed() {
        let dir = tempfile::tempdir().expect("there is room");
        let path = dir.path().join(names::LOCK);
        let guard = DirectoryGuard {
            path: dir.path().to_owned(),
            lock: Box::new(Unlocked(path.clone())),
        };
        guard.check_undisturbed().expect("nobody came");
        std::fs::write(path, "").expect("there is room");
        let error = guard.check_undisturbed().expect_err("somebody came");
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("a server started meanwhile"));
    }
}
