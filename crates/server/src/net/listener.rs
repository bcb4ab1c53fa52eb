//! The sockets that clients connect to.
//!
//! Addresses are bound before the data is opened, so that a taken port is told
//! at once and not after a long recovery.

use crate::messaging::Socket;
use crate::state::Settings;
use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, TcpKeepalive, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections the kernel holds until they are accepted.
const BACKLOG: i32 = 1024;
/// Silence after which the kernel asks whether a peer still lives.
const KEEPALIVE: Duration = Duration::from_secs(300);

/// One bound socket.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A TCP address, and what is spoken there.
    Tcp(TcpListener, String, Speech),
    /// A unix socket; its file is removed when this is dropped.
    Unix(UnixListener, PathBuf),
}

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speech {
    is_tls: bool,
    /// As if each connection had begun with READONLY.
    is_reader: bool,
}

impl Speech {
    /// What begins an address that is shown.
    fn name(self) -> &'static str {
        match (self.is_tls, self.is_reader) {
            (false, false) => "",
            (false, true) => "reads=",
            (true, false) => "tls=",
            (true, true) => "tls-reads=",
        }
    }
}

/// A connection that was just accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: Socket,
    /// The peer, as text.
    pub(crate) peer: String,
    /// The local address, as text.
    pub(crate) local: String,
    /// Whether the peer is to speak TLS.
    pub(crate) is_tls: bool,
    /// Whether READONLY is implied.
    pub(crate) is_reader: bool,
    /// Whether the peer is on this machine.
    pub(crate) is_local: bool,
}

/// Binds every address of `settings`.
///
/// # Errors
/// A sentence that names the address.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let given = [
        (&settings.listen, false, false),
        (&settings.read_listen, false, true),
        (&settings.tls_listen, true, false),
        (&settings.tls_read_listen, true, true),
    ];
    let given = given.into_iter().flat_map(|(texts, is_tls, is_reader)| {
        let speech = Speech { is_tls, is_reader };
        texts.iter().map(move |text| (text, speech))
    });
    for (text, speech) in given {
        let addresses = text
            .to_socket_addrs()
            .map_err(|error| format!("cannot listen on {text}: {error}"))?;
        for address in addresses {
            let listener = bind_tcp(address)
                .map_err(|error| format!("cannot listen on {address}: {}", in_words(&error)))?;
            listeners.push(Listener::Tcp(listener, address.to_string(), speech));
        }
    }
    if let Some(path) = &settings.unixsocket {
        let shown = path.display();
        let listener = bind_unix(path)
            .map_err(|error| format!("cannot listen on {shown}: {}", in_words(&error)))?;
        listeners.push(Listener::Unix(listener, path.clone()));
    }
    if listeners.is_empty() {
        return Err("no address to listen on".to_owned());
    }
    Ok(listeners)
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process has it already".to_owned(),
        _ => error.to_string(),
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = RawSocket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// A socket file that nobody listens on is left over from a killed process.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let probe = std::os::unix::net::UnixStream::connect(path);
            match probe.map_err(|probe| probe.kind()) {
                Err(io::ErrorKind::ConnectionRefused) => {
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path)
                }
                _ => Err(error),
            }
        }
        bound => bound,
    }
}

impl Listener {
    pub(crate) fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Tcp(listener, ..) => listener,
            Self::Unix(listener, _) => listener,
        }
    }

    /// The address as text, with the real port if 0 was requested.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Tcp(listener, asked, speech) => {
                let address = listener.local_addr();
                let address = address.map_or_else(|_| asked.clone(), |address| address.to_string());
                format!("{}{address}", speech.name())
            }
            Self::Unix(_, path) => path.display().to_string(),
        }
    }

    /// Accepts one connection; `WouldBlock` when there is none.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener, _, speech) => {
                let (stream, peer) = listener.accept()?;
                // Replies are sent whole: waiting to fill a packet only delays them.
                stream.set_nodelay(true)?;
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
                SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                let local = stream.local_addr()?.to_string();
                Ok(Accepted {
                    socket: Socket::Tcp(stream),
                    peer: peer.to_string(),
                    local,
                    is_tls: speech.is_tls,
                    is_reader: speech.is_reader,
                    is_local: is_loopback(peer.ip()),
                })
            }
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                let shown = format!("{}:0", path.display());
                Ok(Accepted {
                    socket: Socket::Unix(stream),
                    peer: shown.clone(),
                    local: shown,
                    is_tls: false,
                    is_reader: false,
                    is_local: true,
                })
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // A file that is gone already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
