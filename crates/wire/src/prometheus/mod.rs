//! What Prometheus and its relatives send and ask for.
//!
//! [`write`](mod@write) reads the messages of remote write 1.0 and 2.0,
//! [`read`] those of remote read and writes its answers, [`exposition`] reads
//! the text format that programs expose, [`time`] the times of the HTTP API.

pub mod exposition;
pub mod read;
pub mod time;
pub mod write;
