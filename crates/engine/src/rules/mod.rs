//! Compaction rules at work: linking two series, recomputing dirty buckets, and what
//! cannot be computed. [`crate::series::rules`] holds what a source knows of them.
//!
//! Tested by `tests/db_rules` and the model test.

pub(crate) mod compute;
pub(crate) mod failed;
pub(crate) mod latest;
pub(crate) mod link;
pub(crate) mod picked;
pub(crate) mod policy;
pub(crate) mod recompute;
