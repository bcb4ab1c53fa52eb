//! The addresses, the threads that accept, and how all of it ends.

use super::akumuli::Akumuli;
use super::by_line::ByLine;
use super::connection::LastRead;
use super::influx::Influx;
use super::opentsdb::Telnet;
use super::speaker::{CONNECTIONS_MAX, Speaker, is_barred};
use super::{connection, datagrams};
use crate::base::clock::now_ms;
use crate::observe::Protocol;
use crate::state::Settings;
use crate::state::{Shared, Stop};
use latewood_tls::InForce;
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Silence after which the kernel asks whether a peer still lives.
const KEEPALIVE: Duration = Duration::from_secs(300);
/// Pause after the system refused a connection, and between looks at a
/// database that is still being opened.
const PAUSE: Duration = Duration::from_millis(50);

/// Silence after which a connection gives its place to a new one, where all are taken.
const GIVES_WAY: Duration = Duration::from_secs(60);
/// Bytes of datagrams that the kernel is asked to hold; it may hold fewer.
const DATAGRAMS_HELD_BYTES: usize = 8 << 20;

/// An address that is bound, and what is spoken there.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: Socket,
    protocol: Protocol,
}

#[derive(Debug)]
enum Socket {
    Connections(TcpListener, Security),
    Datagrams(UdpSocket),
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    Plain,
    Tls,
}

/// The threads that serve line protocols.
pub(crate) struct Serving {
    listeners: Vec<(Option<TcpListener>, JoinHandle<()>)>,
    open: Arc<Open>,
}

/// The connections at this moment, by number.
#[derive(Default)]
struct Open {
    connected: Mutex<HashMap<u64, Connected>>,
    numbers: AtomicU64,
}

/// One of them.
struct Connected {
    stream: TcpStream,
    protocol: Protocol,
    last_read: LastRead,
}

/// Binds the addresses of `settings`: none unless asked for.
///
/// # Errors
/// A sentence that names the address.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<Bound>, String> {
    let senders = &settings.senders;
    let wanted = [
        (&senders.opentsdb, Protocol::OpenTsdb, Security::Plain),
        (&senders.akumuli, Protocol::Akumuli, Security::Plain),
        (&senders.influx_tcp, Protocol::Influx, Security::Plain),
        (&senders.opentsdb_tls, Protocol::OpenTsdb, Security::Tls),
        (&senders.akumuli_tls, Protocol::Akumuli, Security::Tls),
        (&senders.influx_tls, Protocol::Influx, Security::Tls),
    ];
    let mut bound = Vec::new();
    for (address, protocol, security) in wanted {
        if let Some(address) = address {
            let listener = TcpListener::bind(address).map_err(|error| unbound(address, &error))?;
            let socket = Socket::Connections(listener, security);
            bound.push(Bound { socket, protocol });
        }
    }
    if let Some(address) = &senders.influx_udp {
        let socket = datagram_socket(address).map_err(|error| unbound(address, &error))?;
        bound.push(Bound {
            socket: Socket::Datagrams(socket),
            protocol: Protocol::Influx,
        });
    }
    Ok(bound)
}

fn unbound(address: &str, error: &io::Error) -> String {
    format!("cannot listen on {address}: {error}")
}

fn datagram_socket(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    SockRef::from(&socket).set_recv_buffer_size(DATAGRAMS_HELD_BYTES)?;
    Ok(socket)
}

impl Bound {
    /// The protocol and the address, as text.
    pub(crate) fn describe(&self) -> String {
        let address = match &self.socket {
            Socket::Connections(listener, _) => listener.local_addr(),
            Socket::Datagrams(socket) => socket.local_addr(),
        };
        let address = address.map_or_else(|error| error.to_string(), |a| a.to_string());
        format!("{}={address}", self.name())
    }

    fn name(&self) -> &'static str {
        match (&self.socket, self.protocol) {
            (Socket::Datagrams(_), _) => "influx-udp",
            (Socket::Connections(_, Security::Tls), Protocol::Influx) => "influx-tls",
            (Socket::Connections(_, Security::Tls), Protocol::Akumuli) => "akumuli-tls",
            (Socket::Connections(_, Security::Tls), _) => "opentsdb-tls",
            (_, Protocol::Influx) => "influx-tcp",
            (_, protocol) => protocol.name(),
        }
    }
}

