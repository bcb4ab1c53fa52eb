//! Errors that stop an import or export, as shown on the terminal.

use std::fmt::Display;
use std::io;

/// Result of everything in this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No server, or not one that speaks RESP.
    #[error("cannot connect to {server}: {reason}")]
    Connect { server: String, reason: String },
    /// The connection was lost.
    #[error("connection to {server} lost: {reason}")]
    Cut { server: String, reason: String },
    /// The server refused a command that must succeed.
    #[error("{server} refused {command}: {text}")]
    Refused {
        server: String,
        command: String,
        text: String,
    },
    /// A reply of unknown format.
    #[error("unexpected reply of {server} to {command}")]
    Reply { server: String, command: String },
    /// A file error.
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

/// Adds the failed action to an I/O error.
pub(crate) trait Doing<T> {
    /// The error with `doing` as the action.
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
