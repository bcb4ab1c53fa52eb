//! Who answers at an address where the wrong protocol was spoken.
//!
//! A server has one port for Redis' protocol and one for HTTP. Taken one for the other, all that
//! comes back is a reply that cannot be read or a connection that is closed, so whoever is there
//! is asked again in a way that tells the two apart.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a connection, a question and a part of its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first bytes of every answer over HTTP.
const HTTP: &[u8] = b"HTTP/";

/// What to say of a server that was spoken to as Redis and answers as HTTP.
pub(crate) fn as_http(address: impl ToSocketAddrs) -> Option<String> {
    let answer = answer(address, b"*1\r\n$4\r\nPING\r\n")?;
    answer
        .starts_with(HTTP)
        .then(|| "this answers as HTTP, not as Redis: is it the address of --http?".to_owned())
}

/// What to say of a server that was spoken to as HTTP and answers as Redis.
pub(crate) fn as_redis(address: impl ToSocketAddrs) -> Option<String> {
    let answer = answer(address, b"PING\r\n")?;
    // A server that wants a password says so in an error.
    matches!(answer.first(), Some(b'+' | b'-'))
        .then(|| "this answers as Redis, not as HTTP: is it an address of --listen?".to_owned())
}

/// The first bytes that come back.
fn answer(address: impl ToSocketAddrs, question: &[u8]) -> Option<Vec<u8>> {
    let mut addresses = address.to_socket_addrs().ok()?;
    let mut stream =
        addresses.find_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok())?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(question).ok()?;
    let mut answer = Vec::new();
    // What came before an error tells as much as a whole answer.
    let _ = stream.take(HTTP.len() as u64).read_to_end(&mut answer);
    Some(answer)
}
