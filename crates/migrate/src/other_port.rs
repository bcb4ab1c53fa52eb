//! Detects RESP, HTTP and TLS addresses that were swapped.
//!
//! A server has separate ports for RESP and HTTP. With the wrong one, the only symptom is an
//! unreadable reply or a closed connection, so the server is probed again in a way that
//! distinguishes the two.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of connecting, of the probe and of each part of its reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first bytes of every HTTP response.
const HTTP: &[u8] = b"HTTP/";

/// The first bytes of an alert, the answer of TLS to bytes of other protocols.
const TLS_ALERT: &[u8] = b"\x15\x03";

const SPEAKS_TLS: &str = "the server speaks TLS: connect with --tls";

/// A hint if the server at a RESP address speaks HTTP or TLS.
pub(crate) fn as_other_than_redis(address: impl ToSocketAddrs) -> Option<String> {
    let answer = answer(address, b"*1\r\n$4\r\nPING\r\n")?;
    if answer.starts_with(HTTP) {
        return Some("the server speaks HTTP, not RESP: is this its --http address?".to_owned());
    }
    answer.starts_with(TLS_ALERT).then(|| SPEAKS_TLS.to_owned())
}

/// A hint if the server at an HTTP address speaks RESP or TLS.
pub(crate) fn as_other_than_http(address: impl ToSocketAddrs) -> Option<String> {
    let answer = answer(address, b"PING\r\n")?;
    if answer.starts_with(TLS_ALERT) {
        return Some(SPEAKS_TLS.to_owned());
    }
    // A server that requires a password replies with an error.
    matches!(answer.first(), Some(b'+' | b'-'))
        .then(|| "the server speaks RESP, not HTTP: is this a --listen address?".to_owned())
}

/// The first bytes of the reply.
fn answer(address: impl ToSocketAddrs, question: &[u8]) -> Option<Vec<u8>> {
    let mut addresses = address.to_socket_addrs().ok()?;
    let mut stream =
        addresses.find_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok())?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(question).ok()?;
    let mut answer = Vec::new();
    // The bytes before an error are enough.
    let _ = stream.take(HTTP.len() as u64).read_to_end(&mut answer);
    Some(answer)
}
