//! What every state of a directory means at open: one decision table.
//!
//! Nothing has been changed when the table is asked. What looks like a loss is
//! refused, naming what is missing; only states that a crash or a first start
//! can leave go on. How the log ends is a table of its own ([`crate::log`]);
//! what the manifest knows of it goes in there. Tested below: every state has
//! exactly one row.

/// What stands where the manifest should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestFound {
    Absent,
    Whole,
    Damaged,
    /// A later version's.
    Unknown,
}

/// The blocks and series files there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilesFound {
    /// All that the manifest names; without a manifest, none at all.
    Named,
    /// Without a manifest: some.
    Unnamed,
    /// One that the manifest names is missing.
    Missing,
}

/// What the log is, compared with what the manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// There is none, and files say that there was none.
    None,
    /// There is none, and files hold what came out of one.
    Gone,
    /// There is one, files hold what came out of it, and nothing in it says
    /// where it begins: its own table decides about each file of it.
    Damaged,
    /// Groups that are needed were given up.
    Cut,
    /// Whatever is needed and was not lost with its end is there.
    Whole,
    /// There is one and this start is without a log.
    Unwanted,
}

/// A directory as found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) manifest: ManifestFound,
    pub(crate) files: FilesFound,
    pub(crate) log: LogState,
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Begin with no files: replay the log, if there is one, and write the
    /// first manifest.
    Begin,
    /// Load the files, then replay the log.
    Load,
    /// Refuse: the manifest is of a later version.
    Unsupported,
    /// Refuse: the manifest is damaged.
    ManifestDamaged,
    /// Refuse: there was a manifest and it is gone.
    ManifestLost,
    /// Refuse: a file that the manifest names is gone.
    FileLost,
    /// Refuse: the log is gone, and what it held behind the files with it.
    LogLost,
    /// Refuse: the log begins behind what the files hold.
    LogCut,
    /// Refuse: what the log holds would not be seen.
    LogUnwanted,
}

struct Row {
    manifest: ManifestFound,
    files: &'static [FilesFound],
    log: &'static [LogState],
    decision: Decision,
}

const ANY_FILES: &[FilesFound] = &[FilesFound::Named, FilesFound::Unnamed, FilesFound::Missing];
/// Files that nothing names are garbage of a flush that was cut short.
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
        // The first manifest is there before the first file.
        row(
            M::Absent,
            &[F::Unnamed, F::Missing],
            ANY_LOG,
            D::ManifestLost,
        ),
        // A log gives groups up only once a manifest says that it may.
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
    /// The decision of the one row that matches.
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
