//! The addresses, the tasks that accept, and how all of it ends.

use super::connection::{Batch, Connected, serve as serve_connection};
use super::datagrams;
use super::speaker::{ended, is_barred, speaker, takes_none, user_for};
use crate::base::clock::now_ms;
use crate::state::{LinePort, LineProtocol, Settings, Shared};
use latewood_tls::{InForce, accept as accept_tls};
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections of one protocol at a time, where `--maxclients` does not say less.
const CONNECTIONS_MAX: usize = 1024;
/// Batches that are applied at a time: many share one sync where writes wait for the disk.
const BATCHES_MAX: usize = 64;
/// Silence after which the kernel asks whether a peer still lives.
const KEEPALIVE: Duration = Duration::from_secs(300);
/// Pause after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for a peer to take the end of its connection.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Silence after which a connection gives its place to a new one, where all are taken.
const GIVES_WAY: Duration = Duration::from_secs(60);
/// Bytes of datagrams that the kernel is asked to hold; it may hold fewer.
const DATAGRAMS_HELD_BYTES: usize = 8 << 20;

/// An address that is bound, and what is spoken there.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: Socket,
    port: LinePort,
}

#[derive(Debug)]
enum Socket {
    Connections(StdTcpListener),
    Datagrams(StdUdpSocket),
}

/// Binds the addresses of `settings`: none unless asked for.
///
/// # Errors
/// A sentence that names the address.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<Bound>, String> {
    let bind = |port: &LinePort| {
        let socket = match port.protocol {
            LineProtocol::InfluxUdp => datagram_socket(&port.address).map(Socket::Datagrams),
            _ => connection_socket(&port.address).map(Socket::Connections),
        };
        let port = port.clone();
        match socket {
            Ok(socket) => Ok(Bound { socket, port }),
            Err(error) => Err(format!("cannot listen on {}: {error}", port.address)),
        }
    };
    settings.senders.lines.iter().map(bind).collect()
}

