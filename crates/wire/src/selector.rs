//! Prometheus selectors: the series of a request.
//!
//! `metric{a="b",c!="d",e=~"f.*",g!~"h"}`, the metric alone, or the braces
//! alone; `{"my.metric"}` and `{__name__="my.metric"}` allow any metric name.
//! Names of letters, digits and `_ : . - /` need no quotes, so that the key of a
//! series is a selector too. Quotes are double, single or backticks, as in Go.
//! Regular expressions are those of the `regex` crate, anchored at both ends; a
//! dot also matches a line break, as in Prometheus 3.
//!
//! A missing label has the empty value. Syntax:
//! <https://prometheus.io/docs/prometheus/latest/querying/basics/>. Tested by
//! `selector/tests.rs` and the fuzz target `selector`.

mod parse;
mod quoted;
#[cfg(test)]
mod tests;

use crate::series_name::METRIC;
use regex::bytes::{Regex, RegexBuilder};

/// Bytes of a selector.
pub const SELECTOR_BYTES_MAX: usize = 64 << 10;
/// Matchers of a selector.
pub const MATCHERS_MAX: usize = 128;
/// Regular expressions of a selector, and of a request: a short pattern can take
/// much memory.
pub const PATTERNS_MAX: usize = 64;
/// Bytes of a compiled regular expression and of its search cache.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A condition on the value of one label.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The label's name.
    pub name: Box<[u8]>,
    /// The condition on its value.
    pub test: Test,
}

/// The condition on the value of a label; a missing label has the empty value.
#[derive(Clone, Debug)]
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
    regex: Regex,
    text: Box<str>,
}

/// Why a selector is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// More bytes than [`SELECTOR_BYTES_MAX`].
    #[error("more than {SELECTOR_BYTES_MAX} bytes")]
    TooLong,
    /// More matchers than [`MATCHERS_MAX`].
    #[error("more than {MATCHERS_MAX} matchers")]
    TooMany,
    /// More regular expressions than [`PATTERNS_MAX`].
    #[error("more than {PATTERNS_MAX} regular expressions")]
    TooManyPatterns,
    /// A syntax error.
    #[error("at byte {at}: expected {wanted}")]
    Unexpected {
        /// Offset, from 0.
        at: usize,
        /// What is expected.
        wanted: &'static str,
    },
    /// A string without its closing quote.
    #[error("at byte {0}: unterminated string")]
    NoEnd(usize),
    /// An unknown escape sequence.
    #[error("at byte {0}: unknown escape")]
    BadEscape(usize),
    /// The metric is given before the braces and inside them.
    #[error("duplicate metric name")]
    MetricTwice,
    /// A regular expression that is invalid or too large.
    #[error("{0}")]
    BadPattern(String),
    /// Every matcher also matches a series without labels.
    #[error(
        "at least one matcher must not match the empty string; for all series: {{__name__!=\"\"}}"
    )]
    MatchesAll,
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

    /// Whether it is a regular expression.
    pub fn has_pattern(&self) -> bool {
        matches!(self.test, Test::Match(_) | Test::NotMatch(_))
    }

    /// Whether it matches the metric name.
    pub fn is_on_metric(&self) -> bool {
        *self.name == *METRIC
    }
}

impl Pattern {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// `BadPattern`.
    pub fn new(text: &str) -> Result<Self, SelectorError> {
        let bad = |error: regex::Error| {
            let why = match error {
                regex::Error::CompiledTooBig(_) => "too large".to_owned(),
                // The last line is the message; those before it show the position.
                error => error.to_string().lines().last().unwrap_or("").to_owned(),
            };
            let shown: String = text.chars().take(100).collect();
            SelectorError::BadPattern(format!("the regular expression {shown:?}: {why}"))
        };
        let compile = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(PATTERN_BYTES_MAX);
            builder.dfa_size_limit(PATTERN_BYTES_MAX);
            builder.build()
        };
        // On its own first: `a)(b` would be valid inside the parentheses below.
        compile(text).map_err(bad)?;
        let regex = compile(&format!("^(?s:{text})$")).map_err(bad)?;
        let text = text.into();
        Ok(Self { regex, text })
    }

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

    /// Whether it matches all of `value`. Linear in its bytes.
    pub fn matches(&self, value: &[u8]) -> bool {
        self.regex.is_match(value)
    }
}

/// Parses a selector.
///
/// # Errors
/// The first error and its position.
pub fn parse(text: &str) -> Result<Vec<Matcher>, SelectorError> {
    let matchers = parse::matchers(text)?;
    match matchers.iter().all(|matcher| matcher.passes(b"")) {
        true => Err(SelectorError::MatchesAll),
        false => Ok(matchers),
    }
}
