//! The protocols of Prometheus.
//!
//! [`write`](mod@write) decodes remote write 1.0 and 2.0, [`read`] decodes remote
//! read and encodes its responses, [`exposition`] decodes the text format,
//! [`json_lines`] and [`csv_lines`] VictoriaMetrics' lines of JSON and CSV, [`time`] parses
//! the times of the HTTP API.

pub mod csv_lines;
pub mod exposition;
pub mod json_lines;
pub mod read;
pub mod time;
pub mod write;
