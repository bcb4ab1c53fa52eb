//! What expressions give, point by point of the language. The samples of series are minutes apart.

mod aggregate;
mod binary;
mod explain;
mod explain_limits;
mod extremes;
mod function;
mod held;
mod memory;
mod name;
mod pace;
mod query;
mod range;
mod selector;
mod some;
mod table;
mod together;

/// A minute in milliseconds.
const MIN: i64 = 60_000;
