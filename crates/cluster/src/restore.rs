//! Making a local database of what a tablet is kept in, without owning it.
//!
//! ```text
//! survey      which checkpoint counts, and where the log ends
//! log         the groups behind the checkpoint become segments of a local log
//! download    the files of the checkpoint
//! adopt       every byte is read; FORMAT gets its name: only now it is a database
//! ```
//! [`restore_without_log`] makes one of the files of a checkpoint alone, where the log is lost: it
//! holds what these files hold, and says up to where that is.
//!
//! The owner may go on meanwhile: it may save another checkpoint, trim the log and delete objects
//! that the restore needs. Then all of it begins again with the newer checkpoint.
//!
//! Invariants: nothing is appended to the log or written to the store. With the log, the database holds
//! everything that was known to be in the log when the restore began, and what of it counts is
//! decided by [`crate::scan`], as owners decide it.
//!
//! Tested by `tests/tablet/restore.rs` and `tests/tablet/alone.rs`.

use crate::checkpoint::{CheckpointError, Choice, Listing, ListingRef, Objects, Progress};
use crate::envelope::State;
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::owner::{self, Source, Stop};
use crate::retry::Retry;
use crate::survey::{self, Survey, survey};
use latewood_engine::Position;
use latewood_engine::io::Env;
use latewood_engine::tools::{
    Checked, CopiedLog, Finding, LogCopy, Reach, adopt, begin_format, clear_target, prepare_target,
    release_log,
};
use std::path::Path;
use std::sync::Arc;

/// What a tablet is kept in.
pub struct Kept {
    /// The cluster of the log.
    pub kafka: Arc<dyn Kafka>,
    /// The log.
    pub partition: Partition,
    /// The objects.
    pub objects: Objects,
    /// Files and clock of this machine.
    pub env: Env,
    /// How reads of the log are repeated, and what ends them.
    pub retry: Retry,
}

/// What a database was made of.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The number of the checkpoint and the offset of its record, if there was one.
    pub checkpoint: Option<(u64, Offset)>,
    /// Files of the checkpoint, and their bytes.
    pub files: (u64, u64),
    /// What of the log is behind it.
    pub log: CopiedLog,
    /// The offset behind the newest record that was read.
    pub end: Offset,
    /// What was found when all of it was read.
    pub checked: Checked,
}

/// What a database was made of whose log is lost.
#[derive(Clone, Debug)]
pub struct Remains {
    /// The checkpoint.
    pub listing: Listing,
    /// Up to which group of the lost log its files reach.
    pub reach: Reach,
    /// Listings in the store that are newer.
    pub later: Vec<String>,
    /// What was found when all of it was read.
    pub checked: Checked,
}

/// Why no database was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// The log cannot be used.
    #[error(transparent)]
    Survey(#[from] survey::Error),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] owner::Error),
    /// The log never held a record.
    #[error("the log holds nothing: no server was ever started with it")]
    Empty,
    /// The store has a checkpoint of another log.
    #[error(
        "the log has not the record at offset {offset} that names the checkpoint in the object \
         store: the names of log and objects do not belong together"
    )]
    OtherLog {
        /// Of the record.
        offset: Offset,
    },
    /// The object store, an object or a local file.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The directory or what arrived in it.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
}

impl Error {
    /// Whether it is what a restore meets that the owner has overtaken.
    fn may_be_overtaken(&self) -> bool {
        match self {
            Self::Log(owner::Error::Stopped(Stop::Trimmed { .. } | Stop::Beginning { .. })) => true,
            Self::Checkpoint(CheckpointError::NotHere { .. }) => true,
            Self::Checkpoint(CheckpointError::Store(error)) => {
                matches!(error, latewood_offsite::Error::Damaged { .. })
            }
            _ => false,
        }
    }
}

