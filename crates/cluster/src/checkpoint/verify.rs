//! Reading all objects of a checkpoint, for a check; blocks that no checkpoint names.

use super::error::{CheckpointError, Result};
use super::listing::ListingRef;
use super::objects::{Checkpoint, Objects};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::names;
use latewood_engine::tools::files_of;
use latewood_offsite::{Error, FILES_AT_ONCE, check_object, run};
use std::path::Path;

impl Objects {
    /// Reads every object of the checkpoint that a record of the tablet's log names. Answers it
    /// with a sentence for each object that is missing or has other bytes than it was written
    /// with.
    ///
    /// # Errors
    /// Those of [`Objects::find`]; `Store` for an object that cannot be read now.
    pub fn verify(&self, at: &ListingRef) -> Result<(Checkpoint, Vec<String>)> {
        let checkpoint = self.find(at)?;
        let checked = stream::iter(&checkpoint.listing.files).map(|row| async {
            match check_object(&self.place, &row.object, &row.file.content).await {
                Ok(()) => Ok(None),
                Err(Error::Damaged { what }) => Ok(Some(what)),
                Err(error) => Err(CheckpointError::from(error)),
            }
        });
        let checked = checked.buffered(FILES_AT_ONCE);
        let found = checked.try_filter_map(async |finding| Ok(finding));
        let findings = run(found.try_collect::<Vec<_>>())?;
        Ok((checkpoint, findings))
    }

    /// Refuses a directory with blocks, for a log that never named a checkpoint: they may be all that
    /// is left of a database.
    ///
    /// # Errors
    /// `OtherCache`; `Store`.
    pub fn require_no_blocks(&self, dir: &Path) -> Result<()> {
        let files = files_of(&self.env, dir)?;
        let is_block = |file: &String| Path::new(file).starts_with(names::BLOCKS);
        if files.iter().any(is_block) {
            let dir = dir.to_owned();
            return Err(CheckpointError::OtherCache { dir });
        }
        Ok(())
    }
}
