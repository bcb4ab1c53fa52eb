//! Streams to brokers, plain or encrypted, whose reads and writes end by a deadline.
//!
//! Invariant: nothing here takes longer than the deadline, however slowly a peer reads or writes
//! or a name server answers.
//!
//! Tested in `tests/broker/access.rs` with brokers that ask for TLS.

use super::failure::not_sent;
use crate::kafka::{KafkaError, Result};
use latewood_tls::ClientOptions;
use latewood_tls::rustls::pki_types::ServerName;
use latewood_tls::rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// What requests are written to and answers are read from.
pub(super) trait Stream: Read + Write + Send {
    /// Reads and writes fail with `TimedOut` from then on.
    fn set_deadline(&mut self, deadline: Instant);
    /// Waits until there is something to read, or the end, up to `until`. Returns whether there is.
    fn wait(&mut self, until: Instant) -> io::Result<bool>;
    /// Whether the peer is there and sent nothing that was not read.
    fn is_quiet(&self) -> bool;
}

/// A socket with a deadline.
struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

/// The time left, which is not zero.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

/// A socket that timed out says that it would block.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock {
        return ErrorKind::TimedOut.into();
    }
    error
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.deadline)?))?;
        self.socket.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.deadline)?))?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Timed {
    fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    fn wait(&mut self, until: Instant) -> io::Result<bool> {
        let peek = || {
            self.socket.set_read_timeout(Some(left(until)?))?;
            self.socket.peek(&mut [0]).map_err(timed_out)
        };
        match peek().map_err(|error| (error.kind(), error)) {
            // A process that is continued meanwhile is interrupted.
            Err((ErrorKind::TimedOut | ErrorKind::Interrupted, _)) => Ok(false),
            Err((_, error)) => Err(error),
            Ok(_) => Ok(true),
        }
    }

    fn is_quiet(&self) -> bool {
        let peek = || {
            self.socket.set_nonblocking(true)?;
            self.socket.peek(&mut [0])
        };
        let is_quiet = peek().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_quiet && self.socket.set_nonblocking(false).is_ok()
    }
}

impl Stream for StreamOwned<ClientConnection, Timed> {
    fn set_deadline(&mut self, deadline: Instant) {
        self.sock.set_deadline(deadline);
    }

    fn wait(&mut self, until: Instant) -> io::Result<bool> {
        let state = self.conn.process_new_packets();
        let state = state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(state.plaintext_bytes_to_read() > 0 || self.sock.wait(until)?)
    }

    fn is_quiet(&self) -> bool {
        self.sock.is_quiet()
    }
}

/// Connects to a broker, `HOST:PORT`. Files of TLS are read anew, as they may have been renewed.
///
/// # Errors
/// `Refused` if a file cannot be used or one side does not trust the other, else `Unavailable`.
pub(super) fn connect(
    broker: &str,
    tls: Option<&ClientOptions>,
    deadline: Instant,
) -> Result<Box<dyn Stream>> {
    let socket = dial(broker, deadline).map_err(|error| not_sent(broker, "connecting", &error))?;
    let mut plain = Timed { socket, deadline };
    let Some(options) = tls else {
        return Ok(Box::new(plain));
    };
    let config = options.config().map_err(KafkaError::Refused)?;
    let host = broker.rsplit_once(':').map_or(broker, |(host, _)| host);
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
    let agree = || {
        let name = name.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let session = ClientConnection::new(Arc::new(config), name);
        let mut session = session.map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut plain)?;
        }
        Ok(session)
    };
    let agreed = agree();
    let session = agreed.map_err(|error| not_sent(broker, "agreeing on TLS", &error))?;
    Ok(Box::new(StreamOwned::new(session, plain)))
}

fn dial(broker: &str, deadline: Instant) -> io::Result<TcpStream> {
    let addresses = resolve(broker, deadline)?;
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for (address, tries) in addresses.iter().zip((1..=addresses.len()).rev()) {
        // An address that does not answer leaves the others their share.
        let share = left(deadline)? / u32::try_from(tries).unwrap_or(u32::MAX);
        match TcpStream::connect_timeout(address, share) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The addresses of a name. The system's resolver has no deadline, so it gets a thread.
fn resolve(broker: &str, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = broker.parse() {
        return Ok(vec![address]);
    }
    let (sender, found) = mpsc::channel();
    let name = broker.to_owned();
    thread::Builder::new()
        .name("kafka-dns".to_owned())
        .spawn(move || sender.send(name.to_socket_addrs().map(Iterator::collect)))?;
    let late = |_| io::Error::new(ErrorKind::TimedOut, "the name was not resolved in time");
    found.recv_timeout(left(deadline)?).map_err(late)?
}
