//! PromQL as Prometheus 3.16 speaks it, on floats: text to syntax tree, checks, evaluation.
//!
//! Pure: no engine, no clock, no HTTP. Series come from a [`source::Source`]. Reference:
//! <https://prometheus.io/docs/prometheus/latest/querying/basics/>. Tested by `tests/evaluation` and,
//! against Prometheus' own engine, by `tests/oracle`.
//!
//! ```text
//! text -> parse (lexer, tree with positions, types) -> prepare (durations, @, invariant parts)
//!      -> plan: one operator for each node -> columns, series by series -> value
//! ```

pub mod annotation;
mod calendar;
mod check;
pub mod column;
pub mod engine;
mod error;
mod exec;
pub mod explain;
pub mod function;
mod json;
pub mod labels;
mod lex;
mod literal;
pub mod number;
mod parse;
mod pattern;
mod prepare;
mod print;
mod quote;
pub mod reads;
pub mod source;
pub mod span;
mod token;
pub mod tree;

pub use calendar::rfc3339;
pub use error::ParseError;
pub use json::to_json;
pub use parse::{QUERY_BYTES_MAX, parse, parse_selector, parse_selector_with};
pub use pattern::compile as compile_pattern;
pub use prepare::{PrepareError, Times, prepare};
pub use print::pretty;
pub use quote::quoted;
