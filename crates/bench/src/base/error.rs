//! What can go wrong in a measurement: a sentence that says what was being done. None is matched on.

use std::fmt::Display;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a measurement stopped.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error(text.into())
    }
}

/// Adds to an error what was being done.
pub(crate) trait Doing<T> {
    /// Turns the error into one that names `doing`.
    fn doing(self, doing: impl Display) -> Result<T>;
}

impl<T, E: Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| Error(format!("{doing}: {error}")))
    }
}
