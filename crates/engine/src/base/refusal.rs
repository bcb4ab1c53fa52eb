//! Why a sample was refused, with the text that the sender receives.
//!
//! A refusal concerns one sample of a batch; an [`Error`] fails a whole call.
//! Every refusal is reported to the sender.
//!
//! Tested by the tests of the database and, word by word, by those of the
//! protocols.

use crate::base::error::{Error, ErrorKind};

/// Why a sample was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No series exists under the key, and the call does not create one.
    #[error("the key does not exist")]
    NoSuchKey,
    /// The duplicate policy refuses the sample.
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
    /// An increment older than the newest sample.
    #[error("timestamp must be equal to or higher than the maximum existing timestamp")]
    OlderThanNewest,
    /// An increment by NaN, or one whose sum is NaN.
    #[error("cannot increment/decrement NaN value")]
    SumIsNan,
    /// The series was removed or renamed since it was resolved.
    #[error("the series was removed or renamed since it was resolved")]
    StaleSeries,
    /// Somebody has the series for itself ([`crate::Db::own`]).
    #[error("the series is written by a rule, and by nobody else")]
    Owned,
    /// The memory budget does not allow another series.
    #[error("the memory budget does not allow another series")]
    OutOfMemory,
    /// A limit was exceeded.
    #[error("{0}")]
    Limit(Excess),
    /// The stored samples of the series cannot be read or decoded.
    #[error("the stored samples of the series cannot be read")]
    Damaged,
    /// The stored samples of the series are not on this machine yet: sent again later, the sample
    /// may be taken.
    #[error("the stored samples of the series are not on this machine yet")]
    Away,
}

/// The limit that a key or a series exceeds.
///
/// One machine word, as is a [`Refusal`]: an outcome is two words and is returned
/// in registers. A larger outcome, written to memory in parts and read as a
/// whole, would stall on every write before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u64)]
pub enum Excess {
    /// The key is too long.
    #[error("a key is longer than 65536 bytes")]
    KeyBytes,
    /// Key and labels do not fit a log segment.
    #[error("key and labels do not fit a log segment")]
    LogBytes,
    /// The maximum number of series is reached.
    #[error("there are as many series as max-series allows")]
    Series,
    /// All series ids are in use.
    #[error("the database is full of series")]
    SeriesIds,
}

impl Refusal {
    /// The refusal of a sample whose series cannot be read for this reason.
    #[cold]
    pub(crate) fn unread(error: &Error) -> Self {
        if error.is_away() {
            Self::Away
        } else {
            Self::Damaged
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::OutOfMemory => ErrorKind::OutOfMemory,
            Refusal::Limit(_) => ErrorKind::Limit,
            Refusal::Away => ErrorKind::Away,
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
