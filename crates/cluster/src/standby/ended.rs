//! What the end of a log, or an error of the database, means to a node.

use crate::envelope::Claimant;
use crate::node::{Role, Standing};
use crate::owner::{Error, Stop};
use crate::tablet;
use latewood_engine::ErrorKind;

/// What became of an owner, for its operator.
const DEPOSED: &str = "This node was not heard for some seconds: it was paused, overloaded or cut off \
     from Kafka, so another one took the log over. It answers nothing until it has loaded the log \
     anew, and follows from then on; what was acknowledged as being in the log is kept. If it happens \
     again, look at its processor and memory and its way to the brokers";

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
            error if error.is_succession() => Self::LoadAnew(format!("{error}. {DEPOSED}")),
            error => Self::Log(error),
        }
    }

    /// What an error of applying the log means. What is in memory may be half of a group, and a
    /// block may be gone: the newest checkpoint has other files, and needs less memory beside them.
    pub(super) fn of_applying(error: &latewood_engine::Error) -> Self {
        let text = format!("cannot apply the log: {error}");
        match error.kind() {
            // Written by a later version.
            ErrorKind::Unsupported => Self::Failed(text),
            ErrorKind::OutOfMemory => Self::LoadAnew(format!(
                "{text}. The newest checkpoint is loaded; if this node runs short again, the log \
                 behind it needs more memory than it has: raise --memory"
            )),
            _ => Self::LoadAnew(text),
        }
    }

    /// What an error of taking a checkpoint over means: it can be opened, or a newer one.
    pub(super) fn of_adopting(error: &tablet::Error) -> Self {
        Self::LoadAnew(format!("cannot take a checkpoint over: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_engine::Error as Damage;

    #[test]
    fn a_deposed_owner_says_what_happened_and_what_it_does() {
        let by = Claimant {
            nonce: [1; 16],
            node: 0,
            address: "db-2:6379".to_owned(),
        };
        let Ended::LoadAnew(text) = Ended::of_owned(Error::Deposed { by, epoch: 7 }) else {
            panic!("it follows from then on");
        };
        for part in [
            "db-2:6379",
            "since offset 7",
            "was not heard",
            "follows",
            "is kept",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_a_newer_checkpoint_mends_is_loaded_anew() {
        let is_anew = |ended: Ended| matches!(ended, Ended::LoadAnew(_));
        let of = |kind| Damage::new(kind, "why");
        for kind in [
            ErrorKind::Corrupt,
            ErrorKind::Truncated,
            ErrorKind::Away,
            ErrorKind::Io,
            ErrorKind::OutOfMemory,
        ] {
            assert!(is_anew(Ended::of_applying(&of(kind))), "{kind:?}");
        }
        // A record of a later version.
        assert!(!is_anew(Ended::of_applying(&of(ErrorKind::Unsupported))));
        for kind in [ErrorKind::Unsupported, ErrorKind::Invalid, ErrorKind::Io] {
            let error = tablet::Error::Engine(of(kind));
            assert!(is_anew(Ended::of_adopting(&error)), "{kind:?}");
        }
    }
}
