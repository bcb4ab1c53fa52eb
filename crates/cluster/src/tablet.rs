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

mod rescue;

use crate::checkpoint::{
    Checkpoint, CheckpointError, GRACE, Latest, ListingRef, Objects, Progress, Row, Uploads,
};
use crate::envelope::{self, Claimant};
use crate::kafka::{Kafka, Partition};
use crate::owner::{self, Claimed, Look, Stop};
use crate::remote::{Bounds, Complete, Lease, OnEnd, TabletLog};
use crate::retry::{Cancel, Retry};
use crate::tiered::TieredDisk;
pub use crate::tiered::{Cache, CacheFigures};
use latewood_engine::io::Env;
use latewood_engine::{Db, Defaults, Options};
use parking_lot::Mutex;
pub use rescue::require_none as require_no_rescue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where a checkpoint is gathered, in the directory: links need the same file system.
const GATHERED: &str = "checkpoint";
/// How often a log is read that seems to lack what the store has, before a start is refused.
const LOOKS_MAX: u32 = 20;
/// What can be done where a log is lost.
const WAY_ON: &str = "`latewood cluster restore --without-log` makes a local database of a \
                      checkpoint, and `latewood cluster init --from` begins a log with a new name \
                      on top of it";
/// How often old objects are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

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
    objects: Objects,
    env: Env,
    gathered: PathBuf,
    epoch: u64,
    log: Arc<TabletLog>,
    cancel: Arc<Cancel>,
    disk: TieredDisk,
    saved: Mutex<Saved>,
}

/// What is in the store.
#[derive(Default)]
struct Saved {
    newest: Option<Checkpoint>,
    before: Option<Checkpoint>,
    /// By the monotonic clock.
    swept_ns: u64,
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
    /// The database.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
}

impl Error {
    /// Whether another node owns the log by now: the same call would take it from that one.
    pub fn is_succession(&self) -> bool {
        matches!(self, Self::Owner(error) if error.is_succession())
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
        place.objects.require_unused(&place.dir)?;
        require_no_rescue(&place.env, &place.dir)?;
        let (claimed, newest, away) = claim(&place, tell)?;
        let epoch = claimed.owner.epoch();
        let (objects, retry) = (place.objects, place.retry);
        let cancel = Arc::clone(&retry.cancel);
        let lease = place.read_lease;
        let lease = lease.then(|| Lease::new(&claimed, Arc::clone(&place.env.clock)));
        let log = TabletLog::start(claimed, place.bounds, lease, Arc::clone(&cancel), on_end)?;
        // Blocks are fetched for a rescue too, when the log has been given up.
        let fetching = Retry {
            cancel: Arc::default(),
            ..retry.clone()
        };
        let gathered = place.dir.join(GATHERED);
        let (env, dir) = (&place.env, &*place.dir);
        let disk = TieredDisk::new(env, &objects, fetching, dir, &gathered, away);
        let env = Env {
            disk: Arc::new(disk.clone()),
            ..place.env
        };
        let opened = Db::open_remote(&env, &place.dir, options, defaults, log.clone());
        let db = opened.map_err(|error| {
            log.give_up();
            disk.stop();
            // Who claimed the log meanwhile may have trimmed what was still to be read.
            let successor = log.ended().filter(owner::Error::is_succession);
            successor.map_or(Error::Engine(error), Error::Owner)
        })?;
        disk.limit_waits(place.read_wait);
        let tablet = Self {
            objects: objects.with_env(env.clone()),
            gathered,
            epoch,
            log,
            cancel,
            disk,
            saved: Mutex::new(Saved {
                newest,
                before: None,
                swept_ns: env.clock.monotonic_ns(),
            }),
            env,
        };
        if tablet.newest().is_none() {
            // Only objects tell this log from one that was deleted and made again.
            at_last(&retry, || tablet.checkpoint(&db)).inspect_err(|_| tablet.abandon())?;
        }
        Ok((tablet, db))
    }

