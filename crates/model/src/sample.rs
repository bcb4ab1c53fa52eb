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
/// never given to another series while the log that names it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stays_two_words() {
        // Tails, runs and memory accounting count on sixteen bytes.
        assert_eq!(size_of::<Sample>(), 16);
    }
}
