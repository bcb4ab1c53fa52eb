//! The verdict on a directory: applies the decision table to its state.
//!
//! A start and the offline tools use the same verdict, so a start accepts every
//! directory that a check accepts. Nothing is changed. Tested by
//! `tests/verdicts.rs`, which gives directories in every state to both.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::log::{LogStart, Position};
use crate::storage::files::directory::Directory;
use crate::storage::files::table::{Decision, LogState, Observed};
use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub(crate) enum LogFound {
    /// No log exists.
    None,
    /// A log that begins at this position.
    From(Position),
    /// A log without a readable header.
    Damaged,
    /// A log that this start does not use.
    Unwanted,
}

impl From<LogStart> for LogFound {
    fn from(start: LogStart) -> Self {
        match start {
            LogStart::None => Self::None,
            LogStart::At(position) => Self::From(position),
            LogStart::Damaged => Self::Damaged,
        }
    }
}

/// The result of an accepted start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Begin with no files.
    New,
    /// Begin with the files that the manifest names.
    Loaded,
}

impl Directory {
    /// Decides what a start does with this directory and its log.
    ///
    /// # Errors
    /// The reason for a refusal: `Corrupt`, `Unsupported`, `Invalid`.
    pub(crate) fn decide(&self, log: LogFound) -> Result<Begins> {
        let manifest = &self.contents;
        let found = Observed {
            manifest: self.manifest,
            files: self.files,
            log: match log {
                LogFound::None if manifest.log_next_min() > 1 => LogState::Gone,
                LogFound::None => LogState::None,
                LogFound::Damaged => LogState::Damaged,
                LogFound::From(start) if start.0 > manifest.log_start => LogState::Cut,
                LogFound::From(_) => LogState::Whole,
                LogFound::Unwanted => LogState::Unwanted,
            },
        };
        match found.decide() {
            Decision::Begin => Ok(Begins::New),
            Decision::Load => Ok(Begins::Loaded),
            refused => Err(self.refusal(refused)),
        }
    }

    fn refusal(&self, decision: Decision) -> Error {
        let log = names::log_dir(&self.path);
        let manifest = self.path.join(names::MANIFEST);
        let corrupt = |text: &str, path: &Path| Error::new(ErrorKind::Corrupt, text).at(path);
        match decision {
            Decision::LogLost => corrupt(
                "the log is missing: what was written after the last flush is lost",
                &log,
            ),
            Decision::LogCut => corrupt(
                "the log begins after the end of the blocks: they are from different points in time",
                &log,
            ),
            Decision::LogUnwanted => {
                let text = "the directory has a log; a start without it would hide its data";
                Error::new(ErrorKind::Invalid, text).at(&log)
            }
            Decision::FileLost => {
                let missing = self.missing.as_deref().unwrap_or(&self.path);
                corrupt("a file named by the manifest is missing", missing)
            }
            Decision::ManifestLost => corrupt(
                "the manifest is missing: it names the blocks with data that the log no longer has",
                &manifest,
            ),
            Decision::Begin
            | Decision::Load
            | Decision::Unsupported
            | Decision::ManifestDamaged => match &self.fault {
                Some((kind, text)) => Error::new(*kind, text.clone()).at(&manifest),
                None => corrupt("the manifest cannot be read", &manifest),
            },
        }
    }
}
