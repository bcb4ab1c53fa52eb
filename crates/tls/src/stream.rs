//! One encrypted connection on a socket that does not block.
//!
//! Reads and writes are those of a plain non-blocking socket: `WouldBlock` asks to wait for the
//! next event. Two things differ. What a write took may wait encrypted for room in the socket,
//! at most [`HELD_BYTES_MAX`] of it: [`Stream::has_unsent`] says so, and it is sent by `flush`
//! or by the next write. And a read may have met the end of the peer's data behind what it
//! returned, for which no event comes: [`Stream::has_ended`].
//!
//! A read that fills less than its buffer has emptied the socket, as with a plain one, so that
//! no call is spent on asking for more.
//!
//! Tested by `crates/server/tests/tls/` on the Redis port.

use crate::files::common_name;
use crate::server::InForce;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};

/// Bytes that a write takes before the socket has room for them.
pub const HELD_BYTES_MAX: usize = 64 * 1024;

/// An encrypted connection on a non-blocking socket.
#[derive(Debug)]
pub struct Stream<S: Read + Write> {
    socket: S,
    session: Connection,
    /// The peer's certificate names its user.
    maps_users: bool,
    has_ended: bool,
}

/// A socket that notes whether its last read was short.
struct Noting<'a, S> {
    socket: &'a mut S,
    is_emptied: bool,
}

impl<S: Read> Read for Noting<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.read(buffer)?;
        self.is_emptied = read < buffer.len();
        Ok(read)
    }
}

impl<S: Read + Write> Stream<S> {
    /// The server's side of a connection that begins.
    ///
    /// # Errors
    /// Those of `rustls`.
    pub fn server(socket: S, tls: InForce) -> io::Result<Self> {
        let session = ServerConnection::new(tls.config).map_err(io::Error::other)?;
        Ok(Self::new(socket, session.into(), tls.maps_users))
    }

    /// The client's side of a connection that begins.
    pub fn client(socket: S, session: ClientConnection) -> Self {
        Self::new(socket, session.into(), false)
    }

    fn new(socket: S, mut session: Connection, maps_users: bool) -> Self {
        session.set_buffer_limit(Some(HELD_BYTES_MAX));
        Self {
            socket,
            session,
            maps_users,
            has_ended: false,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket; what is read or written there is not seen here.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Whether the peer has not yet agreed on keys, or shown its certificate.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Whether the peer sends no more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// The user that the peer's certificate names, if it does.
    pub fn user_name(&self) -> Option<String> {
        let name = common_name(self.session.peer_certificates());
        name.filter(|_| self.maps_users)
    }

    /// Reads once from the socket; whether that emptied it.
    fn receive(&mut self) -> io::Result<bool> {
        let mut socket = Noting {
            socket: &mut self.socket,
            is_emptied: false,
        };
        self.session.read_tls(&mut socket)?;
        let is_emptied = socket.is_emptied;
        let processed = self.session.process_new_packets();
        // Its part of the handshake, or the alert that says what is wrong. A peer that takes it no
        // more is met by the next read or write: what it sent before is not lost.
        let _ = self.send();
        processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(is_emptied)
    }

    /// Sends what is encrypted as far as the socket has room; whether that is all.
    fn send(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl<S: Read + Write> Read for Stream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut filled, mut is_emptied) = (0, false);
        while filled < buffer.len() {
            match self.session.reader().read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.has_ended = true;
                    break;
                }
                Ok(read) => {
                    filled += read;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The connection ended without a word; who must know reads frames of a length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.has_ended = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            if is_emptied {
                break;
            }
            match self.receive() {
                Ok(was_emptied) => is_emptied = was_emptied,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // What came before it is whole.
                Err(_) if filled > 0 => {
                    self.has_ended = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match filled {
            0 if !self.has_ended && !buffer.is_empty() => Err(ErrorKind::WouldBlock.into()),
            filled => Ok(filled),
        }
    }
}

impl<S: Read + Write> Write for Stream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.send()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        self.send()?;
        match taken {
            0 if !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    /// Sends what waits; `WouldBlock` where there is no room for all of it.
    fn flush(&mut self) -> io::Result<()> {
        if !self.send()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(())
    }
}

impl<S: Read + Write> Drop for Stream<S> {
    /// Says goodbye, so that the peer can tell an end from a cut.
    fn drop(&mut self) {
        self.session.send_close_notify();
        // The peer may be gone already; there is nobody else to tell.
        let _ = self.send();
    }
}