impl Serving {
    /// Serves `bound` once the data is there.
    ///
    /// # Errors
    /// A sentence that says what could not be started.
    pub(crate) fn start(bound: Vec<Bound>, shared: &Arc<Shared>) -> Result<Self, String> {
        let open = Arc::new(Open::default());
        let mut listeners = Vec::new();
        for bound in bound {
            let name = bound.name();
            let failed = |error| format!("cannot serve {name}: {error}");
            let handle = match &bound.socket {
                Socket::Connections(listener, _) => Some(listener.try_clone().map_err(failed)?),
                Socket::Datagrams(_) => None,
            };
            let (shared, open) = (Arc::clone(shared), Arc::clone(&open));
            let thread = thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || guarded(&shared, || run(&bound, &shared, &open)))
                .map_err(failed)?;
            listeners.push((handle, thread));
        }
        Ok(Self { listeners, open })
    }

    /// Ends every connection and waits for the threads. `Shared::stopping`
    /// must be set before.
    pub(crate) fn stop(self) {
        for (listener, thread) in self.listeners {
            if let Some(listener) = listener {
                // A listener that is shut down accepts nothing any more.
                let _ = SockRef::from(&listener).shutdown(Shutdown::Both);
            }
            // A panic of the thread stopped the server and was told.
            let _ = thread.join();
        }
        for connected in self.open.connected.lock().values() {
            let _ = connected.stream.shutdown(Shutdown::Both);
        }
        while !self.open.connected.lock().is_empty() {
            thread::sleep(PAUSE / 10);
        }
    }
}

impl Open {
    fn count(&self, protocol: Protocol) -> usize {
        let open = self.connected.lock();
        open.values().filter(|of| of.protocol == protocol).count()
    }

    /// Ends the connection that has been silent for the longest, if that is long enough; whether
    /// it did.
    fn end_silent(&self, protocol: Protocol) -> bool {
        let open = self.connected.lock();
        let of_protocol = open.values().filter(|of| of.protocol == protocol);
        let silent = of_protocol.max_by_key(|of| of.last_read.elapsed());
        let silent = silent.filter(|of| of.last_read.elapsed() >= GIVES_WAY);
        if let Some(silent) = silent {
            silent.last_read.note();
            let _ = silent.stream.shutdown(Shutdown::Both);
        }
        silent.is_some()
    }
}

/// Waits for the data and serves one address until the server stops.
fn run(bound: &Bound, shared: &Arc<Shared>, open: &Arc<Open>) {
    while shared.db.is_loading() && !shared.lifetime.stopping.load(Ordering::Acquire) {
        thread::sleep(PAUSE);
    }
    match &bound.socket {
        Socket::Connections(listener, security) => {
            accept(listener, (bound.protocol, *security), shared, open);
        }
        Socket::Datagrams(socket) if !shared.db.is_loading() => {
            let precision = shared.settings.senders.influx_precision;
            if let Err(error) = datagrams::serve(socket, precision, shared) {
                let why = format!("the socket of {} failed: {error}", bound.name());
                shared.lifetime.stop(Stop::Crashed(why));
            }
        }
        Socket::Datagrams(_) => {}
    }
}

fn accept(
    listener: &TcpListener,
    (protocol, security): (Protocol, Security),
    shared: &Arc<Shared>,
    open: &Arc<Open>,
) {
    let stopping = || shared.lifetime.stopping.load(Ordering::Acquire);
    while !stopping() {
        match listener.accept() {
            Ok((stream, peer)) => {
                begin(stream, peer, (protocol, security), shared, open);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if stopping() => return,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again");
                thread::sleep(PAUSE);
            }
        }
    }
}

fn begin(
    mut stream: TcpStream,
    peer: SocketAddr,
    (protocol, security): (Protocol, Security),
    shared: &Arc<Shared>,
    open: &Arc<Open>,
) {
    let counters = shared.protocols.lines.of(protocol);
    counters.accepted.fetch_add(1, Ordering::Relaxed);
    let mut connected = open.count(protocol);
    if connected >= CONNECTIONS_MAX && open.end_silent(protocol) {
        tracing::warn!(
            protocol = protocol.name(),
            "closed a silent connection for a new one"
        );
        connected -= 1;
    }
    let tls = match security {
        Security::Plain => None,
        Security::Tls => shared.tls.in_force(),
    };
    let has_login = tls.as_ref().is_some_and(|tls| tls.maps_users);
    if let Some(text) = refusal(shared, (&stream, has_login), peer, connected) {
        counters.rejected.note(now_ms());
        tracing::debug!(%peer, text, "refused a connection");
        if security == Security::Plain {
            // The peer may be gone already; there is nobody else to tell.
            let _ = stream.write_all(format!("-ERR {text}\r\n").as_bytes());
        }
        return;
    }
    if let Err(error) = spawn(stream, (protocol, tls), shared, open) {
        tracing::warn!(%peer, %error, "cannot serve a connection");
    }
}

