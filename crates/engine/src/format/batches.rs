//! Batches of samples: the trait of their sources, and what a source knows of a
//! batch without decoding it. Pure.

use crate::base::error::Result;

/// What a source knows of its next batch without decoding it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchStats {
    /// Oldest timestamp.
    pub first: i64,
    /// Newest timestamp.
    pub last: i64,
    /// Number of samples, NaN included; above 0.
    pub count: u64,
    /// Number of NaN samples.
    pub nan_count: u64,
    /// Smallest value that is not NaN; unused if all values are NaN.
    pub min: f64,
    /// Largest value that is not NaN; unused if all values are NaN.
    pub max: f64,
    /// Sum of the values that are not NaN, as exact as compensated summation.
    pub sum: f64,
    /// Rounding error of `sum`; 0 if unknown.
    pub lost: f64,
    /// Whether all values are whole numbers, and none of them -0.0; `None` where that is not known.
    pub is_whole: Option<bool>,
}

/// A source of a query's samples.
///
/// Batches ascend in time and do not overlap. In a reversed query the batches
/// descend, but each one still ascends inside. A timestamp occurs once. A batch may
/// reach beyond the query's span; the query drops what lies outside.
pub trait Source {
    /// Clears both vectors and fills them, equally long, with the next batch.
    /// Returns `false`, with both empty, at the end. A batch may be empty.
    ///
    /// # Errors
    /// If stored samples cannot be read.
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool>;

    /// What is known of the batch that [`Source::next`] would return, or `None` if
    /// nothing is known. Must be cheap; it may be called more than once.
    fn peek_stats(&mut self) -> Option<BatchStats> {
        None
    }

    /// Appends the statistics of the parts of the batch that [`Source::peek_stats`]
    /// just described, in their order. Each part ends at the timestamp that
    /// `last_of` returns for its first one. Returns `false` and appends nothing if
    /// this is no cheaper than [`Source::next`].
    ///
    /// # Errors
    /// If stored samples cannot be read.
    fn parts(&mut self, _last_of: &dyn Fn(i64) -> i64, _out: &mut Vec<BatchStats>) -> Result<bool> {
        Ok(false)
    }

    /// Splits the batch that [`Source::peek_stats`] just described: `true` if it is
    /// now several smaller batches, which `peek_stats` may describe in turn.
    ///
    /// # Errors
    /// If stored samples cannot be read.
    fn split(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Skips the batch that [`Source::peek_stats`] just described. Called only
    /// after `peek_stats` returned `Some`.
    fn skip(&mut self) {}
}
