//! Why a sample was not kept, in the words that the sender is told.
//!
//! A refusal names one sample's fate and leaves the others of its batch alone;
//! an [`Error`] stops a whole call. Every refusal is answered, none is silent.
//!
//! Tested by the tests of the database and, word by word, by those of the
//! protocols.

use crate::base::error::{Error, ErrorKind};

/// Why a sample was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key holds no series and none was to be created.
    #[error("the key does not exist")]
    NoSuchKey,
    /// The duplicate policy refuses it.
    #[error(
        "Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM"
    )]
    Duplicate,
    /// Older than the newest sample by more than the retention.
    #[error("Timestamp is older than retention")]
    OlderThanRetention,
    /// Older than [`crate::Db::floor`].
    #[error("Timestamp is older than what this database still keeps")]
    OlderThanFloor,
    /// A negative timestamp.
    #[error("invalid timestamp, must be a nonnegative integer")]
    InvalidTimestamp,
    /// An increment before the newest sample.
    #[error("timestamp must be equal to or higher than the maximum existing timestamp")]
    OlderThanNewest,
    /// An increment of NaN, or one that would make it.
    #[error("cannot increment/decrement NaN value")]
    SumIsNan,
    /// The series was removed or renamed since it was resolved.
    #[error("the series was removed or renamed since it was resolved")]
    StaleSeries,
    /// The memory budget has no room for another series.
    #[error("the memory budget has no room for another series")]
    OutOfMemory,
    /// A limit was hit.
    #[error("{0}")]
    Limit(Excess),
    /// What is stored of the series does not decode.
    #[error("the stored samples of the series are damaged")]
    Damaged,
}

/// The limit that a key or a series is beyond.
///
/// A word wide: so is a [`Refusal`], and an outcome is two words, which a call
/// hands back in registers. Written to memory in parts and read as a whole, it
/// would wait for every write before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u64)]
pub enum Excess {
    /// A key has more bytes than one may have.
    #[error("a key is longer than 65536 bytes")]
    KeyBytes,
    /// Key and labels have more bytes than a segment of the log takes.
    #[error("key and labels do not fit a log segment")]
    LogBytes,
    /// As many series as the database's own limit allows are there.
    #[error("there are as many series as max-series allows")]
    Series,
    /// Every series id is taken.
    #[error("the database is full of series")]
    SeriesIds,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::OutOfMemory => ErrorKind::OutOfMemory,
            Refusal::Limit(_) => ErrorKind::Limit,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use crate::Outcome;

    #[test]
    fn an_outcome_takes_two_words() {
        assert_eq!(size_of::<Outcome>(), 16);
    }
}
