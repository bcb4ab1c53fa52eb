//! Why a command was refused, and the one place where reasons become text.
//!
//! Texts follow Redis and RedisTimeSeries, because clients compare them.

use crate::base::glob;
use crate::client;
use crate::clients::Over;
use crate::intake::owned_text;
use crate::observe::Limit;
use latewood_engine::{Db, Error, ErrorKind, Refusal, shown_key};
use std::borrow::Cow;

/// Bytes of a name or of all arguments that an error repeats.
pub(crate) const REPEATED_BYTES_MAX: usize = 128;

/// Why a command has an error for a reply.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The wrong number of words; the dispatcher knows the command's name.
    Arity,
    /// The whole line of the error, code first.
    Line(Cow<'static, str>),
    /// The engine's own reason.
    Engine(Error),
    /// A block is not on this machine: the line of the error.
    Away(Cow<'static, str>),
    /// A limit that the server keeps, and the line of the error.
    Limit(Limit, Cow<'static, str>),
}

/// `value is not an integer or out of range`, in Redis' words.
pub(crate) const NOT_AN_INTEGER: Fault =
    Fault::Line(Cow::Borrowed("ERR value is not an integer or out of range"));
/// `syntax error`, in Redis' words.
pub(crate) const SYNTAX: Fault = Fault::Line(Cow::Borrowed("ERR syntax error"));

/// What Redis says when its memory is spent; clients know it by its first word.
const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// What a refused duplicate is answered with, in RedisTimeSeries' words: a load
/// may get one for every other sample.
const DUPLICATE: &str = "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM";

/// What is said of a command of which nobody knows what it did: it may be sent again only by who
/// has looked.
pub(crate) const UNKNOWN: &str =
    "ERR unknown whether this command was carried out, or a part of it";

impl Fault {
    /// The limit that was hit, if it was one of those the server keeps.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit, _) => Some(*limit),
            _ => None,
        }
    }

    /// Whether a block is not on this machine: who may wait for it gets another answer.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            Self::Away(_) => true,
            Self::Engine(error) => error.is_away(),
            _ => false,
        }
    }

    /// An error line that is known beforehand.
    pub(crate) const fn line(text: &'static str) -> Self {
        Self::Line(Cow::Borrowed(text))
    }

    /// Refuses a command with an error line.
    pub(crate) fn refuse<T>(text: impl Into<Cow<'static, str>>) -> Result<T, Self> {
        Err(Self::Line(text.into()))
    }

    /// Why the engine did nothing about the series under `key`, which is named
    /// where a limit, damage or a block that is not on this machine is the reason.
    pub(crate) fn about(error: Error, key: &[u8]) -> Self {
        match error.kind() {
            ErrorKind::Limit | ErrorKind::Corrupt | ErrorKind::Truncated => {
                let text = engine_text(&error);
                Self::Line(format!("{text}, for key '{}'", shown_key(key)).into())
            }
            ErrorKind::Away => {
                let text = engine_text(&error);
                Self::Away(format!("{text}, for key '{}'", shown_key(key)).into())
            }
            _ => Self::Engine(error),
        }
    }

    /// The text of the error reply of the command called `name`.
    pub(crate) fn text(&self, name: &str) -> Cow<'static, str> {
        match self {
            Self::Arity => format!("ERR wrong number of arguments for '{name}' command").into(),
            Self::Line(text) | Self::Away(text) | Self::Limit(_, text) => text.clone(),
            Self::Engine(error) => engine_text(error),
        }
    }
}

impl From<Over> for Fault {
    fn from(error: Over) -> Self {
        Self::Limit(Limit::Clients, format!("ERR {error}").into())
    }
}

impl From<client::Refused> for Fault {
    fn from(error: client::Refused) -> Self {
        match error {
            client::Refused::TooLong(error) => error.into(),
            client::Refused::Over(error) => error.into(),
        }
    }
}

impl From<glob::TooLong> for Fault {
    fn from(error: glob::TooLong) -> Self {
        Self::Line(format!("ERR {error}").into())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The error reply for an operation that the engine did not do.
#[cold]
pub(crate) fn engine_text(error: &Error) -> Cow<'static, str> {
    match error.kind() {
        ErrorKind::OutOfMemory => OUT_OF_MEMORY.into(),
        ErrorKind::NoSuchKey => "ERR TSDB: the key does not exist".into(),
        ErrorKind::KeyExists => "ERR TSDB: key already exists".into(),
        ErrorKind::Halted => format!(
            "MISCONF Latewood stopped accepting writes: {error}. Reads go on; repair the disk and restart the server"
        )
        .into(),
        ErrorKind::Unknown => format!("{UNKNOWN}: {error}").into(),
        ErrorKind::Away | ErrorKind::AtOwner => format!("TRYAGAIN {error}").into(),
        ErrorKind::Limit | ErrorKind::Invalid | ErrorKind::NoSuchRule => {
            format!("ERR TSDB: {error}").into()
        }
        _ => format!("ERR {error}").into(),
    }
}

/// The error reply for one sample for `key` that `db` did not take.
pub(crate) fn refusal_text(refusal: &Refusal, key: &[u8], db: &Db) -> Cow<'static, str> {
    match refusal {
        // RedisTimeSeries says this of missing keys too.
        Refusal::NoSuchKey => "ERR TSDB: the key is not a TSDB key".into(),
        // RedisTimeSeries sends this one without its code.
        Refusal::OlderThanNewest => format!("TSDB: {refusal}").into(),
        Refusal::Duplicate => DUPLICATE.into(),
        Refusal::OutOfMemory => OUT_OF_MEMORY.into(),
        Refusal::Away => format!("TRYAGAIN {refusal}, for key '{}'", shown_key(key)).into(),
        Refusal::OlderThanRetention => "ERR TSDB: Timestamp is older than retention".into(),
        Refusal::OlderThanFloor => {
            format!("ERR TSDB: {refusal}, which begins at {}", db.floor()).into()
        }
        Refusal::Owned => format!("ERR TSDB: {}", owned_text(key, db)).into(),
        Refusal::Limit(_) => format!("ERR TSDB: {refusal}, for key '{}'", shown_key(key)).into(),
        other => format!("ERR TSDB: {other}").into(),
    }
}
