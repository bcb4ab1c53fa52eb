//! What can go wrong in a measurement, in words for the person at the terminal.
//!
//! The bench is a tool for people: every error says what was being done, and none is matched on.

use std::fmt::Display;
use std::io;

/// Result of everything in this program.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a measurement stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{doing}: {source}")]
    Io {
        /// What the program was doing, as in "connect to 127.0.0.1:6379".
        doing: String,
        source: io::Error,
    },
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// An error made of a sentence.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error::Failed(text.into())
    }
}

/// Adds to an I/O error what was being done.
pub(crate) trait Doing<T> {
    /// Turns the error into one that names `doing`.
    fn doing(self, doing: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| Error::Io {
            doing: doing.to_string(),
            source: error.into(),
        })
    }
}
