//! Why a checkpoint was not saved, loaded or swept.

use std::path::PathBuf;

/// The result of a call.
pub type Result<T> = std::result::Result<T, CheckpointError>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The object store, an object or a local file.
    #[error(transparent)]
    Store(#[from] latewood_offsite::Error),
    /// A name that cannot be part of the name of an object.
    #[error(
        "invalid cluster name {name:?}: at most 100 of the characters a-z, A-Z, 0-9, '.', '_' and '-', of which the first is no '.'"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The directory belongs to a database with a local log.
    #[error(
        "{} has a log of its own: it is the directory of a server that keeps its log on the local disk, and is not replaced by a checkpoint; use another directory",
        dir.display()
    )]
    LocalLog {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory is in use.
    #[error("{} is in use by another process", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// A folder to be saved is no database.
    #[error("{} has no FORMAT: it is not the checkpoint of a database", folder.display())]
    NoDatabase {
        /// The folder.
        folder: PathBuf,
    },
    /// A file changed while it was uploaded.
    #[error("{} changed while it was uploaded", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The checkpoint is one of another tablet.
    #[error("{listing} is a checkpoint of tablet {tablet} of cluster {cluster:?}, not of this one")]
    OtherTablet {
        /// Its listing.
        listing: String,
        /// Whose it is.
        cluster: String,
        /// Whose it is.
        tablet: u32,
    },
}

impl CheckpointError {
    /// Whether the same call may succeed later, after a pause. Else somebody has to
    /// do something: wrong bytes, a missing object, missing rights, local files.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_temporary())
    }

    /// Whether an object is missing or has other bytes than it should.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_damage())
    }
}

impl From<latewood_engine::Error> for CheckpointError {
    fn from(error: latewood_engine::Error) -> Self {
        Self::Store(error.into())
    }
}
