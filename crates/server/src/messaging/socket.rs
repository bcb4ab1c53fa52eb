//! A connected stream, TCP with or without TLS or unix, behind one type.
//!
//! What a write took of an encrypted stream may wait for room in the socket
//! ([`Socket::has_unsent`]); `flush` sends it.

use latewood_tls::{InForce, Stream};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// A connected, non-blocking stream.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, encrypted.
    Tls(Box<Stream<TcpStream>>),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Whether it is a unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// The same, encrypted.
    ///
    /// # Errors
    /// Those of TLS, and that it is not over TCP.
    pub(crate) fn encrypted(self, tls: InForce) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => Ok(Self::Tls(Box::new(Stream::server(stream, tls)?))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether it has not yet agreed on keys with its peer.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.is_handshaking())
    }

    /// The user that the peer's certificate names, if it does.
    pub(crate) fn user_name(&self) -> Option<String> {
        match self {
            Self::Tls(stream) => stream.user_name(),
            _ => None,
        }
    }

    /// Whether a read has met the end behind the bytes that it returned; no
    /// event tells of it.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.has_ended())
    }

    /// Whether bytes that a write took are not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.has_unsent())
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.socket_mut(),
            Self::Unix(stream) => stream,
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Tls(stream) => stream.socket().as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            _ => Ok(()),
        }
    }
}

impl Source for Socket {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.source().register(registry, token, interest)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.source().reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}