    /// Saves the files of `db`, which is that of this tablet, as its newest checkpoint. Writes go
    /// on meanwhile; where this fails, the checkpoint before stays the newest.
    ///
    /// # Errors
    /// `Checkpoint`, temporary or not; `Owner` if the tablet is owned no more; `Engine`.
    pub fn checkpoint(&self, db: &Db) -> Result<CheckpointFigures, Error> {
        let mut saved = self.saved.lock();
        self.objects.discard(&self.gathered)?;
        let files = db.checkpoint(&self.gathered)?;
        let previous = saved.newest.as_ref();
        let checkpoint = self.objects.save(self.epoch, &self.gathered, previous)?;
        let at = &checkpoint.at;
        let complete = Complete {
            manifest: at.object.clone(),
            sha256: at.sha256(),
            bytes: at.content.bytes,
            sequence: files.log_start.0,
        };
        let (offset, _) = self.log.checkpoint(complete)?;
        let figures = CheckpointFigures::from(&checkpoint);
        saved.before = saved.newest.replace(checkpoint);
        self.objects.uploads().end_checkpoint();
        // It counts, whatever becomes of the rest.
        let tidied = self.tidy(&mut saved, offset);
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

    /// What follows a checkpoint that the record at `offset` names.
    fn tidy(&self, saved: &mut Saved, offset: u64) -> Result<(), CheckpointError> {
        if let Some(newest) = &saved.newest {
            self.objects.put_latest(&newest.at, offset)?;
        }
        let now_ns = self.env.clock.monotonic_ns();
        if now_ns.saturating_sub(saved.swept_ns) >= SWEEP_EVERY.as_nanos() as u64 {
            saved.swept_ns = now_ns;
            let kept: Vec<&Checkpoint> = saved.newest.iter().chain(&saved.before).collect();
            self.objects.sweep(self.epoch, &kept, GRACE)?;
        }
        self.objects.discard(&self.gathered)
    }

    /// Whether the log is long enough for the next checkpoint.
    pub fn is_log_long(&self) -> bool {
        self.log.log_bytes() >= self.uploads().interval_bytes(self.log.bounds().log_bytes)
    }

    /// What its checkpoints upload.
    pub fn uploads(&self) -> &Arc<Uploads> {
        self.objects.uploads()
    }

    /// The newest checkpoint that counts. Waits for one that is being saved.
    pub fn newest(&self) -> Option<CheckpointFigures> {
        self.saved.lock().newest.as_ref().map(Into::into)
    }

    /// The epoch in which this process owns it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Has all blocks of `db`, which is that of this tablet, fetched in the background, those with
    /// the newest samples first. Blocks that cannot be fetched are skipped until the next call.
    pub fn fetch_all(&self, db: &Db) {
        self.disk.fetch_all(&db.blocks());
    }

    /// Bytes of blocks that are not on this machine.
    pub fn away_bytes(&self) -> u64 {
        self.disk.away_bytes()
    }

    /// The blocks on this machine and their limit, which is none at first.
    pub fn cache(&self) -> Cache {
        self.disk.cache()
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
        self.disk.stop();
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
    let Place { objects, dir, .. } = place;
    let look = look(place)?;
    let named = look.checkpoint().map(|(_, named)| named.clone());
    if named.is_none() {
        objects.require_no_blocks(dir)?;
    }
    let mut load = |named: &envelope::Checkpoint| {
        let at = ListingRef::from(named);
        at_last(&place.retry, || {
            Ok(objects.load_without_blocks(&at, dir, tell)?)
        })
    };
    let files = named.as_ref().map(&mut load).transpose()?;
    let claimed = look.claim(&place.claimant)?;
    require_own_log(objects, &place.retry, &claimed)?;
    let (newest, away) = match (&claimed.checkpoint, files) {
        (None, _) => {
            objects.clear(dir)?;
            return Ok((claimed, None, Vec::new()));
        }
        (now, Some(files)) if *now == named => files,
        // The owner before saved another one meanwhile.
        (Some(now), _) => load(now)?,
    };
    Ok((claimed, Some(newest), away))
}

/// Reads the log, as far as brokers show it, and waits for brokers and store: nothing is claimed
/// before all of it can be read and belongs together.
fn look(place: &Place) -> Result<Look, Error> {
    let Place { objects, retry, .. } = place;
    let latest = at_last(retry, || Ok(objects.latest()?))?;
    let mut pauses = retry.pauses("cannot read the log");
    let mut looks = 0;
    loop {
        let kafka = Arc::clone(&place.kafka);
        let seen = Look::new(
            kafka,
            place.partition.clone(),
            place.topic_id,
            retry.clone(),
        );
        let why = match seen {
            Ok(seen) => match why_foreign(objects, retry, latest.as_ref(), &seen)? {
                None => return Ok(seen),
                Some(why) => why,
            },
            Err(error @ owner::Error::Stopped(Stop::Beginning { .. } | Stop::Missing { .. })) => {
                error.into()
            }
            Err(error) => return Err(error.into()),
        };
        // A broker that has fallen behind shows a part of the log only.
        looks += 1;
        if looks == LOOKS_MAX {
            return Err(why);
        }
        pauses.pause(&why).map_err(owner::Error::from)?;
    }
}

/// Why the log is not that of the store, if so: what `LATEST` names, or where there is none any
/// checkpoint, is of another log.
fn why_foreign(
    objects: &Objects,
    retry: &Retry,
    latest: Option<&Latest>,
    seen: &Look,
) -> Result<Option<Error>, Error> {
    let newest = seen.checkpoint().map(|(offset, _)| *offset);
    if let Some(latest) = latest {
        let offset = latest.offset;
        return Ok((newest < Some(offset)).then_some(Error::OtherLog { offset }));
    }
    if newest.is_some() {
        return Ok(None);
    }
    let listing = at_last(retry, || Ok(objects.foreign_listing(seen.epochs())?))?;
    Ok(listing.map(|object| Error::NewLog { object }))
}

/// Refuses a log that lacks the record of a checkpoint in the store: `LATEST` is written after
/// its record counts, so no log that belongs to the store is shorter.
fn require_own_log(objects: &Objects, retry: &Retry, claimed: &Claimed) -> Result<(), Error> {
    let Some(latest) = at_last(retry, || Ok(objects.latest()?))? else {
        return Ok(());
    };
    let offset = latest.offset;
    if claimed.checkpoint.is_some() && claimed.owner.epoch() > offset {
        return Ok(());
    }
    Err(Error::OtherLog { offset })
}

/// Calls the store until it answers.
fn at_last<T>(retry: &Retry, call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let answer = retry.repeat("cannot use the object store", call, Error::is_temporary);
    answer.map_err(owner::Error::from)?
}
