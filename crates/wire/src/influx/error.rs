//! What is wrong with a line, in InfluxDB's words where it has some.

use crate::intake::Reason;
use crate::series_name::NameError;

/// Why a line is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// Nothing before the tags or the first space.
    #[error("missing measurement")]
    NoMeasurement,
    /// A tag without a name.
    #[error("missing tag key")]
    NoTagKey,
    /// A tag without a value.
    #[error("missing tag value")]
    NoTagValue,
    /// No field.
    #[error("missing fields")]
    NoFields,
    /// A field without a name.
    #[error("missing field key")]
    NoFieldKey,
    /// A field without a value.
    #[error("missing field value")]
    NoFieldValue,
    /// A value that is none of the kinds there are.
    #[error("invalid field value")]
    BadValue,
    /// NaN or infinity, or a number that does not fit.
    #[error("invalid number")]
    BadNumber,
    /// A text without its closing quote.
    #[error("unbalanced quotes")]
    OpenQuotes,
    /// Something other than a time where it should stand.
    #[error("bad timestamp")]
    BadTimestamp,
    /// A time that milliseconds cannot hold.
    #[error("time outside range")]
    TimeOutsideRange,
    /// More bytes than a line may have.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// Tags that make no name of a series.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Bad {
    /// As it is counted.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::BadValue | Self::BadNumber => Reason::Value,
            Self::BadTimestamp | Self::TimeOutsideRange => Reason::Timestamp,
            Self::TooLong(_) => Reason::Long,
            Self::Name(_) => Reason::Name,
            _ => Reason::Syntax,
        }
    }
}
