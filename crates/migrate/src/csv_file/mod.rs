//! `latewood export csv` and `latewood import csv`.
//!
//! `format` is the file's lines as values and back, without any I/O; `export` reads a server and
//! writes lines, `import` reads lines and writes to a server. What export writes, import turns
//! into the same series: samples bit for bit, labels, options, rules and expiry.

mod export;
mod format;
mod import;

pub(crate) use export::run as export;
pub(crate) use import::run as import;
