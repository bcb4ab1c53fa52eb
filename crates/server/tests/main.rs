//! The tests of the built server, as one program: `cargo test -p latewood-server FOLDER::` runs
//! those of one folder. Those that need brokers are the program `kafka`.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod config;
mod harness;
mod http;
mod kill;
mod lines;
mod migrate;
#[path = "../../promql/tests/oracle/mod.rs"]
mod oracle;
mod promql;
mod resp;
mod tls;
mod tools;
