//! The values of a frame: any f64, bit for bit.
//!
//! Each coding has its file; none knows the others. A coding either holds the
//! values exactly or says that it cannot. [`Section`] reads what any of them
//! wrote. Statistics stand in front of the coded values, except where the
//! coding itself has them at hand (constants and clean decimals).

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
