//! Blocks that a start left out.

use latewood_model::Timestamp;

/// A block that a start left out because it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBlock {
    /// Its name in the quarantine folder.
    pub kept_as: String,
    /// The damage.
    pub reason: String,
    /// Whether it is a late block, with late samples and deletions, not a base
    /// block.
    pub is_late: bool,
    /// The partition of its series.
    pub partition: u32,
    /// Number of series in it.
    pub series: u64,
    /// Number of samples in it.
    pub samples: u64,
    /// The oldest timestamp in it.
    pub first: Timestamp,
    /// The newest timestamp in it.
    pub last: Timestamp,
}
