//! Errors of lines, with InfluxDB's texts where it has them.

use crate::intake::Reason;
use crate::series_name::NameError;

/// Why a line is refused.
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
    /// A tag value with an unescaped equals sign.
    #[error("invalid tag format: unescaped '=' in a tag value")]
    TagFormat,
    /// No field.
    #[error("missing fields")]
    NoFields,
    /// A field without a name.
    #[error("missing field key")]
    NoFieldKey,
    /// A field without a value.
    #[error("missing field value")]
    NoFieldValue,
    /// A value of unknown type.
    #[error("invalid field value")]
    BadValue,
    /// NaN, infinity, or a number out of range.
    #[error("invalid number")]
    BadNumber,
    /// A string without its closing quote.
    #[error("unbalanced quotes")]
    OpenQuotes,
    /// An invalid timestamp.
    #[error("bad timestamp")]
    BadTimestamp,
    /// A time out of the range of milliseconds.
    #[error("time outside range")]
    TimeOutsideRange,
    /// The line is too long.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// Tags that do not form a series name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Bad {
    /// The reason, as counted in metrics.
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
