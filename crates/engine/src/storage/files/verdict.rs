//! What is to become of a directory: its state put before the decision table.
//!
//! A start and the tools for data at rest ask the same question here, so a
//! directory that a check approves is one that a start takes. Nothing is
//! changed. Tested by `tests/verdicts.rs`, which puts directories in every
//! state before both.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::log::{LogStart, Position};
use crate::storage::files::directory::Directory;
use crate::storage::files::table::{Decision, LogState, Observed};
use std::path::Path;

/// What there is of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogFound {
    /// None.
    None,
    /// One that begins here.
    From(Position),
    /// One without a header that can be read.
    Damaged,
    /// One that this start does without.
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

/// How a start goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With no files.
    New,
    /// With those that the manifest names.
    Loaded,
}

impl Directory {
    /// What a start does with this directory and what there is of its log.
    ///
    /// # Errors
    /// The refusal, in words: `Corrupt`, `Unsupported`, `Invalid`.
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
                "the log is gone: what was written after the last flush is lost",
                &log,
            ),
            Decision::LogCut => corrupt(
                "the log begins after what the blocks hold: log and blocks are of two times",
                &log,
            ),
            Decision::LogUnwanted => {
                let text = "the directory has a log; without it, what it holds would be missing";
                Error::new(ErrorKind::Invalid, text).at(&log)
            }
            Decision::FileLost => {
                let missing = self.missing.as_deref().unwrap_or(&self.path);
                corrupt("a file that the manifest names is gone", missing)
            }
            Decision::ManifestLost => corrupt(
                "the manifest is gone: it says which blocks hold what the log no longer has",
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
