//! OpenTSDB's two write protocols: telnet-style lines and JSON over HTTP.
//!
//! [`telnet`] parses one line (`put METRIC TIMESTAMP VALUE TAG=VALUE...`),
//! [`json`] the body of `/api/put`. Both give the same points and the same
//! errors, with OpenTSDB's texts, because senders log and match them.
//!
//! Written from the documentation of OpenTSDB 2.4 and checked against its senders
//! (collectd, netdata, tcollector). Latewood accepts more than OpenTSDB: any
//! character in names except blanks and `=`, any number of tags (at least one
//! over HTTP), values in full double precision.

mod error;
pub mod json;

mod number;
mod tags;
pub mod telnet;
mod writer;

pub use error::PointError;
pub use tags::tags;
pub use writer::{Writer, refuse};
