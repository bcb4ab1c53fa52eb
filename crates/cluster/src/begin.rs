//! Beginning a log on top of a database that has none in Kafka: one of a single machine, or what
//! was saved of a log that is lost.
//!
//! ```text
//! offset 0   EPOCH         so that the next record has an epoch
//! offset 1   CHECKPOINT    names the files; groups go on behind them. It counts for who begins here
//! trim to 1                and only now is it the log's first record
//! ```
//! A log from offset 0 on begins with group 1, any other with what its first record says
//! ([`crate::scan::first_state`]): no reader needs to know of this.
//!
//! All that the database's own log holds is flushed first; its manifest then says that no group of
//! that log is needed, as the new one has none of them.
//!
//! Invariants: topic and folder are new. `LATEST` names the record at offset 1 before there is one,
//! so a log that was begun in part is refused by every start. The database stays one of its own.
//!
//! Tested by `tests/tablet/begin.rs`.

use crate::checkpoint::{Checkpoint, CheckpointError, Objects};
use crate::envelope::{self, Body, Claimant, Envelope, State};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::retry::Retry;
use crate::survey::{self, survey};
use latewood_engine::io::Env;
use latewood_engine::io::directory::open_existing;
use latewood_engine::tools::release_log;
use latewood_engine::{Db, Defaults, Options, Position};
use std::path::Path;

/// Where the CHECKPOINT stands.
const CHECKPOINT_AT: Offset = 1;

/// The log and the objects that are begun.
pub struct New<'a> {
    /// The cluster of the log.
    pub kafka: &'a dyn Kafka,
    /// The log, of a new topic.
    pub partition: Partition,
    /// The objects.
    pub objects: Objects,
    /// Files and clock of this machine.
    pub env: Env,
    /// A nonce, and who begins it.
    pub claimant: Claimant,
    /// How calls that Kafka cannot do yet are repeated.
    pub retry: Retry,
}

/// A log that was begun.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its first checkpoint.
    pub checkpoint: Checkpoint,
    /// The group that comes next in it.
    pub next: Position,
}

/// Why no log was begun.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store, an object or a local file.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The database.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
    /// Kafka, before anything was appended.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// The topic is in use.
    #[error(
        "topic {topic} holds or held records: a log begins on top of a database in a new topic only"
    )]
    Used {
        /// The topic.
        topic: String,
    },
    /// Cut off after the first record.
    #[error(
        "the log was begun in part, and no server takes it ({why}): delete topic {topic} and \
         {latest}, then begin again"
    )]
    Partly {
        /// What happened.
        why: String,
        /// The topic.
        topic: String,
        /// The object.
        latest: String,
    },
}

/// Begins a log on top of the database in `dir`, which no server is using.
///
/// # Errors
/// `Used`, and `Taken` in `Checkpoint`, for what is not new; `Engine` for a database that is
/// damaged, in use or a cache; `Checkpoint` and `Kafka`: the same call may be made again;
/// `Partly`.
pub fn begin(new: &New<'_>, dir: &Path) -> Result<Begun, Error> {
    let is_temporary = |error: &KafkaError| matches!(error, KafkaError::Unavailable(_));
    let (kafka, partition) = (new.kafka, &new.partition);
    let ask = || kafka.bounds(partition);
    let bounds = new.retry.repeat("cannot use the topic", ask, is_temporary);
    let stopped = |_| KafkaError::Unavailable("given up".to_owned());
    let topic = partition.topic.clone();
    if bounds.map_err(stopped)?? != (0, 0) {
        return Err(Error::Used { topic });
    }
    let last = flush(&new.env, dir)?;
    // Nobody serves it until all of it is in the store.
    let _guard = open_existing(&new.env, dir)?;
    let reach = release_log(&new.env, dir, last)?;
    let next = Position(last.max(reach.newest).0 + 1);
    let checkpoint = new.objects.save_first(dir, CHECKPOINT_AT)?;
    let latest = new.objects.call_latest();
    append(new, &checkpoint, next).map_err(|why| Error::Partly { why, topic, latest })?;
    Ok(Begun { checkpoint, next })
}

/// Writes all that the log of the database in `dir` holds to its files. The last group then.
fn flush(env: &Env, dir: &Path) -> latewood_engine::Result<Position> {
    // An empty folder is not made a database of.
    drop(open_existing(env, dir)?);
    let options = Options {
        background: false,
        strict: true,
        ..Options::default()
    };
    let db = Db::open(env, dir, options, Defaults::default())?;
    db.flush()?;
    let last = db.position();
    db.close()?;
    Ok(last)
}

/// Appends the two records and trims the first. Nothing is tried again: nobody else writes here.
fn append(new: &New<'_>, checkpoint: &Checkpoint, next: Position) -> Result<(), String> {
    let (kafka, partition) = (new.kafka, &new.partition);
    let epoch = Envelope::Epoch {
        after: None,
        n: None,
        claimant: new.claimant.clone(),
    };
    let state = State {
        epoch: Some(0),
        n: next.0,
        sequence: next.0,
    };
    let at = &checkpoint.at;
    let named = envelope::Checkpoint {
        manifest: at.object.clone(),
        sha256: at.sha256(),
        bytes: at.content.bytes,
        begin: CHECKPOINT_AT,
        state,
    };
    let body = Body::Checkpoint(named.clone());
    let records = [epoch, Envelope::Record { at: state, body }];
    for (offset, record) in (0..).zip(records) {
        let value = record.encode().ok_or("a number or a name is too long")?;
        let appended = kafka.append(partition, &value);
        let at = appended.map_err(|error| error.to_string())?;
        if at != offset {
            return Err(format!("somebody else appended before offset {at}"));
        }
    }
    let trimmed = kafka.trim(partition, CHECKPOINT_AT);
    trimmed.map_err(|error| error.to_string())?;
    let found = survey(kafka, partition, &mut |_, _, _| {});
    let found = found.map_err(|error: survey::Error| error.to_string())?;
    if found.checkpoint != Some((CHECKPOINT_AT, named)) {
        return Err("the log does not begin with the record that names the files".to_owned());
    }
    Ok(())
}
