//! The one error of the engine: a kind to act on and a sentence to read.
//!
//! Refusals of single samples are not errors of the engine; they travel as
//! [`crate::Refusal`]. An [`Error`] says that an operation did not happen.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What sort of failure it is: what a caller may do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored bytes fail their checksum or break an invariant.
    Corrupt,
    /// Stored bytes end too early.
    Truncated,
    /// A format or version this build does not know.
    Unsupported,
    /// A limit of `latewood_model::limits` was hit.
    Limit,
    /// The operating system refused.
    Io,
    /// An earlier failed write or sync stopped all writes; reads go on.
    Halted,
    /// The memory budget is spent: writes are refused until some is free.
    OutOfMemory,
    /// The disk budget is spent: writes are refused until old samples are gone.
    DiskBudget,
    /// Another process holds the directory.
    Locked,
    /// The key holds no series.
    NoSuchKey,
    /// The key already holds a series.
    KeyExists,
    /// There is no such compaction rule.
    NoSuchRule,
    /// The request makes no sense.
    Invalid,
}

/// A failed operation. One word, so that results which nearly always succeed
/// are small.
#[derive(Debug)]
pub struct Error(Box<Failure>);

#[derive(Debug)]
struct Failure {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<io::Error>,
}

/// What engine operations return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that reads `message`.
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
        Self(Box::new(Failure {
            kind: ErrorKind::Io,
            message: what.to_owned(),
            path: Some(path.to_owned()),
            source: Some(source),
        }))
    }

    /// The same error, naming the file it is about.
    #[cold]
    pub fn at(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// Whether it is a file that is not there.
    pub fn is_not_found(&self) -> bool {
        let source = self.0.source.as_ref();
        source.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it is about what stored bytes hold, not about reading them.
    pub fn is_damage(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Corrupt | ErrorKind::Truncated)
    }

    /// What a caller may do about it.
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
