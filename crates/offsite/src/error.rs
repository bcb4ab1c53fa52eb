//! Errors of uploading and downloading a backup.

use std::path::PathBuf;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an upload or download failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not valid.
    #[error("{url}: {reason}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object store returned an error, or did not respond.
    #[error("cannot {doing}: {source}")]
    Store {
        /// The failed action and its object.
        doing: String,
        /// The error of the store.
        source: object_store::Error,
    },
    /// A local file error.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// The failed action.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The runtime cannot be started.
    #[error("cannot start the runtime: {source}")]
    Threads {
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The target is not empty.
    #[error("{url} is not empty: it contains {held}; every backup needs its own place")]
    Taken {
        /// The target.
        url: String,
        /// One of the objects there.
        held: String,
    },
    /// No backup, or an unfinished one.
    #[error("no backup at {url}: no such place, or the backup is unfinished (no BACKUP.json)")]
    NoBackup {
        /// The place.
        url: String,
    },
    /// An object does not match the listing.
    #[error("the backup is damaged: {what}")]
    Damaged {
        /// The object and the mismatch.
        what: String,
    },
    /// The backup was made by a later version.
    #[error("backup format version {found} is not supported (this build reads version {known})")]
    Version {
        /// Version of the backup.
        found: u64,
        /// Version that this build reads.
        known: u64,
    },
    /// An error of the database.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
}

impl Error {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(crate) fn store(doing: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let doing = doing.into();
        |source| Self::Store { doing, source }
    }
}
