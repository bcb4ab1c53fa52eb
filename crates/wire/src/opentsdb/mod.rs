//! OpenTSDB's two ways of sending: telnet-style lines and JSON over HTTP.
//!
//! [`telnet`] reads one line (`put METRIC TIMESTAMP VALUE TAG=VALUE...`),
//! [`json`] the body of `/api/put`. Both give the same points and the same
//! errors, in OpenTSDB's own words, because senders log and match them.
//!
//! Taken from the documentation of OpenTSDB 2.4 and checked against what its
//! senders (collectd, netdata, tcollector) write. Where Latewood takes more
//! than OpenTSDB: any character in names but blanks and `=`, any number of
//! tags, none at all over HTTP excepted, values in full double precision.

mod error;
pub mod json;

mod number;
mod tags;
pub mod telnet;
mod writer;

pub use error::PointError;
pub use tags::tags;
pub use writer::{Writer, refuse};
