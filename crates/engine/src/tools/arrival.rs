//! A database that leaves its directory file by file, and one that is put
//! together from such files somewhere else.
//!
//! Which files make a database is known here; how they travel is not. On the
//! way in FORMAT has the name of an unfinished one until every file is there
//! and was read whole, so that a copy cut short is no database. Tested by
//! `tests/tools.rs` and by the tests of `latewood-offsite`.

use super::backup::FOLDERS;
use super::check::{Checked, Finding, check_held};
use super::copying::empty_folder;
use super::read::list;
use super::restore::require_whole;
use crate::base::error::{Error, Result};
use crate::base::names;
use crate::io::Env;
use crate::io::directory::{open_existing, write_new_format};
use crate::io::small::{Context, put_in_place};
use crate::log::Position;
use crate::storage::files::Manifest;
use crate::storage::files::directory::{put_in_force, read_manifest, remove_if_there, write_new};
use std::path::{Path, PathBuf};

/// The file without which a directory is no database.
pub const FORMAT: &str = names::FORMAT;

/// The files that make up the database in `dir`, each as its path inside with
/// `/` between the parts. No quarantine, no lock. O(files).
///
/// # Errors
/// `Io`.
pub fn files_of(env: &Env, dir: &Path) -> Result<Vec<String>> {
    let held = list(env, dir)?;
    let loose = [names::MANIFEST, names::METADATA, names::FORMAT];
    let loose = loose
        .iter()
        .filter(|name| held.iter().any(|held| held == *name));
    let mut files: Vec<String> = loose.map(|&name| name.to_owned()).collect();
    for folder in FOLDERS {
        let names = list(env, &dir.join(folder))?;
        let known = names
            .iter()
            .filter(|name| is_part(&format!("{folder}/{name}")));
        files.extend(known.map(|name| format!("{folder}/{name}")));
    }
    Ok(files)
}

/// Where a file that [`files_of`] calls `name` belongs in an unfinished `dir`;
/// `None` where no database has such a file, however it is spelled.
pub fn place_of(dir: &Path, name: &str) -> Option<PathBuf> {
    match name {
        names::FORMAT => Some(dir.join(names::FORMAT_NEW)),
        _ => is_part(name).then(|| dir.join(name)),
    }
}

/// Where a copy of the database in `dir` waits while it is uploaded. Nobody but
/// the upload looks there.
pub fn staging_dir(dir: &Path) -> PathBuf {
    dir.join(names::UPLOAD)
}

/// Makes `dir` ready for the files of a database; it must be empty or not there.
///
/// # Errors
/// `Invalid` where there is something in it, `Io`.
pub fn prepare_target(env: &Env, dir: &Path) -> Result<()> {
    empty_folder(env, dir, &FOLDERS)
}

/// Removes all files that were made in `dir` since [`prepare_target`], which may be called again
/// then. The folders stay.
///
/// # Errors
/// `Io`.
pub fn clear_target(env: &Env, dir: &Path) -> Result<()> {
    let mut names = files_of(env, dir)?;
    names.push(names::FORMAT_NEW.to_owned());
    names.iter().try_for_each(|name| {
        let path = dir.join(name);
        remove_if_there(env, &path)
    })
}

/// Writes the FORMAT of a database that has no other files than its log, where it waits for
/// [`adopt`].
///
/// # Errors
/// `Io`.
pub fn begin_format(env: &Env, dir: &Path) -> Result<()> {
    write_new_format(env, dir).context("cannot write the format version", dir)
}

/// Up to where the files of a database hold what was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The files hold all groups of the log up to this one.
    pub whole: Position,
    /// The newest group of which they hold something: those between are held for some series.
    pub newest: Position,
}

impl From<&Manifest> for Reach {
    fn from(manifest: &Manifest) -> Self {
        Self {
            whole: Position(manifest.log_start - 1),
            newest: Position(manifest.log_next_min() - 1),
        }
    }
}

/// Notes in the manifest of the database in `dir`, which nobody serves, that its files need no
/// group of the log up to `last`, nor up to the newest of which they hold something: because they
/// hold all of it, or because the log is lost. Answers what the manifest said before.
///
/// # Errors
/// `Corrupt`, `Unsupported` for a manifest that cannot be read; `Io`.
pub fn release_log(env: &Env, dir: &Path, last: Position) -> Result<Reach> {
    let found = read_manifest(env, dir)?.transpose();
    let found = found.map_err(|error| error.at(&dir.join(names::MANIFEST)))?;
    let mut manifest = found.unwrap_or_default();
    let reach = Reach::from(&manifest);
    let next = last.max(reach.newest).0 + 1;
    if manifest.log_start < next {
        manifest.log_start = next;
        write_new(env, dir, &manifest)?;
        put_in_force(env, dir)?;
    }
    Ok(reach)
}

/// Makes a database of the files in `dir`, each durable at its
/// [`place_of`], once every byte was read and found whole. Findings go to `tell`.
///
/// # Errors
/// `Corrupt` where something is damaged, `Unsupported` where a file is of
/// another version, `Io`. What is there then is no database.
pub fn adopt(env: &Env, dir: &Path, tell: &mut dyn FnMut(&Finding)) -> Result<Checked> {
    let checked = check_held(env, dir, tell)?;
    require_whole(checked, "the copy", dir)?;
    let failed = |error| Error::io("cannot finish the copy", dir, error);
    for folder in FOLDERS {
        env.disk.sync_dir(&dir.join(folder)).map_err(failed)?;
    }
    env.disk.sync_dir(dir).map_err(failed)?;
    put_in_place(&*env.disk, dir, names::FORMAT_NEW, names::FORMAT).map_err(failed)?;
    // And of a version that this build knows.
    open_existing(env, dir)?;
    Ok(checked)
}

fn is_part(name: &str) -> bool {
    match name.split_once('/') {
        None => [names::MANIFEST, names::METADATA, names::FORMAT].contains(&name),
        Some((names::BLOCKS, name)) => names::parse_block(name).is_some(),
        Some((names::SERIES, name)) => names::parse_series_file(name).is_some(),
        Some((names::LOG, name)) => names::parse_segment(name).is_some(),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_database_have_a_place() {
        let dir = Path::new("/data");
        for name in [
            "MANIFEST",
            "blocks/block-00000000000000ff.blk",
            "series/series-0000000000000002.cat",
            "wal/segment-0000000000000001.wal",
        ] {
            assert_eq!(place_of(dir, name), Some(dir.join(name)));
        }
        assert_eq!(place_of(dir, "FORMAT"), Some(dir.join("FORMAT.new")));
        for name in [
            "",
            "LOCK",
            "FORMAT.new",
            "/etc/passwd",
            "../MANIFEST",
            "wal/../MANIFEST",
            "wal/../segment-0000000000000001.wal",
            "blocks/segment-0000000000000001.wal",
            "blocks//block-00000000000000ff.blk",
            "quarantine/block-00000000000000ff.blk",
        ] {
            assert_eq!(place_of(dir, name), None, "{name}");
        }
    }
}
