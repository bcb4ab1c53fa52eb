//! The fate of a sample: what a series did with it.
//!
//! Statistics, replies, rules and listeners depend on it. Tested with the series.

use crate::base::refusal::Refusal;
use crate::observe::stages::Stage;
use latewood_model::Timestamp;

/// What a series did with a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// Newer than all samples before it.
    InOrder,
    /// Late, and kept in the tail. It may have replaced another sample.
    Late,
    /// Late, and kept among the late operations.
    Staged,
    /// A sample existed at its timestamp; the policy decided.
    Duplicate,
    /// Dropped by the IGNORE rule; the reply is the newest timestamp.
    Ignored(Timestamp),
    /// Not kept.
    Refused(Refusal),
}

impl Fate {
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::InOrder | Self::Ignored(_) => Stage::SampleAppend,
            Self::Late | Self::Staged => Stage::LateStaging,
            Self::Duplicate | Self::Refused(Refusal::Duplicate) => Stage::DuplicateCheck,
            Self::Refused(_) => Stage::SampleAppend,
        }
    }
}
