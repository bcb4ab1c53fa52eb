//! Why an import or export stopped, in words for the person at the terminal.

use std::fmt::Display;
use std::io;

/// Result of everything in this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Nobody answered, or not like a Redis server.
    #[error("cannot talk to {server}: {reason}")]
    Connect { server: String, reason: String },
    /// The connection broke while it was in use.
    #[error("the connection to {server} broke: {reason}")]
    Cut { server: String, reason: String },
    /// The server refused a command that must work.
    #[error("{server} refused {command}: {text}")]
    Refused {
        server: String,
        command: String,
        text: String,
    },
    /// The server answered something this program cannot read.
    #[error("{server} answered {command} in a shape that is not understood")]
    Reply { server: String, command: String },
    /// A file.
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    /// Anything else, already a sentence.
    #[error("{0}")]
    Failed(String),
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

/// A key or label as text: printable ASCII as it is, everything else escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}
