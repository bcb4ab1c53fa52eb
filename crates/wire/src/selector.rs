//! Which series a reader asks for: the selectors of Prometheus.
//!
//! `metric{a="b",c!="d",e=~"f.*",g!~"h"}`, the metric alone, or the braces
//! alone; `{"my.metric"}` and `{__name__="my.metric"}` mean a metric of any
//! name. Names of letters, digits and `_ : . - /` need no quotes, so that the
//! key of a series is a selector too. Quotes are double, single or backticks
//! as in Go. Regular expressions are those of the `regex` crate, anchored at
//! both ends; a point matches a line break too, as in Prometheus 3.
//!
//! A label that is not there has the empty value. Text of the syntax:
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
/// Regular expressions of a selector, and of a request: few bytes of text can
/// be much memory.
pub const PATTERNS_MAX: usize = 64;
/// Bytes that a compiled regular expression, and what it keeps while it
/// searches, may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A condition on the value of one label.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The label's name.
    pub name: Box<[u8]>,
    /// What its value must be.
    pub test: Test,
}

/// What the value of a label must be; empty where there is no such label.
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
pub struct Pattern(Regex);

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// More bytes than [`SELECTOR_BYTES_MAX`].
    #[error("it has more than {SELECTOR_BYTES_MAX} bytes")]
    TooLong,
    /// More matchers than [`MATCHERS_MAX`].
    #[error("it has more than {MATCHERS_MAX} matchers")]
    TooMany,
    /// More regular expressions than [`PATTERNS_MAX`].
    #[error("more than {PATTERNS_MAX} regular expressions")]
    TooManyPatterns,
    /// Something else stands there.
    #[error("at byte {at}: {wanted} is expected")]
    Unexpected {
        /// Where, counted from 0.
        at: usize,
        /// What may stand there.
        wanted: &'static str,
    },
    /// A text without its second quote.
    #[error("at byte {0}: the text has no end")]
    NoEnd(usize),
    /// A backslash before something that has no meaning.
    #[error("at byte {0}: unknown escape")]
    BadEscape(usize),
    /// The metric stands before the braces and in them.
    #[error("the metric is named twice")]
    MetricTwice,
    /// A regular expression that is none, or is too large.
    #[error("{0}")]
    BadPattern(String),
    /// Every series passes, also one without labels.
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

    /// Whether it holds a regular expression.
    pub fn has_pattern(&self) -> bool {
        matches!(self.test, Test::Match(_) | Test::NotMatch(_))
    }

    /// Whether it is about the metric.
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
                regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                // The last line says what is wrong; those before point at it.
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
        // Alone first: `a)(b` would be one between the parentheses below.
        compile(text).map_err(bad)?;
        compile(&format!("^(?s:{text})$")).map(Self).map_err(bad)
    }

    /// Whether it matches the whole of `value`. Linear in its bytes.
    pub fn matches(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }
}

/// Reads a selector.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<Vec<Matcher>, SelectorError> {
    let matchers = parse::matchers(text)?;
    match matchers.iter().all(|matcher| matcher.passes(b"")) {
        true => Err(SelectorError::MatchesAll),
        false => Ok(matchers),
    }
}
