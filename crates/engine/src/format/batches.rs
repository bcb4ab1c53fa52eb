//! Samples in batches: where they come from, and what is known of a batch without
//! decoding it. Pure.

use crate::base::error::Result;

/// What a source knows of its next batch without decoding it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchStats {
    /// Oldest timestamp.
    pub first: i64,
    /// Newest timestamp.
    pub last: i64,
    /// Samples, NaN or not; above 0.
    pub count: u64,
    /// Samples that are NaN.
    pub nan_count: u64,
    /// Smallest value that is not NaN; not read where all are.
    pub min: f64,
    /// Largest value that is not NaN; not read where all are.
    pub max: f64,
    /// Sum of the values that are not NaN, as near to the exact one as a
    /// compensated sum comes.
    pub sum: f64,
    /// What `sum` lost when it was rounded to one number; 0 where nobody knows.
    pub lost: f64,
}

/// Where the samples of a query come from.
///
/// Batches ascend in time and do not overlap; for a reversed query they
/// descend, each still ascending inside. A timestamp occurs once. Batches may
/// reach beyond the query's span: what lies outside is dropped.
pub trait Source {
    /// Clears both vectors and fills them, equally long, with the next batch;
    /// `false` (both empty) at the end. A batch may be empty.
    ///
    /// # Errors
    /// Where stored samples cannot be read.
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool>;

    /// What is known of the batch that [`Source::next`] would give, or `None`
    /// where that is nothing. Must be cheap; it may be asked more than once.
    fn peek_stats(&mut self) -> Option<BatchStats> {
        None
    }

    /// Appends what is known of the parts of the batch that
    /// [`Source::peek_stats`] just described, in their order, each up to the
    /// last timestamp that `last_of` its first one gives. `false`, and nothing
    /// appended, where that would be no cheaper than [`Source::next`].
    ///
    /// # Errors
    /// Where stored samples cannot be read.
    fn parts(&mut self, _last_of: &dyn Fn(i64) -> i64, _out: &mut Vec<BatchStats>) -> Result<bool> {
        Ok(false)
    }

    /// Looks closer at the batch that [`Source::peek_stats`] just described:
    /// `true` where it is now smaller ones, which may be described in turn.
    ///
    /// # Errors
    /// Where stored samples cannot be read.
    fn split(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Passes over the batch that [`Source::peek_stats`] just described.
    /// Called only after `peek_stats` gave `Some`.
    fn skip(&mut self) {}
}