fn connection_socket(address: &str) -> io::Result<StdTcpListener> {
    let socket = StdTcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn datagram_socket(address: &str) -> io::Result<StdUdpSocket> {
    let socket = StdUdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    SockRef::from(&socket).set_recv_buffer_size(DATAGRAMS_HELD_BYTES)?;
    Ok(socket)
}

impl Bound {
    /// The protocol and the address, as text.
    pub(crate) fn describe(&self) -> String {
        let address = match &self.socket {
            Socket::Connections(listener) => listener.local_addr(),
            Socket::Datagrams(socket) => socket.local_addr(),
        };
        let address = address.map_or_else(|error| error.to_string(), |a| a.to_string());
        format!("{}={address}", self.port.label())
    }
}

/// Serves `bound` from when the data is there until `stop` says so; then ends every connection.
///
/// # Errors
/// That a socket cannot be registered with the runtime, or fails for good.
pub(crate) async fn serve(
    bound: Vec<Bound>,
    shared: &Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let loaded = async {
        while shared.db.is_loading() {
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = loaded => {}
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    }
    let server = Arc::new(Server {
        shared: Arc::clone(shared),
        open: Open::default(),
        places: Semaphore::new(BATCHES_MAX),
    });
    let mut ports = JoinSet::new();
    for Bound { socket, port } in bound {
        if let Err(reason) = user_for(shared, port.user.as_deref()) {
            tracing::warn!(port = port.label(), reason, "lines are refused");
        }
        let stop = stop.clone();
        match socket {
            Socket::Connections(listener) => {
                let listener = TcpListener::from_std(listener)?;
                ports.spawn(Arc::clone(&server).accept(listener, port, stop));
            }
            Socket::Datagrams(socket) => {
                let socket = UdpSocket::from_std(socket)?;
                ports.spawn(datagrams::serve(socket, port, Arc::clone(shared), stop));
            }
        }
    }
    while let Some(port) = ports.join_next().await {
        ended(port)?;
    }
    Ok(())
}

/// What serves all connections.
struct Server {
    shared: Arc<Shared>,
    open: Open,
    places: Semaphore,
}

/// The connections at this moment, by number.
#[derive(Default)]
struct Open {
    connected: Mutex<HashMap<u64, Arc<Connected>>>,
    numbers: AtomicU64,
}

/// The place of one of them; given back when dropped.
struct Place {
    server: Arc<Server>,
    number: u64,
    connected: Arc<Connected>,
}

impl Open {
    fn add(&self, connected: Connected) -> (u64, Arc<Connected>) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let connected = Arc::new(connected);
        let entry = Arc::clone(&connected);
        self.connected.lock().insert(number, entry);
        (number, connected)
    }

    fn count(&self, protocol: LineProtocol) -> usize {
        let open = self.connected.lock();
        open.values().filter(|of| of.protocol == protocol).count()
    }

    /// Ends the connection that has been silent for the longest, if that is long enough; whether
    /// it did.
    fn end_silent(&self, protocol: LineProtocol) -> bool {
        let open = self.connected.lock();
        let of_protocol = open.values().filter(|of| of.protocol == protocol);
        let silent = of_protocol.max_by_key(|of| of.last_read.elapsed());
        let silent = silent.filter(|of| of.last_read.elapsed() >= GIVES_WAY);
        if let Some(silent) = silent {
            silent.last_read.note();
            silent.end.notify_one();
        }
        silent.is_some()
    }

    fn end(&self) {
        for connected in self.connected.lock().values() {
            connected.end.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let protocol = self.connected.protocol.counted_as();
        let counters = self.server.shared.protocols.lines.of(protocol);
        counters.open.fetch_sub(1, Ordering::Relaxed);
        self.server.open.connected.lock().remove(&self.number);
    }
}

impl Server {
    /// Serves one address until `stop` says so, and its connections to their end.
    async fn accept(
        self: Arc<Self>,
        listener: TcpListener,
        port: LinePort,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(connection) = connections.join_next() => {
                    ended(connection);
                    continue;
                }
                // An error says that nobody is left to say it.
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some((stream, tls)) = self.admit(stream, peer, &port) {
                        // Before the task runs: the next one accepted counts it, and a stop ends it.
                        let place = self.place(port.protocol);
                        let server = Arc::clone(&self);
                        connections.spawn(server.serve(stream, tls, peer, port.clone(), place));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        self.open.end();
        while let Some(connection) = connections.join_next().await {
            ended(connection);
        }
        Ok(())
    }

    /// The connection and what to encrypt it with, if its peer is served.
    fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        port: &LinePort,
    ) -> Option<(TcpStream, Option<InForce>)> {
        let (shared, protocol) = (&self.shared, port.protocol);
        let counters = shared.protocols.lines.of(protocol.counted_as());
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        let mut connected = self.open.count(protocol);
        if connected >= CONNECTIONS_MAX && self.open.end_silent(protocol) {
            let protocol = protocol.name();
            tracing::warn!(protocol, "closed a silent connection for a new one");
            connected -= 1;
        }
        let tls = shared.tls.in_force().filter(|_| port.is_tls);
        let has_login = tls.as_ref().is_some_and(|tls| tls.maps_users);
        let is_full = connected >= CONNECTIONS_MAX || shared.runtime.is_full(connected, &stream);
        let text = match refusal(shared, is_full, has_login, peer) {
            // Without a certificate nothing is encrypted, and nothing is served.
            None if port.is_tls && tls.is_none() => "there is no certificate".to_owned(),
            None => return Some((stream, tls)),
            Some(text) => text,
        };
        counters.rejected.note(now_ms());
        tracing::debug!(%peer, text, "refused a connection");
        if !port.is_tls {
            tokio::spawn(async move {
                let (mut stream, text) = (stream, format!("-ERR {text}\r\n"));
                // The peer may be gone already; there is nobody else to tell.
                let _ = timeout(GOODBYE_MAX, stream.write_all(text.as_bytes())).await;
            });
        }
        None
    }

    /// The place of a new connection.
    fn place(self: &Arc<Self>, protocol: LineProtocol) -> Place {
        let (number, connected) = self.open.add(Connected::new(protocol));
        let counters = self.shared.protocols.lines.of(protocol.counted_as());
        counters.open.fetch_add(1, Ordering::Relaxed);
        Place {
            server: Arc::clone(self),
            number,
            connected,
        }
    }

    /// Serves a connection until it ends.
    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        tls: Option<InForce>,
        peer: SocketAddr,
        port: LinePort,
        place: Place,
    ) {
        let served = match (prepare(&stream), tls) {
            (Err(error), _) => Err(error),
            (Ok(()), None) => {
                let user = port.user.clone();
                self.converse(stream, peer, &port, user, &place).await
            }
            (Ok(()), Some(tls)) => self.serve_tls(stream, tls, peer, &port, &place).await,
        };
        match served {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let timeouts = &self.shared.counters.timeouts;
                timeouts.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(%peer, %error, "a connection ended"),
        }
    }

    /// Where certificates name users, the connection needs one that does.
    async fn serve_tls(
        &self,
        stream: TcpStream,
        tls: InForce,
        peer: SocketAddr,
        port: &LinePort,
        place: &Place,
    ) -> io::Result<()> {
        let (shared, maps_users) = (&self.shared, tls.maps_users);
        // Most senders never read.
        let accepted = accept_tls(stream, tls.without_tickets()).await;
        let accepted = accepted.inspect_err(|error| shared.handshake_failed(peer, error))?;
        let user = if maps_users {
            let name = accepted.user_name.unwrap_or_default();
            if shared.user_of(&name).is_none() {
                let protocol = port.protocol.counted_as().name();
                let log = &shared.runtime.users.log;
                log.note_sender(protocol, None, b"TLS", name.as_bytes());
            }
            Some(name)
        } else {
            port.user.clone()
        };
        self.converse(accepted.stream, peer, port, user, place)
            .await
    }

    async fn converse(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: SocketAddr,
        port: &LinePort,
        user: Option<String>,
        place: &Place,
    ) -> io::Result<()> {
        let speaker = speaker(port, &self.shared);
        let shared = Arc::clone(&self.shared);
        let batch = Batch::new(shared, port.protocol, speaker, peer.ip(), user)?;
        let served = serve_connection(&mut stream, batch, &place.connected, &self.places).await;
        // So that the peer can tell an end from a cut; it may be gone already.
        let _ = timeout(GOODBYE_MAX, stream.shutdown()).await;
        served
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

/// Why a peer is not served.
fn refusal(shared: &Shared, is_full: bool, has_login: bool, peer: SocketAddr) -> Option<String> {
    if is_full {
        Some("too many connections to this address".to_owned())
    } else if let Err(to) = shared.takes_writes() {
        Some(takes_none(&to))
    } else if !has_login && is_barred(shared, peer) {
        Some(
            "protected mode: this protocol has no password, so only senders on the server's own \
             machine are served. If the network is trusted, start it with --protected-mode off"
                .to_owned(),
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::LastRead;
    use super::*;
    use crate::options::testing::shared as test_shared;
    use tokio::task::unconstrained;

    /// Whether it was told to end since the last time.
    async fn is_ended(connected: &Connected) -> bool {
        let told = unconstrained(connected.end.notified());
        timeout(Duration::ZERO, told).await.is_ok()
    }

    #[test]
    fn the_longest_silent_connection_gives_way_once() {
        let open = Open::default();
        let connect = |protocol, silent_s| {
            let last_read = LastRead::ago(Duration::from_secs(silent_s));
            let connected = Connected::new(protocol);
            open.add(Connected {
                last_read,
                ..connected
            })
            .1
        };
        let busy = connect(LineProtocol::OpenTsdb, 59);
        assert!(!open.end_silent(LineProtocol::OpenTsdb));
        let other = connect(LineProtocol::Akumuli, 7200);
        let silent = connect(LineProtocol::OpenTsdb, 3600);
        let longest = connect(LineProtocol::OpenTsdb, 7000);
        let runtime = latewood_tls::runtime().unwrap();
        runtime.block_on(async {
            assert!(open.end_silent(LineProtocol::OpenTsdb));
            assert!(is_ended(&longest).await && !is_ended(&silent).await);
            assert!(open.end_silent(LineProtocol::OpenTsdb));
            assert!(is_ended(&silent).await);
            let has_both = open.end_silent(LineProtocol::OpenTsdb);
            assert!(!has_both, "both have given way");
            assert!(!is_ended(&busy).await && !is_ended(&other).await);
        });
    }

    #[test]
    fn protected_mode_keeps_other_machines_out() {
        let shared = test_shared();
        let is_barred = |peer: &str| is_barred(&shared, peer.parse().unwrap());
        for near in [
            "127.0.0.1:1",
            "127.3.2.1:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(!is_barred(near), "{near}");
        }
        let far = ["10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"];
        assert!(far.into_iter().all(is_barred));
        shared
            .runtime
            .protected_mode
            .store(false, Ordering::Relaxed);
        assert!(!far.into_iter().any(is_barred));
    }
}
