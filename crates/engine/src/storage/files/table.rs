//! The decision table for every state of a directory at open.
//!
//! The table is evaluated before anything is changed. A state that looks like a
//! loss is refused, naming what is missing; only states that a crash or a first
//! start can leave are accepted. The end of the log has a table of its own
//! ([`crate::log`]), which takes what the manifest knows of it. Tested below: every
//! state has exactly one row.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestFound {
    Absent,
    Whole,
    Damaged,
    /// A manifest of a later version.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilesFound {
    /// All that the manifest names exist; without a manifest, there are none.
    Named,
    /// Without a manifest: some exist.
    Unnamed,
    /// One that the manifest names is missing.
    Missing,
}

/// The state of the log, compared with the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// No log exists, and files say that there was none.
    None,
    /// No log exists, and files hold data from one.
    Gone,
    /// A log exists, files hold data from it, and its beginning cannot be read: its
    /// own table decides about each of its files.
    Damaged,
    /// Groups that are needed were removed.
    Cut,
    /// All groups that are needed exist, except those lost with its end.
    Whole,
    /// A log exists and this start is without a log.
    Unwanted,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) manifest: ManifestFound,
    pub(crate) files: FilesFound,
    pub(crate) log: LogState,
}

/// The action for a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Begin with no files: replay the log, if it exists, and write the first
    /// manifest.
    Begin,
    /// Load the files, then replay the log.
    Load,
    /// Refuse: the manifest is of a later version.
    Unsupported,
    /// Refuse: the manifest is damaged.
    ManifestDamaged,
    /// Refuse: the manifest is missing.
    ManifestLost,
    /// Refuse: a file that the manifest names is missing.
    FileLost,
    /// Refuse: the log is missing, and with it the data after the last flush.
    LogLost,
    /// Refuse: the log begins after the end of the files.
    LogCut,
    /// Refuse: the data of the log would be hidden.
    LogUnwanted,
}

struct Row {
    manifest: ManifestFound,
    files: &'static [FilesFound],
    log: &'static [LogState],
    decision: Decision,
}

const ANY_FILES: &[FilesFound] = &[FilesFound::Named, FilesFound::Unnamed, FilesFound::Missing];
/// Files that no manifest names were left by an interrupted flush.
const ALL_THERE: &[FilesFound] = &[FilesFound::Named, FilesFound::Unnamed];
const ANY_LOG: &[LogState] = &[
    LogState::None,
    LogState::Gone,
    LogState::Damaged,
    LogState::Cut,
    LogState::Whole,
    LogState::Unwanted,
];

const fn row(
    manifest: ManifestFound,
    files: &'static [FilesFound],
    log: &'static [LogState],
    decision: Decision,
) -> Row {
    Row {
        manifest,
        files,
        log,
        decision,
    }
}

const ROWS: [Row; 11] = {
    use {Decision as D, FilesFound as F, LogState as L, ManifestFound as M};
    [
        row(M::Unknown, ANY_FILES, ANY_LOG, D::Unsupported),
        row(M::Damaged, ANY_FILES, ANY_LOG, D::ManifestDamaged),
        // The first manifest exists before the first file.
        row(
            M::Absent,
            &[F::Unnamed, F::Missing],
            ANY_LOG,
            D::ManifestLost,
        ),
        // A log removes groups only after a manifest says that it may.
        row(
            M::Absent,
            &[F::Named],
            &[L::Cut, L::Gone, L::Damaged],
            D::ManifestLost,
        ),
        row(M::Absent, &[F::Named], &[L::None, L::Whole], D::Begin),
        row(M::Absent, &[F::Named], &[L::Unwanted], D::LogUnwanted),
        row(M::Whole, &[F::Missing], ANY_LOG, D::FileLost),
        row(M::Whole, ALL_THERE, &[L::Gone], D::LogLost),
        row(M::Whole, ALL_THERE, &[L::Cut], D::LogCut),
        row(M::Whole, ALL_THERE, &[L::Unwanted], D::LogUnwanted),
        row(
            M::Whole,
            ALL_THERE,
            &[L::None, L::Damaged, L::Whole],
            D::Load,
        ),
    ]
};

impl Observed {
    /// The action of the one row that matches.
    pub(crate) fn decide(self) -> Decision {
        let row = ROWS.iter().find(|row| row.matches(self));
        row.expect("a test finds a row for every state").decision
    }
}

impl Row {
    fn matches(&self, found: Observed) -> bool {
        self.manifest == found.manifest
            && self.files.contains(&found.files)
            && self.log.contains(&found.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_one_row() {
        use ManifestFound::{Absent, Damaged, Unknown, Whole};
        for manifest in [Absent, Whole, Damaged, Unknown] {
            for &files in ANY_FILES {
                for &log in ANY_LOG {
                    let found = Observed {
                        manifest,
                        files,
                        log,
                    };
                    let rows = ROWS.iter().filter(|row| row.matches(found));
                    assert_eq!(rows.count(), 1, "{found:?}");
                }
            }
        }
    }
}
