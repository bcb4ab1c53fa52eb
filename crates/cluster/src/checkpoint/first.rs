//! The first checkpoint of a log that begins on top of a database from elsewhere.
//!
//! Its epoch is 0, as the log's first record is an EPOCH, and the folder has nothing of an owner:
//! names of a log before could mean other bytes, and its `LATEST` another record.
//!
//! Tested by `tests/tablet/begin.rs`.

use super::error::{CheckpointError, Result};
use super::load::is_log;
use super::names::{self, LATEST};
use super::objects::{Checkpoint, Objects};
use super::save::Before;
use latewood_engine::tools::files_of;
use latewood_offsite::run;
use std::path::Path;

/// The epoch of the checkpoint.
const EPOCH: u64 = 0;

impl Objects {
    /// Saves the files of the database in `dir`, which nobody may change meanwhile, without its
    /// log, and a `LATEST` that says that the record at `offset` names them: without that record,
    /// no server takes the log.
    ///
    /// # Errors
    /// `Taken` if there are objects of a log, before anything is written; those of
    /// [`Objects::save`]. What was uploaded whole is not uploaded again by the same call.
    pub fn save_first(&self, dir: &Path, offset: u64) -> Result<Checkpoint> {
        self.require_new()?;
        let mut paths = files_of(&self.env, dir)?;
        paths.retain(|path| !is_log(path));
        let checkpoint = self.save_files(EPOCH, dir, paths, Before::default())?;
        self.put_latest(&checkpoint.at, offset)?;
        Ok(checkpoint)
    }

    fn require_new(&self) -> Result<()> {
        let held = run(self.place.list())?;
        let is_of_log =
            |name: &str| name == LATEST || names::epoch(name).is_some_and(|epoch| epoch > EPOCH);
        match held.iter().find(|held| is_of_log(&held.name)) {
            None => Ok(()),
            Some(held) => {
                let object = self.place.call(&held.name);
                Err(CheckpointError::Taken { object })
            }
        }
    }
}
