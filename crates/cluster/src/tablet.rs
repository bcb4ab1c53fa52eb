//! A tablet: a database whose log is in Kafka and whose files are in an object store.
//!
//! Its directory is a cache. To open it is to claim the log, to make the directory the newest
//! checkpoint that counts, and to replay the log behind it. A checkpoint is saved, named by a
//! record of the log, and only once that counts the log is trimmed and old objects go.
//!
//! Invariant: at every moment the newest checkpoint that counts and the log behind it hold
//! everything acknowledged, whatever becomes of the directory.
//!
//! Tested by `tests/tablet/`: kills, lost disks, faults of Kafka and the store.

mod files;
mod look;
mod rescue;

use crate::checkpoint::{Checkpoint, CheckpointError, ListingRef, Objects, Progress, Row, Uploads};
use crate::envelope::{self, Claimant};
use crate::kafka::{Kafka, Partition};
use crate::owner::{self, Claimed, Look};
use crate::remote::{Bounds, Lease, OnEnd, TabletLog};
use crate::retry::{Cancel, Retry};
pub use crate::tiered::{Cache, CacheFigures};
pub(crate) use files::{Files, Newer};
use latewood_engine::io::Env;
use latewood_engine::{Db, Defaults, Options};
use look::{at_last, look, require_own_log};
use parking_lot::Mutex;
pub use rescue::require_none as require_no_rescue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What can be done where a log is lost.
const WAY_ON: &str = "`latewood cluster restore --without-log` makes a local database of a \
                      checkpoint, and `latewood cluster init --from` begins a log with a new name \
                      on top of it";

/// Where a tablet is kept and who opens it.
pub struct Place {
    /// The cluster of the log.
    pub kafka: Arc<dyn Kafka>,
    /// The log.
    pub partition: Partition,
    /// The id of its topic, if it is known from before.
    pub topic_id: Option<[u8; 16]>,
    /// The objects.
    pub objects: Objects,
    /// Files and clock of this machine.
    pub env: Env,
    /// The cache.
    pub dir: PathBuf,
    /// Who opens it; its nonce must be new.
    pub claimant: Claimant,
    /// What may wait and what the log may hold.
    pub bounds: Bounds,
    /// How calls are repeated, and what ends them.
    pub retry: Retry,
    /// How long a read waits for a block that must be fetched.
    pub read_wait: Duration,
    /// Reads are answered under a [`Lease`].
    pub read_lease: bool,
}

/// A tablet that this process owns.
pub struct Tablet {
    files: Arc<Files>,
    /// The newest checkpoint of the owner before, if the database is not made of it, until there is
    /// one of this owner.
    missing: Mutex<Option<ListingRef>>,
    epoch: u64,
    log: Arc<TabletLog>,
    cancel: Arc<Cancel>,
}

/// What a checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointFigures {
    /// When it was written, milliseconds since 1970.
    pub made_at_ms: i64,
    /// Bytes of its files.
    pub bytes: u64,
    /// How many they are.
    pub files: u64,
}

impl From<&Checkpoint> for CheckpointFigures {
    fn from(Checkpoint { listing, .. }: &Checkpoint) -> Self {
        Self {
            made_at_ms: listing.made_at_ms,
            bytes: listing.bytes(),
            files: listing.files.len() as u64,
        }
    }
}

/// Why a tablet was not opened, or has no new checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log.
    #[error(transparent)]
    Owner(#[from] owner::Error),
    /// The object store or the files of the cache.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The store has a checkpoint of another log, or of one that was deleted and made again.
    #[error(
        "the object store has a checkpoint that a record at offset {offset} names, and this log \
         has no such record: its topic was deleted and created again, or the names of log and \
         objects do not belong together. Nothing was changed. If the log is lost, {}",
        WAY_ON
    )]
    OtherLog {
        /// Of the record.
        offset: u64,
    },
    /// The store has a checkpoint, and the log names none.
    #[error(
        "the object store has {object}, the list of files of a checkpoint, and this log never \
         named one: its topic was deleted and created again, or the names of log and objects do \
         not belong together. Nothing was changed. If the log is lost, {}",
        WAY_ON
    )]
    NewLog {
        /// The list of files.
        object: String,
    },
    /// A log was lost, and the directory has what is left of it.
    #[error(
        "{} is a local database of all that a log held whose records were lost: begin a log with a \
         new name on top of it with `latewood cluster init --from`, or move it away to go on \
         without what it has",
        dir.display()
    )]
    Rescued {
        /// The local database.
        dir: PathBuf,
    },
    /// This owner took the log over without the newest checkpoint, and cannot save its own: objects
    /// that its files need are gone. What is in the store and the log is all that is acknowledged.
    #[error(
        "no checkpoint can be saved beside {object}, which the owner before saved and this node \
         could not take over ({why}): it has to be loaded anew"
    )]
    Overtaken {
        /// The list of files of the newest checkpoint, which can be loaded.
        object: String,
        /// Why none can be saved.
        why: String,
    },
    /// The database.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
}

