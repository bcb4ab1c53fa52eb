//! Why a file or payload cannot be read.

use std::io;

/// Why a file or payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes end too early.
    #[error("the data ends at byte {0}, in the middle of a value")]
    Truncated(u64),
    /// The checksum at the end is not that of the bytes.
    #[error("the checksum is not that of the bytes")]
    Checksum,
    /// The bytes are not what the format says.
    #[error("{what}, before byte {at}")]
    Damaged {
        /// What is wrong.
        what: String,
        /// The number of bytes read so far.
        at: u64,
    },
    /// A series that is longer than any may be; what follows it can be read.
    #[error("{0}")]
    Limit(String),
    /// A value of Redis that is not a series.
    #[error("a value of type {0} is not a time series")]
    OtherType(String),
}

/// What reading gives.
pub type Result<T> = std::result::Result<T, Error>;
