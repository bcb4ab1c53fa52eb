//! `latewood export csv` and `latewood import csv`.
//!
//! `format` converts lines to values and back, without I/O; `export` reads a server and writes
//! lines, `import` reads lines and writes to a server. Importing an export restores the same
//! series: samples bit for bit, labels, options, rules and expiry.

mod export;
mod format;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod import;

pub(crate) use export::run as export;
pub(crate) use import::run as import;
