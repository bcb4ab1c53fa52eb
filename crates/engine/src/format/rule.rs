//! The definition of a compaction rule, shared by the log, the series files and the
//! readers of rules. Pure. Tested with the records that hold it.

use latewood_model::Aggregator;
use std::sync::Arc;

/// The definition of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// How the samples of a bucket are aggregated.
    pub aggregator: Aggregator,
    /// Width of a bucket in milliseconds, above 0.
    pub bucket_ms: i64,
    /// Any boundary between two buckets, in milliseconds.
    pub align: i64,
}

/// A rule as its source reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The key of the destination.
    pub destination: Arc<[u8]>,
    /// The definition of the rule.
    pub spec: RuleSpec,
}
