//! What a compaction rule does, as data: the log, the series files and readers
//! of rules share it. Pure. Tested with the records that hold it.

use latewood_model::Aggregator;
use std::sync::Arc;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// How the samples of a bucket become one.
    pub aggregator: Aggregator,
    /// Width of a bucket in milliseconds, above 0.
    pub bucket_ms: i64,
    /// Any boundary between two buckets, in milliseconds.
    pub align: i64,
}

/// A rule as its source tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The key of the destination.
    pub destination: Arc<[u8]>,
    /// What it does.
    pub spec: RuleSpec,
}
