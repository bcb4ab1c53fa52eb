//! What became of a sample: the answer of a series to whoever brought one.
//!
//! The database counts by it, replies by it, and tells rules and listeners
//! by it. Tested with the series.

use crate::base::refusal::Refusal;
use crate::observe::stages::Stage;
use latewood_model::Timestamp;

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// Newer than all before.
    InOrder,
    /// Older, and kept in the tail. It may have taken the place of another.
    Late,
    /// Older, and kept among the late operations.
    Staged,
    /// It met a sample at its timestamp and was resolved by policy.
    Duplicate,
    /// Dropped by the IGNORE rule; answered with the newest timestamp.
    Ignored(Timestamp),
    /// Not kept.
    Refused(Refusal),
}

impl Fate {
    /// Whether something among what there was before is another now.
    pub(super) fn is_change(self) -> bool {
        matches!(self, Self::Late | Self::Staged | Self::Duplicate)
    }

    /// The stage of the write that decided it.
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::InOrder | Self::Ignored(_) => Stage::SampleAppend,
            Self::Late | Self::Staged => Stage::LateStaging,
            Self::Duplicate | Self::Refused(Refusal::Duplicate) => Stage::DuplicateCheck,
            Self::Refused(_) => Stage::SampleAppend,
        }
    }
}
