//! The error type of the engine: a kind for programs and a message for people.
//!
//! Refusals of single samples are not errors but [`crate::Refusal`]s. An
//! [`Error`] means that an operation failed. Tested through the database.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The kind of a failure, which tells a caller how to react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored bytes fail their checksum or break an invariant.
    Corrupt,
    /// Stored bytes end too early.
    Truncated,
    /// A format or version that this build does not support.
    Unsupported,
    /// A limit was exceeded.
    Limit,
    /// A system call failed.
    Io,
    /// A file is not on this machine, and could not be fetched, or this thread must not wait for
    /// it: the same call may succeed later.
    Away,
    /// An earlier failed write or sync stopped all writes; reads continue. Or the database follows
    /// the log of another, and takes none. Of a call that writes: nothing of it is in the log.
    Halted,
    /// The log was lost while the call wrote, or before what was written was durable: nobody knows
    /// whether it is kept, or a part of it. The same call may write it a second time.
    Unknown,
    /// The database follows the log of another and does not have the answer yet; the owner of the
    /// log has it.
    AtOwner,
    /// The memory budget is used up: writes are refused until memory is free.
    OutOfMemory,
    /// The disk budget is used up: writes are refused until old samples are removed.
    DiskBudget,
    /// A remote log takes no more for now: writes are refused until it does.
    LogFull,
    /// Another process holds the directory.
    Locked,
    /// No series exists under the key.
    NoSuchKey,
    /// A series already exists under the key.
    KeyExists,
    /// The compaction rule does not exist.
    NoSuchRule,
    /// The request is invalid.
    Invalid,
}

/// A failed operation. One machine word, so that a `Result` is small.
#[derive(Debug)]
pub struct Error(Box<Failure>);

#[derive(Debug)]
struct Failure {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<io::Error>,
}

/// The result of engine operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` with the text `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            kind,
            message: message.into(),
            path: None,
            source: None,
        }))
    }

    /// A failed system call on `path` while doing `what`.
    #[cold]
    pub fn io(what: &str, path: &Path, source: io::Error) -> Self {
        Self::caused(ErrorKind::Io, what, path, source)
    }

    /// A file that is not on this machine, and why it cannot be read now.
    #[cold]
    pub(crate) fn away(path: &Path, source: io::Error) -> Self {
        Self::caused(
            ErrorKind::Away,
            "a block is not on this machine",
            path,
            source,
        )
    }

    /// A file that is not on this machine, and missing or wrong where it is kept.
    #[cold]
    pub(crate) fn lost(path: &Path, source: io::Error) -> Self {
        Self::caused(ErrorKind::Corrupt, "a block is lost", path, source)
    }

    fn caused(kind: ErrorKind, what: &str, path: &Path, source: io::Error) -> Self {
        Self(Box::new(Failure {
            kind,
            message: what.to_owned(),
            path: Some(path.to_owned()),
            source: Some(source),
        }))
    }

    /// Adds the path of the file concerned.
    #[cold]
    pub fn at(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// The same unless it names a file.
    #[cold]
    pub(crate) fn or_at(mut self, path: impl FnOnce() -> PathBuf) -> Self {
        self.0.path.get_or_insert_with(path);
        self
    }

    /// The file concerned, if it names one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The same of a call that had written something before: it may be kept, or may not be.
    #[cold]
    pub(crate) fn amid_write(mut self) -> Self {
        if self.0.kind == ErrorKind::Halted {
            self.0.kind = ErrorKind::Unknown;
        }
        self
    }

    /// Whether the cause is a missing file.
    pub fn is_not_found(&self) -> bool {
        let source = self.0.source.as_ref();
        source.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the cause is a file system, or the part of it that this user may have, that is full.
    pub fn is_disk_full(&self) -> bool {
        let source = self.0.source.as_ref().map(io::Error::kind);
        matches!(
            source,
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        )
    }

    /// Whether stored bytes are invalid, as opposed to unreadable.
    pub fn is_damage(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Corrupt | ErrorKind::Truncated)
    }

    /// Whether a file is not on this machine: the same call may succeed later.
    pub fn is_away(&self) -> bool {
        self.0.kind == ErrorKind::Away
    }

    /// Whether a file is lost where it is kept, which may be mended there.
    pub fn is_lost(&self) -> bool {
        let source = self.0.source.as_ref();
        self.is_damage() && source.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(path) = &self.0.path {
            write!(f, " ({})", path.display())?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_ref();
        source.map(|error| error as _)
    }
}
