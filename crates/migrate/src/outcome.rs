//! How a run that was not stopped by an error ends.

/// Whether everything asked for was carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Both sides agree.
    Complete,
    /// The summary names what is missing or differs.
    Incomplete,
}
