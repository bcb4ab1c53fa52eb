//! Deleting objects that no checkpoint needs.
//!
//! A process may be suspended between its question for all objects and the deletion, for as long as
//! anybody likes. So whoever owns the tablet after it names none but objects of its own epoch and
//! of the newest checkpoint that counts, which every sweep keeps ([`super::save`]).
//!
//! Only times of the store are compared: its newest object of the tablet, usually
//! `LATEST`, stands for now, so a store that nobody writes to loses nothing.

use super::error::Result;
use super::names;
use super::objects::{Checkpoint, Objects};
use latewood_offsite::run;
use std::collections::BTreeSet;
use std::time::Duration;

/// How old an object must be before it may go, unless told otherwise.
pub const GRACE: Duration = Duration::from_secs(3600);

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Objects {
    /// Deletes the objects of this tablet, of the epoch `epoch` of the caller and those
    /// before it, that were written longer than `grace` ago and that none of the
    /// checkpoints `kept` needs: the newest that counts, and those that somebody may
    /// still be loading. Without any, nothing is deleted. Not while the caller saves.
    /// One LIST request per thousand objects; memory of about 200 bytes per object.
    ///
    /// # Errors
    /// `Store`, `OtherTablet`. The same call may be made again.
    pub fn sweep(&self, epoch: u64, kept: &[&Checkpoint], grace: Duration) -> Result<Swept> {
        self.place.require_writable()?;
        let mut needed = BTreeSet::new();
        for Checkpoint { at, listing } in kept {
            self.require_own(listing)?;
            needed.insert(at.object.as_str());
            needed.extend(listing.files.iter().map(|row| row.object.as_str()));
        }
        if needed.is_empty() {
            return Ok(Swept::default());
        }
        run(self.sweep_all(epoch, &needed, grace))
    }

    async fn sweep_all(
        &self,
        epoch: u64,
        needed: &BTreeSet<&str>,
        grace: Duration,
    ) -> Result<Swept> {
        let held = self.place.list().await?;
        let now_ms = held.iter().map(|object| object.modified_ms).max();
        let now_ms = i128::from(now_ms.unwrap_or_default());
        let mut swept = Swept::default();
        let mut gone = Vec::new();
        for object in held {
            let age_ms = now_ms - i128::from(object.modified_ms);
            let is_ours = names::epoch(&object.name).is_some_and(|of| of <= epoch);
            let is_old = age_ms > grace.as_millis().cast_signed();
            if is_ours && is_old && !needed.contains(object.name.as_str()) {
                swept.objects += 1;
                swept.bytes += object.bytes;
                gone.push(object.name);
            }
        }
        self.place.delete(&gone).await?;
        Ok(swept)
    }
}
