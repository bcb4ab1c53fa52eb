//! Errors of uploading and downloading, and which of them time may cure.

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
    #[error("the stored data is damaged: {what}")]
    Damaged {
        /// The object and the mismatch.
        what: String,
    },
    /// It was made by a later version.
    #[error("format version {found} of {what} is not supported (this build reads version {known})")]
    Version {
        /// The listing.
        what: &'static str,
        /// Its version.
        found: u64,
        /// Version that this build reads.
        known: u64,
    },
    /// An error of the database.
    #[error(transparent)]
    Engine(#[from] latewood_engine::Error),
}

impl Error {
    /// Whether the same call may succeed later: the store did not answer, was
    /// overloaded (503, SlowDown), or the connection failed. Not for missing rights,
    /// missing objects and wrong bytes, nor for local files.
    pub fn is_temporary(&self) -> bool {
        use object_store::Error as Store;
        match self {
            // Stores that answer "conflict" to an unconditional request mean another
            // request under way.
            Self::Store { source, .. } => matches!(
                source,
                Store::Generic { .. } | Store::JoinError { .. } | Store::AlreadyExists { .. }
            ),
            Self::Threads { .. } => true,
            _ => false,
        }
    }

    /// Whether an object is missing or has other bytes than it should.
    pub fn is_damage(&self) -> bool {
        use object_store::Error::NotFound;
        matches!(
            self,
            Self::Damaged { .. }
                | Self::Store {
                    source: NotFound { .. },
                    ..
                }
        )
    }

    /// An object that does not match what is known of it.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(crate) fn store(doing: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let doing = doing.into();
        |source| Self::Store { doing, source }
    }
}
