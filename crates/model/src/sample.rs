//! A sample, its timestamp, and the id of its series.

/// Milliseconds since the Unix epoch.
///
/// Clients may only write non-negative timestamps; the codecs take the whole
/// range of `i64`.
pub type Timestamp = i64;

/// One measurement: a timestamp in milliseconds and a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it was measured, milliseconds since the Unix epoch.
    pub timestamp: Timestamp,
    /// The measured value; every bit pattern is kept.
    pub value: f64,
}

impl Sample {
    /// A sample of `value` at `timestamp`.
    pub const fn new(timestamp: Timestamp, value: f64) -> Self {
        Self { timestamp, value }
    }
}

/// The number of a series inside one database: dense, stable across restarts,
/// never given to another series. Below 2^[`SeriesId::BITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u64);

impl SeriesId {
    /// The width of an id in files and in the log.
    pub const BITS: u32 = 48;
    /// The largest id.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);

    /// The series with this number, if it is one.
    #[inline]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 {
            Some(Self(number))
        } else {
            None
        }
    }
}

/// Who made a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MadeBy {
    /// Its first sample, from a sender: a line protocol, OTLP, Prometheus.
    Sender = 0,
    /// A command that creates series, such as TS.CREATE, COPY and RESTORE.
    Create = 1,
    /// A command that adds samples, such as TS.ADD.
    Add = 2,
    /// A recording rule or an alert of the server.
    Rule = 3,
}

impl MadeBy {
    /// All makers.
    pub const ALL: [Self; 4] = [Self::Sender, Self::Create, Self::Add, Self::Rule];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Create => "create",
            Self::Add => "add",
            Self::Rule => "rule",
        }
    }

    /// The maker with this number, as files have it.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Sender),
            1 => Some(Self::Create),
            2 => Some(Self::Add),
            3 => Some(Self::Rule),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stays_two_words() {
        // Tails, runs and memory accounting count on sixteen bytes.
        assert_eq!(size_of::<Sample>(), 16);
    }
}
