//! Why evaluations fail.

use crate::source::{Interrupt, SourceError};
use crate::span::Span;

/// Why an evaluation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// An error of the query, in the words of Prometheus.
    #[error("{0}")]
    Query(String),
    /// An error with the position of what it is about.
    #[error("{text}")]
    At {
        /// The text.
        text: String,
        /// The position.
        span: Span,
    },
    /// The source failed.
    #[error("expanding series: {0}")]
    Source(#[from] SourceError),
    /// The query was ended.
    #[error("{0}")]
    Interrupt(#[from] Interrupt),
    /// Too many samples at a time.
    #[error("query processing would load too many samples into memory in query execution")]
    Samples,
    /// Too much memory at a time.
    #[error("query needs more than {0} bytes of memory; narrow the selectors or the range")]
    Memory(usize),
    /// Too much memory of all queries together.
    #[error("the queries under way hold all the memory for queries")]
    Crowded,
}

impl EvalError {}
