//! The result of a run without an error.

/// Whether everything was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Both sides agree.
    Complete,
    /// The summary lists what is missing or differs.
    Incomplete,
}
