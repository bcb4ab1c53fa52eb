//! The HTTP server as senders meet it: the built binary, a real socket, bytes
//! in and bytes out.

mod browser;
pub(crate) mod client;
mod console;
mod corrections;
mod delete_series;
mod export;
mod federate;
mod influx;
mod influx_delete;
mod lateness;
mod limits;
mod meanwhile;
mod memory;
mod metadata;
mod metrics;
mod opentsdb;
mod otlp;
mod prometheus;
mod promql;
mod promql_answers;
mod promql_explain;
mod promql_limits;
mod promql_running;
pub(crate) mod protobuf;
mod quarantine;
mod reading;
mod remote_read;
mod repeated;
mod resting;
mod rules;
mod rules_owned;
mod self_metrics;
mod status;
mod uploads;
mod users;
mod watch;
mod wrong;

use crate::harness::Server;

/// A server with HTTP and these further options.
fn server(options: &[&str]) -> Server {
    Server::with(&[&["--wal", "off", "--http", "127.0.0.1:0"], options].concat())
}
