//! Why a backup could not be taken away or brought back.

use std::path::PathBuf;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it stopped, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL names no place.
    #[error("{url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object store answered with an error, or not at all.
    #[error("cannot {doing}: {source}")]
    Store {
        /// What was being done, and with which object.
        doing: String,
        /// What the store said.
        source: object_store::Error,
    },
    /// A file here.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The operating system gives nothing to work with.
    #[error("cannot start: {source}")]
    Threads {
        /// What it said.
        source: std::io::Error,
    },
    /// There is something at the target.
    #[error("{url} is not empty: it holds {held}; give every backup a place of its own")]
    Taken {
        /// The target.
        url: String,
        /// One of the objects there.
        held: String,
    },
    /// There is no backup, or an unfinished one.
    #[error(
        "{url} holds no backup: no such place, or no BACKUP.json in it, which a finished backup has"
    )]
    NoBackup {
        /// Where it was looked for.
        url: String,
    },
    /// What is there is not what was backed up.
    #[error("the backup is damaged: {what}")]
    Damaged {
        /// Which object, and in which way.
        what: String,
    },
    /// The backup was made by a later version.
    #[error("the backup has format version {found}, this build knows version {known}")]
    Version {
        /// Of the backup.
        found: u64,
        /// Of this build.
        known: u64,
    },
    /// The database itself.
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
