//! Errors of the syntax and of types, with their positions.

use crate::span::Span;

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
        let before = query.as_bytes().get(..span.start);
        let place = match before {
            _ if query.is_empty() => "unknown position".to_owned(),
            None => "invalid position".to_owned(),
            Some(before) => {
                let lines = before.iter().filter(|byte| **byte == b'\n').count();
                let line_start = before.iter().rposition(|byte| *byte == b'\n');
                let column = span.start - line_start.map_or(0, |at| at + 1) + 1;
                format!("{}:{column}", lines + 1)
            }
        };
        let text = text.into();
        Self { text, span, place }
    }
}
