//! The options of a series.

use crate::limits::{CHUNK_SIZE_BYTES_DEFAULT, CHUNK_SIZE_BYTES_MAX, CHUNK_SIZE_BYTES_MIN};
use crate::{DuplicatePolicy, Labels, named};

named! {
    /// How the chunks of a series are stored.
    #[derive(Default)]
    pub enum Encoding {
        /// The smallest coding that keeps every bit.
        #[default]
        Compressed = 0 => "compressed",
        /// Sixteen bytes a sample.
        Uncompressed = 1 => "uncompressed",
    }
}

/// The IGNORE rule: under LAST, a newer sample this close to the newest one
/// is dropped, and the reply is the newest timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ignore {
    /// Largest difference in time, milliseconds; 0 turns the rule off unless
    /// `max_value_diff` is above 0.
    pub max_time_diff_ms: u64,
    /// Largest difference in value, not negative.
    pub max_value_diff: f64,
}

/// The options of a series, as CREATE and ALTER set them.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesOptions {
    /// Samples older than the newest by more than this are dropped; 0 keeps all.
    pub retention_ms: u64,
    /// Bytes a chunk is filled to: 48 to 1,048,576, a multiple of 8.
    pub chunk_size_bytes: u32,
    /// Compressed or not.
    pub encoding: Encoding,
    /// The series' own policy; `None` follows the server's.
    pub duplicate_policy: Option<DuplicatePolicy>,
    /// The IGNORE rule.
    pub ignore: Ignore,
    /// The labels.
    pub labels: Labels,
}

/// Why a set of options was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// CHUNK_SIZE out of its range.
    #[error(
        "CHUNK_SIZE value must be a multiple of 8 in the range [{CHUNK_SIZE_BYTES_MIN} .. {CHUNK_SIZE_BYTES_MAX}]"
    )]
    ChunkSize,
    /// A negative or NaN IGNORE difference.
    #[error("IGNORE arguments cannot be negative")]
    Ignore,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        Self {
            retention_ms: 0,
            chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
            encoding: Encoding::Compressed,
            duplicate_policy: None,
            ignore: Ignore::default(),
            labels: Labels::default(),
        }
    }
}

impl SeriesOptions {
    /// Checks that all options are in their ranges.
    ///
    /// # Errors
    /// The first option that is not.
    pub fn check(&self) -> Result<(), OptionsError> {
        let size = self.chunk_size_bytes;
        if !(CHUNK_SIZE_BYTES_MIN..=CHUNK_SIZE_BYTES_MAX).contains(&size) || !size.is_multiple_of(8)
        {
            return Err(OptionsError::ChunkSize);
        }
        if self.ignore.max_value_diff.is_nan() || self.ignore.max_value_diff < 0.0 {
            return Err(OptionsError::Ignore);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_pass_and_bad_chunk_sizes_do_not() {
        let mut options = SeriesOptions::default();
        assert_eq!(options.check(), Ok(()));
        for size in [0, 40, 49, CHUNK_SIZE_BYTES_MAX + 8] {
            options.chunk_size_bytes = size;
            assert_eq!(options.check(), Err(OptionsError::ChunkSize));
        }
    }

    #[test]
    fn negative_ignore_is_refused() {
        for max_value_diff in [-1.0, f64::NAN] {
            let options = SeriesOptions {
                ignore: Ignore {
                    max_time_diff_ms: 0,
                    max_value_diff,
                },
                ..SeriesOptions::default()
            };
            assert_eq!(options.check(), Err(OptionsError::Ignore));
        }
    }
}
