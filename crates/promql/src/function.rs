//! The functions: names, arguments and results.

use crate::tree::Type;

/// A function, as the parser knows it.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Types of its arguments.
    pub args: &'static [Type],
    /// How many of the last argument may be left out or follow: 0 none, n up to n, -1 any.
    pub variadic: i32,
    /// Type of its result.
    pub returns: Type,
}
