//! The files of a tablet: on this machine, as a cache, and in the store, as checkpoints.
//!
//! An owner saves the files of its database as the next checkpoint; a follower takes over those
//! that the owner saved. One value serves both, so that whoever takes over knows what is in the
//! store, and uploads none of it again.
//!
//! Invariants: what is saved as newest is in the store, whole, and was named by a record that
//! counts. A file of the directory never gets other bytes under its name: names of files have the
//! epoch of their writer in them, and a checkpoint that gives one of them other bytes is refused.
//!
//! Tested by `tests/tablet/` and `tests/standby/`.

use super::{CheckpointFigures, Error, Place};
use crate::checkpoint::{Checkpoint, CheckpointError, GRACE, ListingRef, Objects, Row, Uploads};
use crate::remote::{Complete, TabletLog};
use crate::retry::Retry;
#[allow(unused)]
use crate::tiered::TieredDisk;
use latewood_engine::Db;
use latewood_engine::io::Env;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where a checkpoint is gathered, in the directory: links need the same file system.
const GATHERED: &str = "checkpoint";
/// Where the files of a newer checkpoint come, in the directory: they are renamed into it.
const NEWER: &str = "newer";
/// How often old objects are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// The files of a tablet.
pub(crate) struct Files {
    pub(super) objects: Objects,
    /// Its disk fetches what is not here.
    pub(crate) env: Env,
    gathered: PathBuf,
    newer: PathBuf,
    pub(crate) disk: TieredDisk,
    saved: Mutex<Saved>,
}

/// What is in the store.
struct Saved {
    newest: Option<Checkpoint>,
    before: Option<Checkpoint>,
    /// By the monotonic clock.
    swept_ns: u64,
}

/// The files of a checkpoint beside those of the directory, except blocks.
pub(crate) struct Newer {
    pub(crate) checkpoint: Checkpoint,
}

impl Files {
    /// Those of the directory of `place`, which was made that of the checkpoint `newest`; its blocks
    /// `away` may be missing.
    pub(crate) fn new(place: &Place, newest: Option<Checkpoint>, away: Vec<Row>) -> Self {
        // Blocks are fetched for a rescue too, when the log has been given up.
        let fetching = Retry {
            cancel: Arc::default(),
            ..place.retry.clone()
        };
        let (env, dir, objects) = (&place.env, &*place.dir, &place.objects);
        let gathered = dir.join(GATHERED);
        let disk = TieredDisk::new(env, objects, fetching, dir, &gathered, away);
        let env = Env {
            disk: Arc::new(disk.clone()),
            ..env.clone()
        };
        Self {
            objects: objects.with_env(env.clone()),
            gathered,
            newer: dir.join(NEWER),
            disk,
            saved: Mutex::new(Saved {
                newest,
                before: None,
                swept_ns: env.clock.monotonic_ns(),
            }),
            env,
        }
    }