impl Error {
    /// Whether another node owns the log by now: the same call would take it from that one.
    pub fn is_succession(&self) -> bool {
        matches!(self, Self::Owner(error) if error.is_succession())
    }

    /// Whether objects that are missing, or blocks that cannot be read for that reason, may be why.
    fn may_lack_objects(&self) -> bool {
        match self {
            Self::Checkpoint(CheckpointError::Lost { .. } | CheckpointError::Emptied { .. }) => {
                true
            }
            Self::Checkpoint(error) => error.is_damage(),
            Self::Engine(error) => error.is_lost(),
            _ => false,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Checkpoint(error) if error.is_temporary())
    }
}

impl Tablet {
    /// Claims the tablet and opens it as a database with `options`; one that has no checkpoint
    /// yet saves its first. Tells `tell` how far its files are. Blocks that are not in the
    /// directory are fetched when they are read, and by [`Tablet::fetch_all`]. Calls that an
    /// object store or Kafka cannot answer now are repeated for as long as it takes. `on_end` is
    /// called once when it can no longer be written.
    ///
    /// # Errors
    /// `OtherLog`, `NewLog`, `Rescued`; `Owner`; `Checkpoint` for damaged or missing objects and a directory that keeps
    /// its own log; `Engine`. All but the last are found before the claim, which deposes the owner
    /// before, unless the log changes meanwhile.
    pub fn open(
        place: Place,
        options: Options,
        defaults: Defaults,
        tell: &mut dyn FnMut(Progress),
        on_end: OnEnd,
    ) -> Result<(Self, Db), Error> {
        require_free(&place)?;
        let (claimed, newest, away) = claim(&place, tell)?;
        let files = Arc::new(Files::new(&place, newest, away));
        let tablet = Self::start(claimed, &place, files, None, on_end)?;
        let (env, log) = (&tablet.files.env, tablet.log.clone());
        let opened = Db::open_remote(env, &place.dir, options, defaults, log);
        let db = opened.map_err(|error| {
            tablet.log.give_up();
            tablet.stop_fetching();
            // Who claimed the log meanwhile may have trimmed what was still to be read.
            let successor = tablet.log.ended().filter(owner::Error::is_succession);
            successor.map_or(Error::Engine(error), Error::Owner)
        })?;
        tablet.files.disk.limit_waits(place.read_wait);
        tablet.save_first(&db, &place.retry)?;
        Ok((tablet, db))
    }

    /// The tablet that was claimed, whose files are `files`, which are not those of the newest
    /// checkpoint `missing`: its log runs.
    pub(crate) fn start(
        claimed: Claimed,
        place: &Place,
        files: Arc<Files>,
        missing: Option<ListingRef>,
        on_end: OnEnd,
    ) -> Result<Self, Error> {
        let epoch = claimed.owner.epoch();
        let cancel = Arc::clone(&place.retry.cancel);
        let lease = place.read_lease;
        let lease = lease.then(|| Lease::new(&claimed, Arc::clone(&place.env.clock)));
        let log = TabletLog::start(claimed, place.bounds, lease, Arc::clone(&cancel), on_end)?;
        Ok(Self {
            files,
            missing: Mutex::new(missing),
            epoch,
            log,
            cancel,
        })
    }

    /// Saves the first checkpoint of a log that has none: only objects tell this log from one
    /// that was deleted and made again.
    ///
    /// # Errors
    /// Those of [`Tablet::checkpoint`]; the tablet is given up then.
    pub(crate) fn save_first(&self, db: &Db, retry: &Retry) -> Result<(), Error> {
        if self.newest().is_none() {
            at_last(retry, || self.checkpoint(db)).inspect_err(|_| self.abandon())?;
        }
        Ok(())
    }

