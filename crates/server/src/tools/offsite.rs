//! `latewood backup --to URL` and `latewood restore URL DIR`.
//!
//! A running server makes a copy of its own beside its data first, of hard
//! links, which costs next to nothing; that copy is uploaded and removed.

use super::ask::Server;
use super::backup::Backup;
use super::output::tell;
use latewood_engine::ErrorKind;
use latewood_engine::io::Env;
use latewood_engine::io::directory::{open_existing, require_local};
use latewood_engine::tools::{check, require_whole, staging_dir};
use latewood_offsite::{Place, download, upload};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Uploads what a server serves, or a directory that none runs on.
pub(super) fn back_up(options: &Backup) -> Result<String, String> {
    let place = Place::parse(&options.to).map_err(|error| error.to_string())?;
    match &options.dir {
        Some(dir) => upload_resting(dir, &place),
        None => {
            let mut server = Server::connect(options)?;
            let dir = server.directory()?;
            let staged = Staged::make(&mut server, &dir)?;
            upload_held(&staged.path, &place)
        }
    }
}

/// Makes the directory `dir` of the backup at a URL.
pub(super) fn restore(url: &str, dir: &Path) -> Result<String, String> {
    let place = Place::parse(url).map_err(|error| error.to_string())?;
    let (moved, checked) = download(&place, dir, &mut tell).map_err(|error| error.to_string())?;
    Ok(format!(
        "restored {} samples in blocks and {} more in the log to {}, {} files of {} bytes; every checksum was verified",
        checked.block_samples,
        checked.unstored_samples,
        dir.display(),
        moved.files,
        moved.bytes
    ))
}

fn upload_resting(dir: &Path, place: &Place) -> Result<String, String> {
    require_local(&Env::real(), dir)
        .and_then(|()| check(&Env::real(), dir, &mut tell))
        .and_then(|checked| require_whole(checked, "the database", dir))
        .map_err(|error| error.to_string())?;
    upload_held(dir, place)
}

/// Uploads under the lock of the directory: nothing changes meanwhile.
fn upload_held(dir: &Path, place: &Place) -> Result<String, String> {
    let guard = open_existing(&Env::real(), dir).map_err(|error| error.to_string())?;
    let moved = upload(dir, place);
    guard
        .check_undisturbed()
        .map_err(|error| error.to_string())?;
    let moved = moved.map_err(|error| error.to_string())?;
    Ok(format!(
        "backed up to {}: {} files, {} bytes",
        place.url(),
        moved.files,
        moved.bytes
    ))
}

/// The copy that a server made to be uploaded; removed when dropped. One at a
/// time: the directory of the data is locked by it, apart from the server's lock.
struct Staged {
    path: PathBuf,
    _turn: File,
}

impl Staged {
    fn make(server: &mut Server, dir: &Path) -> Result<Self, String> {
        require_served_here(dir)?;
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            format!("cannot {what} {}: {error}", dir.display())
        };
        let turn = File::open(dir).map_err(|error| cannot("open", &error))?;
        match turn.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err("another backup is being uploaded".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", &error)),
        }
        let staged = Self {
            path: staging_dir(dir),
            _turn: turn,
        };
        // What an upload that was killed has left.
        staged.remove()?;
        server.back_up(&staged.path)?;
        Ok(staged)
    }

    fn remove(&self) -> Result<(), String> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", self.path.display()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Err(reason) = self.remove() {
            eprintln!("latewood: {reason}; it takes disk space until the next upload");
        }
    }
}

/// A server on another machine may well call a directory of this one its own.
fn require_served_here(dir: &Path) -> Result<(), String> {
    match open_existing(&Env::real(), dir) {
        Err(error) if error.kind() == ErrorKind::Locked => Ok(()),
        _ => Err(format!(
            "the server's data is not in {} on this machine; run the upload on the machine of the server",
            dir.display()
        )),
    }
}