    /// As `Tablet::checkpoint`, for the owner of `epoch` and `log`. `missing` is the newest
    /// checkpoint that counts, if the database has the files of an older one.
    pub(super) fn save(
        &self,
        db: &Db,
        epoch: u64,
        log: &TabletLog,
        missing: Option<&ListingRef>,
    ) -> Result<CheckpointFigures, Error> {
        let mut saved = self.saved.lock();
        self.objects.discard(&self.gathered)?;
        let files = db.checkpoint(&self.gathered)?;
        let is_behind = match missing {
            Some(missing) => self.turn_to(&mut saved, missing)?,
            None => false,
        };
        let held = saved.before.as_ref().filter(|_| is_behind);
        let previous = saved.newest.as_ref();
        let checkpoint = self
            .objects
            .save_beside(epoch, &self.gathered, previous, held)?;
        let at = &checkpoint.at;
        let complete = Complete {
            manifest: at.object.clone(),
            sha256: at.sha256(),
            bytes: at.content.bytes,
            sequence: files.log_start.0,
        };
        let (offset, _) = log.checkpoint(complete)?;
        let figures = CheckpointFigures::from(&checkpoint);
        saved.before = saved.newest.replace(checkpoint);
        self.uploads().end_checkpoint();
        // It counts, whatever becomes of the rest.
        let tidied = self.tidy(&mut saved, epoch, offset);
        if let Some(newest) = &saved.newest {
            self.disk.counts(newest);
        }
        match tidied {
            // The first `LATEST` tells this log from one that is deleted and made again.
            Err(error) if saved.before.is_none() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "the checkpoint is saved; what failed behind it is left to the next one");
            }
            Ok(()) => {}
        }
        Ok(figures)
    }

    /// Has the next checkpoint come after `missing`: what only an older one names may go at any
    /// moment, however long ago the owner before decided that. Returns false if the list of
    /// `missing` is gone for good.
    fn turn_to(&self, saved: &mut Saved, missing: &ListingRef) -> Result<bool, CheckpointError> {
        if (saved.newest.as_ref()).is_some_and(|newest| newest.at == *missing) {
            return Ok(true);
        }
        match self.objects.find(missing) {
            Ok(newest) => {
                saved.before = saved.newest.replace(newest);
                Ok(true)
            }
            Err(error) if error.is_damage() => {
                tracing::warn!(%error, "the next checkpoint comes after an older one");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// What follows a checkpoint that the record at `offset` names.
    fn tidy(&self, saved: &mut Saved, epoch: u64, offset: u64) -> Result<(), CheckpointError> {
        if let Some(newest) = &saved.newest {
            self.objects.put_latest(&newest.at, offset)?;
        }
        let now_ns = self.env.clock.monotonic_ns();
        if now_ns.saturating_sub(saved.swept_ns) >= SWEEP_EVERY.as_nanos() as u64 {
            saved.swept_ns = now_ns;
            let kept: Vec<&Checkpoint> = saved.newest.iter().chain(&saved.before).collect();
            self.objects.sweep(epoch, &kept, GRACE)?;
        }
        self.objects.discard(&self.gathered)
    }

    /// Downloads what a newer checkpoint has beside the newest, for [`Files::adopt`]. Its blocks
    /// stay in the store. `None` once `is_given_up` says so, whatever the store does.
    ///
    /// # Errors
    /// `Store`: temporary, or for good where an object is gone or damaged.
    pub(crate) fn load_newer(
        &self,
        at: &ListingRef,
        is_given_up: impl Fn() -> bool,
    ) -> Result<Option<Newer>, CheckpointError> {
        let held = self.saved.lock().newest.clone();
        self.objects.discard(&self.newer)?;
        let held = held.as_ref().map(|held| &held.listing);
        let loaded = self.objects.load_beside(at, held, &self.newer, is_given_up);
        Ok(loaded?.map(|checkpoint| Newer { checkpoint }))
    }

    /// Has `db`, which follows, take over what was loaded. Returns whether it is newer than what
    /// it has.
    ///
    /// # Errors
    /// `Checkpoint` if it gives a name of a block other bytes; `Engine`.
    pub(crate) fn adopt(&self, db: &Db, newer: &Newer) -> Result<bool, Error> {
        let mut saved = self.saved.lock();
        let blocks = newer.checkpoint.listing.blocks().cloned().collect();
        let expected = self.disk.expect(blocks).map_err(|path| {
            let listing = newer.checkpoint.at.object.clone();
            CheckpointError::OtherBytes { path, listing }
        })?;
        let adopted = db.adopt(&self.newer);
        if matches!(adopted, Ok(true)) {
            self.disk.counts(&newer.checkpoint);
            saved.before = saved.newest.replace(newer.checkpoint.clone());
        } else {
            self.disk.forget(&expected);
        }
        let adopted = adopted?;
        self.objects.discard(&self.newer)?;
        Ok(adopted)
    }

    /// What its checkpoints upload.
    pub(crate) fn uploads(&self) -> &Arc<Uploads> {
        self.objects.uploads()
    }

    /// The newest checkpoint that counts. Waits for one that is being saved or taken over.
    pub(crate) fn newest(&self) -> Option<CheckpointFigures> {
        self.saved.lock().newest.as_ref().map(Into::into)
    }
}
