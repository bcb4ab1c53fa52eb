//! Errors of the syntax and of types, with their positions.

use crate::span::{self, Span};

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: parse error: {text}")]
pub struct ParseError {
    /// What is wrong.
    pub text: String,
    /// Where it is.
    pub span: Span,
    /// Line and column, from 1, as text.
    place: String,
}

impl ParseError {
    pub(crate) fn new(query: &str, span: Span, text: impl Into<String>) -> Self {
        let place = span::place(query, span.start);
        let text = text.into();
        Self { text, span, place }
    }
}