fn spawn(
    stream: TcpStream,
    (protocol, tls): (Protocol, Option<InForce>),
    shared: &Arc<Shared>,
    open: &Arc<Open>,
) -> io::Result<()> {
    let socket = SockRef::from(&stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    // A peer that has gone already sends nothing.
    let address = stream.peer_addr().map(|peer| peer.ip());
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let number = open.numbers.fetch_add(1, Ordering::Relaxed);
    let last_read = LastRead::default();
    let connected = Connected {
        stream: stream.try_clone()?,
        protocol,
        last_read: last_read.clone(),
    };
    open.connected.lock().insert(number, connected);
    let (shared, threads_open) = (Arc::clone(shared), Arc::clone(open));
    let run = move || {
        let speaker: Box<dyn Speaker> = match protocol {
            Protocol::Akumuli => Box::new(ByLine::new(Akumuli::new(&shared))),
            Protocol::Influx => Box::new(Influx::new(shared.settings.senders.influx_precision)),
            _ => Box::new(ByLine::new(Telnet::default())),
        };
        let counters = shared.protocols.lines.of(protocol);
        counters.open.fetch_add(1, Ordering::Relaxed);
        guarded(&shared, || {
            let source = (protocol, address, &last_read);
            let served = match tls {
                None => connection::serve_plain(stream, &shared, source, speaker),
                Some(tls) => connection::serve_tls(stream, tls, &shared, source, speaker),
            };
            match served {
                Ok(()) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    shared.counters.timeouts.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => tracing::debug!(%error, "a connection ended"),
            }
        });
        counters.open.fetch_sub(1, Ordering::Relaxed);
        // Before the entry goes: the server stops once there is none.
        drop(shared);
        threads_open.connected.lock().remove(&number);
    };
    let spawned = thread::Builder::new()
        .name(format!("{}-{number}", protocol.name()))
        .spawn(run);
    if spawned.is_err() {
        open.connected.lock().remove(&number);
    }
    spawned.map(drop)
}

/// Why a peer is not served.
fn refusal(
    shared: &Shared,
    (stream, has_login): (&TcpStream, bool),
    peer: SocketAddr,
    connected: usize,
) -> Option<&'static str> {
    if connected >= CONNECTIONS_MAX || shared.runtime.is_full(connected, stream) {
        Some("too many connections to this address")
    } else if !has_login && is_barred(shared, peer) {
        Some(
            "protected mode: this protocol has no password, so only senders on the server's own \
             machine are served. If the network is trusted, start it with --protected-mode off",
        )
    } else {
        None
    }
}

/// Runs `body`; its panic stops the server.
fn guarded(shared: &Shared, body: impl FnOnce()) {
    // Nothing of what panicked is used again: the process ends.
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        shared.lifetime.stop(Stop::Crashed(
            "a thread of a line protocol panicked".to_owned(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing::shared as test_shared;
    use std::io::Read;

    #[test]
    fn the_longest_silent_connection_gives_way_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = Open::default();
        let connect = |number, protocol, silent_s| {
            let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let connected = Connected {
                stream: listener.accept().unwrap().0,
                protocol,
                last_read: LastRead::ago(Duration::from_secs(silent_s)),
            };
            open.connected.lock().insert(number, connected);
            far
        };
        let _busy = connect(1, Protocol::OpenTsdb, 59);
        assert!(!open.end_silent(Protocol::OpenTsdb));
        let _other = connect(2, Protocol::Akumuli, 7200);
        let _silent = connect(3, Protocol::OpenTsdb, 3600);
        let mut longest = connect(4, Protocol::OpenTsdb, 7000);
        assert!(open.end_silent(Protocol::OpenTsdb));
        assert_eq!(longest.read(&mut [0]).unwrap(), 0);
        assert!(open.end_silent(Protocol::OpenTsdb));
        assert!(!open.end_silent(Protocol::OpenTsdb), "both have given way");
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
