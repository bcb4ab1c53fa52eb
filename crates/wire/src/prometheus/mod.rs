//! What Prometheus and its relatives send and ask for.
//!
//! [`write`](mod@write) reads the messages of remote write 1.0 and 2.0,
//! [`exposition`] the text format that programs expose.

pub mod exposition;
pub mod write;
