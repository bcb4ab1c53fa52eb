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
    /// The log names no checkpoint, and the directory has blocks of one.
    #[error(
        "{} has blocks of a database, and this log never named a checkpoint: the directory is the cache of another log, or the topic was deleted and created again. Nothing was changed. Use another directory, or remove this one if nothing in it is needed",
        dir.display()
    )]
    OtherCache {
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
    /// A newer checkpoint has other bytes for a file that is in use here.
    #[error(
        "{} has other bytes in {listing}: the directory has to be loaded anew", path.display()
    )]
    OtherBytes {
        /// The file.
        path: PathBuf,
        /// The listing of the checkpoint.
        listing: String,
    },
    /// There is no such checkpoint.
    #[error("{why}; lists of files of checkpoints in the store, oldest first: {listings}")]
    NoCheckpoint {
        /// What is wrong with the one that was asked for.
        why: String,
        /// Objects, of which one may be asked for instead.
        listings: String,
    },
    /// The store has objects of another log.
    #[error(
        "the object store has {object} already, of another log: give the new database another \
         name in --log, or another --objects"
    )]
    Taken {
        /// The object.
        object: String,
    },
    /// The store has not the listing that was its newest: it is another one, or was emptied.
    #[error(
        "{object}, the list of files of the newest checkpoint, is gone: the object store is not \
         the one it was (unmounted, emptied, or cleaned by a rule). No checkpoint is saved and \
         the log is kept. Bring the objects back; if they are lost, copy the database with \
         LATEWOOD BACKUP while this server runs"
    )]
    Emptied {
        /// The object.
        object: String,
    },
    /// The store has no such checkpoint.
    #[error(
        "this object store does not hold the checkpoint that the log names, {object}: the address in \
         --objects may be that of another store, bucket or folder; if it is right, the object was \
         deleted. Correct --objects, or bring the object back"
    )]
    NotHere {
        /// Its list of files.
        object: String,
    },
    /// A file that only the store has is not there.
    #[error(
        "{object} is missing or has another length, and its file is not on this machine, or not \
         verified yet. No checkpoint is saved and the log is kept. Bring the object back"
    )]
    Lost {
        /// The object.
        object: String,
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
        match self {
            Self::Store(error) => error.is_damage(),
            Self::NotHere { .. } => true,
            _ => false,
        }
    }
}

impl From<latewood_engine::Error> for CheckpointError {
    fn from(error: latewood_engine::Error) -> Self {
        Self::Store(error.into())
    }
}