    /// Saves the files of `db`, which is that of this tablet, as its newest checkpoint. Writes go
    /// on meanwhile; where this fails, the checkpoint before stays the newest.
    ///
    /// # Errors
    /// `Checkpoint`, temporary or not; `Owner` if the tablet is owned no more; `Engine`;
    /// `Overtaken`.
    pub fn checkpoint(&self, db: &Db) -> Result<CheckpointFigures, Error> {
        let missing = self.missing.lock().clone();
        let saved = self.files.save(db, self.epoch, &self.log, missing.as_ref());
        match (saved, missing) {
            (Ok(figures), _) => {
                *self.missing.lock() = None;
                Ok(figures)
            }
            (Err(error), Some(newest))
                if error.may_lack_objects() && self.files.objects.find(&newest).is_ok() =>
            {
                let (object, why) = (newest.object, error.to_string());
                Err(Error::Overtaken { object, why })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Whether the owner before saved a checkpoint that the database is not made of, and this one
    /// saved none since: objects that this one needs may be deleted. A checkpoint should be saved soon.
    pub fn lacks_checkpoint(&self) -> bool {
        self.missing.lock().is_some()
    }

    /// Whether the log is long enough for the next checkpoint.
    pub fn is_log_long(&self) -> bool {
        self.log.log_bytes() >= self.uploads().interval_bytes(self.log.bounds().log_bytes)
    }

    /// What its checkpoints upload.
    pub fn uploads(&self) -> &Arc<Uploads> {
        self.files.uploads()
    }

    /// The newest checkpoint that counts. Waits for one that is being saved.
    pub fn newest(&self) -> Option<CheckpointFigures> {
        self.files.newest()
    }

    /// The epoch in which this process owns it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Has all blocks of `db`, which is that of this tablet, fetched in the background, those with
    /// the newest samples first. Blocks that cannot be fetched are skipped until the next call.
    pub fn fetch_all(&self, db: &Db) {
        self.files.disk.fetch_all(&db.blocks());
    }

    /// Bytes of blocks that are not on this machine.
    pub fn away_bytes(&self) -> u64 {
        self.files.disk.away_bytes()
    }

    /// The blocks on this machine and their limit, which is none at first.
    pub fn cache(&self) -> Cache {
        self.files.disk.cache()
    }

    /// The log.
    pub fn log(&self) -> &Arc<TabletLog> {
        &self.log
    }

    /// Gives the tablet up without a farewell, as a killed process does.
    pub fn abandon(&self) {
        self.cancel.cancel();
        self.stop_fetching();
    }

    /// Stops fetching blocks; readers that wait for one get an error.
    pub fn stop_fetching(&self) {
        self.files.disk.stop();
    }
}

impl Drop for Tablet {
    fn drop(&mut self) {
        self.stop_fetching();
    }
}

/// Claims the log, and makes the directory the newest checkpoint that counts, without the blocks
/// that are not in it, whose rows are returned. All that is there before the claim is loaded before
/// it: a start that cannot succeed deposes nobody.
fn claim(
    place: &Place,
    tell: &mut dyn FnMut(Progress),
) -> Result<(Claimed, Option<Checkpoint>, Vec<Row>), Error> {
    let look = look(place)?;
    let named = look.checkpoint().map(|(_, named)| named.clone());
    let loaded = load(place, named.as_ref(), tell)?;
    let claimed = look.claim(&place.claimant)?;
    require_own_log(&place.objects, &place.retry, &claimed)?;
    let (newest, away) = if claimed.checkpoint == named {
        loaded
    } else {
        // The owner before saved another one meanwhile.
        load(place, claimed.checkpoint.as_ref(), tell)?
    };
    Ok((claimed, newest, away))
}

/// Makes the directory the checkpoint that a record names, without the blocks that are not in it,
/// whose rows are returned; without one, it becomes empty.
fn load(
    place: &Place,
    named: Option<&envelope::Checkpoint>,
    tell: &mut dyn FnMut(Progress),
) -> Result<(Option<Checkpoint>, Vec<Row>), Error> {
    let Place { objects, dir, .. } = place;
    let Some(named) = named else {
        objects.require_no_blocks(dir)?;
        objects.clear(dir)?;
        return Ok((None, Vec::new()));
    };
    let at = ListingRef::from(named);
    let (newest, away) = at_last(&place.retry, || {
        Ok(objects.load_without_blocks(&at, dir, tell)?)
    })?;
    Ok((Some(newest), away))
}

/// What a node begins with.
pub(crate) struct Begun {
    pub(crate) look: Look,
    pub(crate) files: Arc<Files>,
    pub(crate) db: Db,
}

/// Looks at the log, makes the directory the newest checkpoint that counts, as [`claim`] does, and
/// has `open` open it. Does it again with a newer one: the owner saves one meanwhile, and deletes what
/// the one before needs.
pub(crate) fn begin(
    place: &Place,
    tell: &mut dyn FnMut(Progress),
    mut open: impl FnMut(&Files) -> Result<Db, Error>,
) -> Result<Begun, Error> {
    require_free(place)?;
    let mut before = None;
    loop {
        let look = look(place)?;
        let newest = look.checkpoint().map(|(offset, _)| *offset);
        let named = look.checkpoint().map(|(_, named)| named);
        let begun = load(place, named, tell).and_then(|(newest, away)| {
            let files = Arc::new(Files::new(place, newest, away));
            let db = open(&files).inspect_err(|_| files.disk.stop())?;
            Ok((files, db))
        });
        match begun {
            Ok((files, db)) => return Ok(Begun { look, files, db }),
            Err(error) if error.may_lack_objects() && before != newest => {
                tracing::warn!(%error, "the start begins again");
                before = newest;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Refuses a directory that another process uses, or that has what must not be lost.
fn require_free(place: &Place) -> Result<(), Error> {
    place.objects.require_unused(&place.dir)?;
    require_no_rescue(&place.env, &place.dir)
}
