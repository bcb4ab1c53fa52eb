//! Matchers of Prometheus selectors: conditions on the labels of a series.
//!
//! Regular expressions are those of the `regex` crate, anchored at both ends; a dot also matches a
//! line break, as in Prometheus 3. A missing label has the empty value. Remote read sends matchers
//! one by one; the text of a selector is parsed by `latewood-promql`.
//!
//! An expression whose matches can be listed, such as an alternation of literals, is a list and not
//! compiled. Within a request, the same expression is held once.
//!
//! Tested by `selector/tests.rs`.

mod literals;
#[cfg(test)]
mod tests;

use crate::series_name::METRIC;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Bytes of a selector.
pub const SELECTOR_BYTES_MAX: usize = 64 << 10;
/// Matchers of a selector.
pub const MATCHERS_MAX: usize = 128;
/// Compiled regular expressions of a selector, and of a request: a short pattern can take
/// much memory.
pub const PATTERNS_MAX: usize = 64;
/// Bytes of the text of a regular expression: parsing takes a multiple.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Bytes of a compiled regular expression, in steps: a step is tried where the one before does
/// not suffice.
const COMPILED_BYTES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Least and largest bytes of the search cache, between them four times the step.
const CACHE_BYTES: (usize, usize) = (128 << 10, 1 << 20);
/// Bytes of the regular expressions of a request, each as a list of literals, or at its step and with
/// its cache.
pub const PATTERNS_BYTES_MAX: usize = 16 << 20;

/// A condition on the value of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The label's name.
    pub name: Box<[u8]>,
    /// The condition on its value.
    pub test: Test,
}

/// The condition on the value of a label; a missing label has the empty value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `=`
    Equal(Box<[u8]>),
    /// `!=`
    NotEqual(Box<[u8]>),
    /// `=~`
    Match(Pattern),
    /// `!~`
    NotMatch(Pattern),
}

/// A regular expression that must match a whole value.
#[derive(Clone, Debug)]
pub struct Pattern {
    test: Tested,
    text: Arc<str>,
}

/// How a value is tested. Clones share it, with the search cache.
#[derive(Clone, Debug)]
enum Tested {
    /// It is one of these, which are in order.
    Listed(Arc<[Box<[u8]>]>),
    /// A program.
    Compiled(Arc<Regex>),
}

/// Compiles the regular expressions of one request within its bounds.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// What was compiled, by its text.
    known: HashMap<Arc<str>, Pattern>,
    /// How many of them are programs.
    compiled: usize,
    bytes: usize,
}

/// Why a selector is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// More matchers than [`MATCHERS_MAX`].
    #[error("more than {MATCHERS_MAX} matchers")]
    TooMany,
    /// More different regular expressions that are compiled than [`PATTERNS_MAX`].
    #[error("more than {PATTERNS_MAX} regular expressions")]
    TooManyPatterns,
    /// More bytes of them than [`PATTERNS_BYTES_MAX`].
    #[error("the regular expressions take more than {PATTERNS_BYTES_MAX} bytes")]
    LargePatterns,
    /// A regular expression that is invalid or too large.
    #[error("{0}")]
    BadPattern(String),
}

impl Matcher {
    /// A condition on the label `name`.
    pub fn new(name: &[u8], test: Test) -> Self {
        Self {
            name: name.into(),
            test,
        }
    }

    /// Whether a series whose label has `value` passes.
    pub fn passes(&self, value: &[u8]) -> bool {
        match &self.test {
            Test::Equal(wanted) => **wanted == *value,
            Test::NotEqual(unwanted) => **unwanted != *value,
            Test::Match(pattern) => pattern.matches(value),
            Test::NotMatch(pattern) => !pattern.matches(value),
        }
    }

    /// Whether it matches the metric name.
    pub fn is_on_metric(&self) -> bool {
        *self.name == *METRIC
    }
}

impl Patterns {
    /// Compiles a regular expression, or finds it among those before.
    ///
    /// # Errors
    /// `BadPattern`, `TooManyPatterns` and `LargePatterns`.
    pub fn compile(&mut self, text: &str) -> Result<Pattern, SelectorError> {
        if let Some(pattern) = self.known.get(text) {
            return Ok(pattern.clone());
        }
        if text.len() > PATTERN_BYTES_MAX {
            return Err(bad(text, "too large"));
        }
        let (test, took) = match literals::literals(text) {
            Some((listed, took)) => (Tested::Listed(listed.into()), took),
            None if self.compiled == PATTERNS_MAX => return Err(SelectorError::TooManyPatterns),
            None => {
                let (regex, took) = program(text)?;
                (Tested::Compiled(regex.into()), took)
            }
        };
        if self.bytes + took > PATTERNS_BYTES_MAX {
            return Err(SelectorError::LargePatterns);
        }
        self.compiled += usize::from(matches!(test, Tested::Compiled(_)));
        self.bytes += took;
        let text: Arc<str> = text.into();
        let pattern = Pattern {
            test,
            text: Arc::clone(&text),
        };
        self.known.insert(text, pattern.clone());
        Ok(pattern)
    }
}

/// Compiles a regular expression; with the bytes it may take.
fn program(text: &str) -> Result<(Regex, usize), SelectorError> {
    // The last line is the message; those before it show the position.
    let refused =
        |error: &dyn fmt::Display| bad(text, error.to_string().lines().last().unwrap_or(""));
    // On its own first: `a)(b` would be valid inside the parentheses below.
    let parsed = ParserBuilder::new().utf8(false).build().parse(text);
    parsed.map_err(|error| refused(&error))?;
    for step in COMPILED_BYTES {
        let cache = (4 * step).clamp(CACHE_BYTES.0, CACHE_BYTES.1);
        let mut builder = RegexBuilder::new(&format!("^(?s:{text})$"));
        match builder.size_limit(step).dfa_size_limit(cache).build() {
            Ok(regex) => return Ok((regex, step + cache)),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    Err(bad(text, "too large"))
}

fn bad(text: &str, why: &str) -> SelectorError {
    let shown: String = text.chars().take(100).collect();
    SelectorError::BadPattern(format!("the regular expression {shown:?}: {why}"))
}

impl PartialEq for Pattern {
    /// Whether they match the same, by their literals or their expressions.
    fn eq(&self, other: &Self) -> bool {
        match (&self.test, &other.test) {
            (Tested::Listed(one), Tested::Listed(other)) => one == other,
            (Tested::Compiled(one), Tested::Compiled(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// The same pattern, written as `text`: that of another syntax of which it is a translation.
    pub fn written(self, text: &str) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All that it matches, in order, where this can be listed: `a|b` matches `a` and `b`.
    pub fn literals(&self) -> Option<&[Box<[u8]>]> {
        match &self.test {
            Tested::Listed(literals) => Some(literals),
            Tested::Compiled(_) => None,
        }
    }

    /// Whether it matches all of `value`. Linear in its bytes.
    pub fn matches(&self, value: &[u8]) -> bool {
        match &self.test {
            Tested::Listed(literals) => literals.binary_search_by(|one| (**one).cmp(value)).is_ok(),
            Tested::Compiled(regex) => regex.is_match(value),
        }
    }
}
