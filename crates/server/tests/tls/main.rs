//! TLS on every port: the built binary, real sockets, certificates made here.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

#[allow(dead_code, reason = "shared with the tests of the protocol")]
#[path = "../resp/harness.rs"]
mod harness;

mod certificates;
mod handshakes;
mod peer;
mod ports;
mod reload;
mod tools;
mod users;
