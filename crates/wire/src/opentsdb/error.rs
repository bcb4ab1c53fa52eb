//! Errors of points, with OpenTSDB's texts.

use crate::intake::Reason;

/// Why a point is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// A line with fewer words than a point has.
    #[error("not enough arguments (need least 4, got {0})")]
    TooFewWords(usize),
    /// `null`, or not an object.
    #[error("no datapoint")]
    NoPoint,
    /// No metric.
    #[error("empty metric name")]
    NoMetric,
    /// No value.
    #[error("empty value")]
    NoValue,
    /// No tags.
    #[error("Missing tags")]
    NoTags,
    /// A timestamp that is not positive, or after the year 2286.
    #[error("invalid timestamp: {0}")]
    Timestamp(String),
    /// A timestamp that is not a number.
    #[error("Invalid character in timestamp {0}")]
    TimestampSyntax(String),
    /// A value that is not a number.
    #[error("For input string: \"{0}\"")]
    ValueSyntax(String),
    /// NaN, infinity, or a number that overflows to it.
    #[error("value is NaN or Infinite: {0}")]
    NotFinite(String),
    /// A tag other than `name=value`.
    #[error("invalid tag: {0}")]
    Tag(String),
    /// The same tag twice with two values.
    #[error("duplicate tag: {0}")]
    DuplicateTag(String),
    /// An invalid series name.
    #[error("{0}")]
    Name(crate::series_name::NameError),
}

impl PointError {
    /// The text that OpenTSDB puts before it on a telnet connection.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TimestampSyntax(_) | Self::ValueSyntax(_) => "invalid value",
            _ => "illegal argument",
        }
    }

    /// The reason, as counted in metrics.
    pub fn reason(&self) -> Reason {
        match self {
            Self::TooFewWords(_) | Self::NoPoint => Reason::Syntax,
            Self::NoValue | Self::ValueSyntax(_) | Self::NotFinite(_) => Reason::Value,
            Self::Timestamp(_) | Self::TimestampSyntax(_) => Reason::Timestamp,
            _ => Reason::Name,
        }
    }
}

/// Most bytes of a sender's text in an error.
const QUOTED_BYTES_MAX: usize = 128;

/// A sender's text in an error: truncated, without control characters.
pub(super) fn quoted(text: &[u8]) -> String {
    let cut = &text[..text.len().min(QUOTED_BYTES_MAX)];
    let text = String::from_utf8_lossy(cut);
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
