//! TLS on every port: the built binary, real sockets, certificates made here.

pub(crate) mod certificates;
mod handshakes;
mod peer;
mod ports;
mod reload;
mod tools;
mod users;
