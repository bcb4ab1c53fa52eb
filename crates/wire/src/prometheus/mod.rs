//! The protocols of Prometheus.
//!
//! [`write`](mod@write) decodes remote write 1.0 and 2.0, [`read`] decodes remote
//! read and encodes its responses, [`exposition`] decodes the text format, [`time`]
//! parses the times of the HTTP API.

pub mod exposition;
pub mod read;
pub mod time;
pub mod write;
