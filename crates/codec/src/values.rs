//! The values of a frame: any f64, bit for bit.
//!
//! One file per coding; none depends on another. A coding either holds the
//! values exactly or refuses them. [`Section`] reads what any of them
//! wrote. Statistics precede the coded values, except where the coding
//! contains them (constants and clean decimals).

mod coding;
pub(crate) mod constant;
pub(crate) mod decimal;
pub(crate) mod dictionary;
pub(crate) mod narrow;
pub(crate) mod ordered;
mod parts;
pub(crate) mod raw;
#[cfg(test)]
pub(crate) mod samples;
mod scratch;
mod section;
pub(crate) mod ulp;
pub(crate) mod xor;

pub use coding::ValueCoding;
pub(crate) use coding::flag;
pub(crate) use scratch::Scratch;
pub(crate) use section::Section;
