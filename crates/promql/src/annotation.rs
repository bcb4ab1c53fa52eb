//! What a result says beside its values: warnings and information, with positions.
//!
//! Texts are those of Prometheus, since clients show and match them. The same text at another
//! position is another annotation; the same one is kept once.

use crate::span::Span;
use std::collections::BTreeSet;

/// How serious an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The result is probably not what was meant.
    Warning,
    /// The result may not be what was meant.
    Info,
}

/// One annotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Annotation {
    /// Warning or information.
    pub level: Level,
    /// The text without its position, with its prefix (`PromQL warning: ...`).
    pub text: String,
    /// First and last byte of what it is about.
    pub at: (usize, usize),
}

/// The annotations of a query, each once.
#[derive(Clone, Debug, Default)]
pub struct Annotations(BTreeSet<Annotation>);

impl Annotations {
    /// Adds a warning; `text` without its prefix.
    pub fn warn(&mut self, text: impl std::fmt::Display, span: Span) {
        self.add(Level::Warning, format!("PromQL warning: {text}"), span);
    }

    /// Adds information; `text` without its prefix.
    pub fn info(&mut self, text: impl std::fmt::Display, span: Span) {
        self.add(Level::Info, format!("PromQL info: {text}"), span);
    }

    fn add(&mut self, level: Level, text: String, span: Span) {
        let at = (span.start, span.end);
        self.0.insert(Annotation { level, text, at });
    }

    /// Takes in those of another.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All of them, warnings first.
    pub fn iter(&self) -> impl Iterator<Item = &Annotation> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
