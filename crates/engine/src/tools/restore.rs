//! Restoring a database from a backup. Tested by `tests/backup`.

use super::backup::{FOLDERS, finish};
use super::check::{Checked, Finding, check};
use super::copying::{copy, empty_folder};
use super::read::{list, manifest_bytes};
use crate::base::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::io::directory::require_local;
use crate::io::small::Context;
use std::path::Path;

/// Copies the backup in `from` to the folder `dir`, which must be empty or not
/// there, and checks every byte of backup and copy. Findings go to `tell`.
///
/// # Errors
/// `Corrupt` where the backup or the copy is damaged, `Invalid` where `dir` is
/// not empty or `from` is no database or the cache of one, `Locked` while `from` is served,
/// `Unsupported`, `Io`. An unfinished copy is no database.
pub fn restore(
    env: &Env,
    from: &Path,
    dir: &Path,
    tell: &mut dyn FnMut(&Finding),
) -> Result<Checked> {
    require_local(env, from)?;
    require_whole(check(env, from, tell)?, "what is to be copied", from)?;
    empty_folder(env, dir, &FOLDERS)?;
    for folder in FOLDERS {
        for name in list(env, &from.join(folder))? {
            let source = from.join(folder).join(&name);
            let copied = copy(env, &source, &dir.join(folder).join(&name), None);
            copied.context("cannot copy a file", &source)?;
        }
    }
    let manifest = manifest_bytes(env, from)?;
    let finished = finish(env, from, dir, manifest.as_deref());
    finished.context("cannot finish the copy", dir)?;
    let checked = check(env, dir, tell)?;
    require_whole(checked, "the copy", dir)?;
    Ok(checked)
}

/// Refuses what a check found damaged; `what` it is begins the message.
///
/// # Errors
/// `Corrupt`.
pub fn require_whole(checked: Checked, what: &str, path: &Path) -> Result<()> {
    if checked.damage == 0 {
        return Ok(());
    }
    let places = match checked.damage {
        1 => "one place".to_owned(),
        damage => format!("{damage} places"),
    };
    let message = format!("{what} is damaged in {places}");
    Err(Error::new(ErrorKind::Corrupt, message).at(path))
}
