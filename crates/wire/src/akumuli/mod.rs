//! Akumuli's native protocol: samples as RESP-like lines.
//!
//! A message is a series line, a timestamp line and a value line:
//! `+cpu host=a`, `:1418224205000000000` (nanoseconds) or `+20141210T155005`,
//! `+24.3` or `:31`. Several metrics with the same tags and time form one row:
//! `+cpu.user|cpu.sys host=a`, a timestamp, `*2` and one value line each. A
//! dictionary, `*2`, `+cpu host=a`, `:1`, makes `:1` an alias of the series line;
//! it may appear wherever a message may.
//!
//! Written from Akumuli's documentation and the behaviour of its daemon 0.8.
//! Unlike there, a bad message does not end the connection; [`Decoder`]
//! describes how the next message is found.

mod decoder;
mod dictionary;
mod error;
mod series;
mod timestamp;
mod writer;

pub use decoder::{Decoder, Row};
pub use dictionary::DICTIONARY_BYTES_MAX;
pub use error::MessageError;
pub use series::Series;
pub use writer::Writer;
