//! A copy of a database while it is served.
//!
//! The files that the manifest names and the log are pinned at one moment: from
//! then on they may be replaced and trimmed, but none of them goes. Then they
//! are copied, the log first. So the copy is the database as a process killed at
//! that moment would have left it, and opening it is an ordinary recovery. FORMAT is
//! written at the very end: an unfinished copy is no database. Tested by
//! `tests/tools.rs` and `tests/backup`.

use super::copying::{copy, empty_folder, link_or_copy, write};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::quarantine::UNACCEPTED;
use crate::io::small::{Context, if_there, put_in_place};
use crate::io::{Env, waiting};
use crate::keyspace::core::Core;
use crate::log::{Log, LogCopy, LogPin, Pinned, Position, RemotePin};
use crate::storage::files::Manifest;
use std::io::ErrorKind as IoKind;
use std::path::Path;

pub(super) const FOLDERS: [&str; 3] = [names::BLOCKS, names::SERIES, names::LOG];

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// Blocks and series files.
    pub files: u64,
    /// Bytes that were copied, not linked.
    pub copied_bytes: u64,
    /// Segments of the log.
    pub segments: u64,
    /// The oldest group of the log that the files do not hold.
    pub log_start: Position,
}

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// [`crate::Db::backup`]
    Database,
    /// [`crate::Db::checkpoint`]
    Files,
    /// [`crate::Db::rescue`]: the files hold everything, and the log is lost.
    Remains,
}

/// Copies the database in `dir`.
pub(crate) fn backup(core: &Core, dir: &Path, to: &Path, scope: Scope) -> Result<Backup> {
    let env = &core.env;
    let refused = |message| Err(Error::new(ErrorKind::Invalid, message));
    let Some(log) = core.log() else {
        return refused("a database without a log cannot be backed up");
    };
    if scope == Scope::Files && !core.log.is_remote() {
        return refused("a database with a local log has no checkpoints");
    }
    empty_folder(env, to, &FOLDERS)?;
    let (mut files, pinned) = core.store.pin(log)?;
    if scope == Scope::Remains {
        let manifest = files.manifest.get_or_insert_default();
        manifest.log_start = manifest.log_start.max(log.written().0 + 1);
    }
    let mut backup = Backup {
        log_start: Position(files.manifest.as_ref().map_or(1, |m| m.log_start)),
        ..Backup::default()
    };
    // The log first and by itself: it goes on growing while it is pinned.
    match pinned {
        Pinned::Local(pin) => copy_log(env, &pin, to, &mut backup)?,
        Pinned::Remote(pin) => match scope {
            Scope::Database => fetch_log(env, log, &*pin, to, &mut backup)?,
            Scope::Files => {}
            Scope::Remains => {
                LogCopy::begin(env, to, backup.log_start)?.finish()?;
            }
        },
    }
    for path in files.paths() {
        let name = path.strip_prefix(dir).unwrap_or(path);
        // A checkpoint has the object of what is not here.
        let bring = if scope == Scope::Files {
            second_name
        } else {
            bring
        };
        backup.copied_bytes += bring(env, path, &to.join(name))?;
        backup.files += 1;
    }
    let manifest = files.manifest.as_ref().map(Manifest::encode);
    drop(files);
    let finished = finish(env, dir, to, manifest.as_deref());
    finished.context("cannot finish the backup", to)?;
    Ok(backup)
}

/// Copies the log as it was pinned.
fn copy_log(env: &Env, log: &LogPin<'_>, to: &Path, backup: &mut Backup) -> Result<()> {
    for (path, len_bytes) in log.segments() {
        let name = path.file_name().unwrap_or_default();
        let copied = copy(env, path, &to.join(names::LOG).join(name), Some(*len_bytes));
        backup.copied_bytes += copied.context("cannot back up the log", path)?;
        backup.segments += 1;
    }
    Ok(())
}

/// Makes segments of the groups of a remote log, up to all that was written before the call.
fn fetch_log(
    env: &Env,
    log: &Log,
    pin: &dyn RemotePin,
    to: &Path,
    backup: &mut Backup,
) -> Result<()> {
    let last = log.written();
    log.sync_to(last)?;
    let mut copy = LogCopy::begin(env, to, backup.log_start)?;
    if last >= backup.log_start {
        pin.read(last, &mut |groups| copy.groups(groups))?;
    }
    let copied = copy.finish()?;
    if copied.last < last {
        let message = format!(
            "the remote log ends before group {}, not {}",
            copied.last.0 + 1,
            last.0 + 1
        );
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    backup.copied_bytes += copied.bytes;
    backup.segments += copied.segments;
    Ok(())
}

/// Links or copies a file that the manifest names, whether it is on this machine or not.
fn second_name(env: &Env, from: &Path, to: &Path) -> Result<u64> {
    link_or_copy(env, from, to).context("cannot back up a file", from)
}

/// The same of one that is here: waits for it, since a link to what is not here would be no copy.
fn bring(env: &Env, from: &Path, to: &Path) -> Result<u64> {
    let failed = |error| Error::io("cannot back up a file", from, error);
    let file = env.disk.open(from).map_err(failed)?;
    loop {
        waiting::fetch_alone(&file, from)?;
        match link_or_copy(env, from, to) {
            // It left the cache again.
            Err(error) if error.kind() == IoKind::WouldBlock => {
                if_there(env.disk.remove(to)).map_err(failed)?;
            }
            copied => return copied.map_err(failed),
        }
    }
}

/// Copies the list of damage that nobody has accepted, if there is one: what the files lack,
/// their copy lacks too.
fn copy_doubts(env: &Env, dir: &Path, to: &Path) -> std::io::Result<()> {
    let [held, copied] = [dir, to].map(names::quarantine_dir);
    let list = held.join(UNACCEPTED);
    match env.disk.open(&list) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => drop(opened?),
    }
    env.disk.create_dir_all(&copied)?;
    copy(env, &list, &copied.join(UNACCEPTED), None)?;
    env.disk.sync_dir(&copied)
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
    let (held, copied) = (dir.join(names::METADATA), to.join(names::METADATA));
    if_there(copy(env, &held, &copied, None))?;
    copy_doubts(env, dir, to)?;
    env.disk.sync_dir(to)?;
    // Under another name until it is whole, as in a new directory.
    let unfinished = to.join(names::FORMAT_NEW);
    copy(env, &dir.join(names::FORMAT), &unfinished, None)?;
    put_in_place(&*env.disk, to, names::FORMAT_NEW, names::FORMAT)
}