/// Makes a local database in `dir`, which must be empty or missing, of the newest checkpoint that
/// counts and the log behind it. Tells `progress` how far the download is, and `tell` what is
/// found when all of it is read. Reads the log twice; uses a few dozen mebibytes of memory.
///
/// # Errors
/// `Engine` if `dir` is not empty, before anything is asked; `Empty`, `OtherLog`, `Survey`, `Log`;
/// `Checkpoint` for a missing or damaged object. What is in `dir` then is no database.
pub fn restore(
    kept: &Kept,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
    tell: &mut dyn FnMut(&Finding),
) -> Result<Restored, Error> {
    prepare_target(&kept.env, dir)?;
    let mut before = None;
    let mut restored = loop {
        let (found, source) = look(kept)?;
        let newest = found.checkpoint.as_ref().map(|(offset, _)| *offset);
        let bounds = (found.bounds.0, newest);
        match fetch(kept, &source, &found, dir, progress) {
            // Only an owner that goes on saves checkpoints.
            Err(error) if error.may_be_overtaken() && before != Some(bounds) => {
                tracing::warn!(%error, "the restore begins again");
                before = Some(bounds);
                clear_target(&kept.env, dir)?;
            }
            fetched => break fetched?,
        }
    };
    restored.checked = adopt(&kept.env, dir, tell)?;
    Ok(restored)
}

/// Makes a local database in `dir`, which must be empty or missing, of a checkpoint alone: the one
/// whose listing is `object`, or that of `LATEST`. What was acknowledged behind it is not in it.
/// Tells `progress` and `tell` as [`restore`].
///
/// # Errors
/// `Engine` if `dir` is not empty, before anything is asked; `Checkpoint`. What is in `dir` then is
/// no database.
pub fn restore_without_log(
    (objects, env): (&Objects, &Env),
    object: Option<&str>,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
    tell: &mut dyn FnMut(&Finding),
) -> Result<Remains, Error> {
    prepare_target(env, dir)?;
    let Choice { checkpoint, later } = objects.choose(object)?;
    let listing = objects.download(&checkpoint.at, dir, progress)?.listing;
    let reach = release_log(env, dir, Position(0))?;
    // An empty log, behind all that the files hold.
    LogCopy::begin(env, dir, Position(reach.newest.0 + 1))?.finish()?;
    Ok(Remains {
        listing,
        reach,
        later,
        checked: adopt(env, dir, tell)?,
    })
}

/// What the log holds. The hint in the store is read first: no log that belongs to the store is
/// shorter then.
fn look(kept: &Kept) -> Result<(Survey, Source), Error> {
    let topic = kept.kafka.describe(&kept.partition.topic)?;
    let latest = kept.objects.latest()?;
    let found = loop {
        match survey(&*kept.kafka, &kept.partition, &mut |_, _, _| {}) {
            // The owner trimmed it meanwhile.
            Err(survey::Error::Kafka(KafkaError::OutOfRange { .. })) => {}
            found => break found?,
        }
    };
    let newest = found.checkpoint.as_ref().map(|(offset, _)| *offset);
    if let Some(latest) = latest.filter(|latest| newest < Some(latest.offset)) {
        let offset = latest.offset;
        return Err(Error::OtherLog { offset });
    }
    let (kafka, partition) = (Arc::clone(&kept.kafka), kept.partition.clone());
    let source = Source::new(kafka, partition, topic.id, kept.retry.clone())?;
    Ok((found, source))
}

/// Gathers the log and the files of a checkpoint.
fn fetch(
    kept: &Kept,
    source: &Source,
    found: &Survey,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, Error> {
    // Nodes may have said HELLO in a log that none owned yet.
    let state = found.state.filter(|state| *state != State::START);
    let end = state.ok_or(Error::Empty)?.sequence;
    let begin = match &found.checkpoint {
        Some((_, named)) => (named.begin, named.state),
        None => (found.bounds.0, State::START),
    };
    // The log goes first, as it is what the owner gives up sooner.
    let mut copy = LogCopy::begin(&kept.env, dir, Position(begin.1.sequence))?;
    for data in source.history(begin, end) {
        copy.groups(&data?.payload)?;
    }
    let mut restored = Restored {
        checkpoint: None,
        files: (0, 0),
        log: copy.finish()?,
        end: found.bounds.1,
        checked: Checked::default(),
    };
    match &found.checkpoint {
        None => begin_format(&kept.env, dir)?,
        Some((offset, named)) => {
            let at = ListingRef::from(named);
            let listing = kept.objects.download(&at, dir, progress)?.listing;
            restored.checkpoint = Some((listing.number, *offset));
            restored.files = (listing.files.len() as u64, listing.bytes());
        }
    }
    Ok(restored)
}
