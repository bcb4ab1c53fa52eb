//! Blocks that a start had to leave out.

use latewood_model::Timestamp;

/// A block that a start had to leave out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBlock {
    /// Its name in the quarantine folder.
    pub kept_as: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it held late samples and deletions, not the base.
    pub is_late: bool,
    /// Series it had something of.
    pub series: u64,
    /// Samples in it.
    pub samples: u64,
    /// The oldest timestamp in it.
    pub first: Timestamp,
    /// The newest timestamp in it.
    pub last: Timestamp,
}
