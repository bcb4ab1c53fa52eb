//! What the end of a log, or an error of the database, means to a node.

use crate::envelope::Claimant;
use crate::node::{Role, Standing};
use crate::owner::{Error, Stop};
use latewood_engine::ErrorKind;

/// Why a node neither follows nor owns the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its memory is no beginning of what counts, or cannot go on: the process drops it, and opens
    /// another [`super::Standby`], which loads the newest checkpoint. Text for people.
    LoadAnew(String),
    /// Its log ended, not by a successor: see [`Error::loses_records`].
    Log(Error),
    /// It cannot go on, and a new start would not help. Text for people.
    Failed(String),
    /// It was stopped.
    Stopped,
}

impl Ended {
    /// What the error of a log that is followed means. One that was trimmed, or lost its end, has
    /// not what the memory has: the newest checkpoint and what is behind it is what counts.
    pub(super) fn of_followed(error: Error) -> Self {
        match error {
            Error::Stopped(
                Stop::Trimmed { .. }
                | Stop::Missing { .. }
                | Stop::Beginning { .. }
                | Stop::TailLost { .. },
            ) => Self::LoadAnew(error.to_string()),
            error => Self::of_owned(error),
        }
    }

    /// The same of one that is owned: nobody else has what it lacks.
    pub(super) fn of_owned(error: Error) -> Self {
        match error {
            Error::Cancelled => Self::Stopped,
            error if error.is_succession() => Self::LoadAnew(error.to_string()),
            error => Self::Log(error),
        }
    }

    /// What an error of a database that follows means.
    pub(super) fn of_database(error: &latewood_engine::Error) -> Self {
        let text = format!("cannot apply the log: {error}");
        if error.kind() == ErrorKind::OutOfMemory {
            // The files of the newest checkpoint need less than what is kept beside older ones.
            return Self::LoadAnew(text);
        }
        Self::Failed(text)
    }
}

/// The node of `standing` answers nothing any more. Its clients are sent to the owner, if it is a
/// member: the one that deposed this node, where that is known.
pub(super) fn leave(standing: &mut Standing, by: Option<&Claimant>) {
    standing.role = Role::Loading;
    let me = standing.members.first().map(|me| me.id);
    if standing.owner == me {
        let mut others = standing.members.iter().skip(1);
        let owner = others.find(|other| by.is_some_and(|by| by.address == other.addresses.redis));
        standing.owner = owner.map(|owner| owner.id);
    }
}
