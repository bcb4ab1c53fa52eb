//! What is left of a log whose records are gone: a local database made of the memory and the files
//! of the process that owned it.
//!
//! Invariant: the folder with it is the only place that has what was lost, so a directory with one
//! starts no tablet until somebody took it away. One that is not whole has no FORMAT, and stops
//! nobody.
//!
//! Tested by `tests/tablet/rescue.rs`.

use super::{Error, Tablet};
use latewood_engine::Db;
use latewood_engine::io::Env;
use latewood_engine::tools::{FORMAT, prepare_target};
use std::path::{Path, PathBuf};

/// How many such folders a directory may have: each attempt that fails leaves one.
const NUMBER_MAX: u32 = 9;

impl Tablet {
    /// Gives the log up, and makes a local database of all that `db`, which is that of this tablet,
    /// has: for a log whose records are gone. Its folder is in the directory of the tablet. Blocks
    /// that are not on this machine are fetched. May hold writes that were not acknowledged.
    ///
    /// # Errors
    /// `Engine`; then there is no such database.
    pub fn rescue(&self, db: &Db) -> Result<PathBuf, Error> {
        self.log.give_up();
        let mut numbers = 1..=NUMBER_MAX;
        let is_empty = |number: &u32| {
            prepare_target(&self.files.env, &folder(db.directory(), *number)).is_ok()
        };
        // The error of the last one says what is wrong.
        let number = numbers.find(is_empty).unwrap_or(NUMBER_MAX);
        let dir = folder(db.directory(), number);
        db.rescue(&dir)?;
        Ok(dir)
    }
}

fn folder(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("rescued-{number}"))
}

/// Refuses the directory of a tablet that holds such a database.
///
/// # Errors
/// `Rescued`.
pub fn require_none(env: &Env, dir: &Path) -> Result<(), Error> {
    let mut folders = (1..=NUMBER_MAX).map(|number| folder(dir, number));
    let is_whole = |folder: &PathBuf| env.disk.open(&folder.join(FORMAT)).is_ok();
    match folders.find(is_whole) {
        None => Ok(()),
        Some(dir) => Err(Error::Rescued { dir }),
    }
}
