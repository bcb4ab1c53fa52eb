//! One connection: what arrives is a batch, and the answers go back.

use super::speaker::{Next, Speaker, intake_from};
use crate::acl::User;
use crate::observe::Protocol;
use crate::state::Shared;
use latewood_tls::rustls::{ServerConnection, StreamOwned};
use latewood_tls::{InForce, common_name};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is read at a time, at most: a batch of some thousand samples.
const BUFFER_BYTES: usize = 256 * 1024;
/// Memory for answers that a connection keeps from one batch to the next.
const OUT_BYTES_KEPT: usize = 16 * 1024;
/// How long a peer may leave its errors unread before it is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a browser begins a connection with. Pages of others could send lines to this
/// port in the body of a request.
const HTTP_METHODS: [&[u8]; 6] = [
    b"GET ",
    b"POST ",
    b"PUT ",
    b"HEAD ",
    b"OPTIONS ",
    b"CONNECT ",
];
const NO_USER: &str = "the certificate names no user who is on";
const NOT_HTTP: &[u8] = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n\
    this port does not speak HTTP\n";

/// Time a peer has to agree on keys.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// When whole lines of a connection were last worked off: bytes that make none do not count.
#[derive(Clone)]
pub(super) struct LastRead {
    began: Instant,
    after_ms: Arc<AtomicU64>,
}

impl Default for LastRead {
    fn default() -> Self {
        let (began, after_ms) = (Instant::now(), Arc::default());
        Self { began, after_ms }
    }
}

impl LastRead {
    /// Notes that something is worked off: so long the peer is not silent. What was noted
    /// before.
    fn begin(&self) -> u64 {
        self.after_ms.swap(u64::MAX, Ordering::Relaxed)
    }

    /// Notes again what was noted before: nothing was whole. The time that the server
    /// made the peer wait does not count.
    fn end_in_vain(&self, before: u64, waited: Duration) {
        let after_ms = before.saturating_add(waited.as_millis() as u64);
        self.after_ms.store(after_ms, Ordering::Relaxed);
    }

    /// Notes that it is worked off now.
    pub(super) fn note(&self) {
        let after_ms = self.began.elapsed().as_millis() as u64;
        self.after_ms.store(after_ms, Ordering::Relaxed);
    }

    /// One that began so long ago, and was silent since.
    #[cfg(test)]
    pub(super) fn ago(time: Duration) -> Self {
        Self {
            began: Instant::now().checked_sub(time).unwrap(),
            ..Self::default()
        }
    }

    /// How long that is ago.
    pub(super) fn elapsed(&self) -> Duration {
        let after = Duration::from_millis(self.after_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(after)
    }
}

/// Whose lines a connection brings.
enum Sender {
    /// Those of `default`.
    Anybody,
    /// Those of the user of this name, in its certificate.
    Named(String),
}

impl Sender {
    /// The user as it is now; `None` where it is gone or off.
    fn user(&self, shared: &Shared) -> Option<Arc<User>> {
        match self {
            Self::Anybody => Some(shared.runtime.users.default_user()),
            Self::Named(name) => shared.user_of(name),
        }
    }
}

/// Serves a connection until it ends.
///
/// # Errors
/// Those of the socket; `WouldBlock` where the peer was idle for too long.
pub(super) fn serve_plain(
    mut stream: TcpStream,
    shared: &Arc<Shared>,
    source: (Protocol, IpAddr, &LastRead),
    speaker: Box<dyn Speaker>,
) -> io::Result<()> {
    set_timeouts(&stream, shared)?;
    serve(&mut stream, shared, source, &Sender::Anybody, speaker)
}

/// Serves an encrypted connection until it ends. Where names in certificates are users', it
/// needs one.
///
/// # Errors
/// Those of [`serve_plain`] and of the handshake.
pub(super) fn serve_tls(
    mut stream: TcpStream,
    tls: InForce,
    shared: &Arc<Shared>,
    (protocol, address, last_read): (Protocol, IpAddr, &LastRead),
    speaker: Box<dyn Speaker>,
) -> io::Result<()> {
    let mut config = (*tls.config).clone();
    // Senders that never read would leave tickets unread: then the kernel resets the connection
    // at its end, and drops what has not arrived.
    config.send_tls13_tickets = 0;
    let session = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
    let session = agree(session, &mut stream).inspect_err(|error| {
        shared.tls.failed.fetch_add(1, Ordering::Relaxed);
        if let (ErrorKind::InvalidData, Ok(peer)) = (error.kind(), stream.peer_addr()) {
            shared.tell_handshake(peer, error);
        }
    })?;
    let name = common_name(session.peer_certificates()).filter(|_| tls.maps_users);
    let sender = match name {
        _ if !tls.maps_users => Sender::Anybody,
        Some(name) if shared.user_of(&name).is_some() => Sender::Named(name),
        name => {
            let name = name.unwrap_or_default();
            let log = &shared.runtime.users.log;
            log.note_sender(protocol.name(), None, b"TLS", name.as_bytes());
            return Err(io::Error::other(NO_USER));
        }
    };
    set_timeouts(&stream, shared)?;
    let mut stream = StreamOwned::new(session, stream);
    let source = (protocol, address, last_read);
    let served = serve(&mut stream, shared, source, &sender, speaker);
    // So that the peer can tell an end from a cut; it may be gone already.
    stream.conn.send_close_notify();
    let _ = stream.conn.write_tls(&mut stream.sock);
    served
}

/// Ends the handshake, within [`HANDSHAKE_MAX`].
fn agree(mut session: ServerConnection, stream: &mut TcpStream) -> io::Result<ServerConnection> {
    let begun = Instant::now();
    stream.set_write_timeout(Some(HANDSHAKE_MAX))?;
    while session.is_handshaking() || session.wants_write() {
        if session.wants_write() {
            session.write_tls(stream)?;
            continue;
        }
        let left = HANDSHAKE_MAX.checked_sub(begun.elapsed());
        let left = left.filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
        if session.read_tls(stream)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = session.process_new_packets() {
            // The alert says what is wrong; the peer may be gone already.
            let _ = session.write_tls(stream);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
    Ok(session)
}

fn set_timeouts(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let idle_s = shared.runtime.idle_timeout_s.load(Ordering::Relaxed);
    stream.set_read_timeout((idle_s > 0).then(|| Duration::from_secs(idle_s)))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))
}

/// Whether the first bytes of a connection are those of a request.
fn is_http(bytes: &[u8]) -> bool {
    HTTP_METHODS.iter().any(|method| bytes.starts_with(method))
}

fn serve(
    stream: &mut (impl Read + Write),
    shared: &Arc<Shared>,
    (protocol, address, last_read): (Protocol, IpAddr, &LastRead),
    sender: &Sender,
    mut speaker: Box<dyn Speaker>,
) -> io::Result<()> {
    let users = &shared.runtime.users;
    let intake = || {
        let user = sender
            .user(shared)
            .ok_or_else(|| io::Error::other(NO_USER))?;
        Ok::<_, io::Error>(intake_from(shared, protocol, user, address))
    };
    let (mut epoch, mut intake_now) = (users.epoch(), intake()?);
    // Pages that no sender fills are not taken from the system.
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut held, mut out, mut is_first) = (0, Vec::new(), true);
    let ended = loop {
        let got = match stream.read(&mut buffer[held..]) {
            Ok(0) => break Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // An encrypted connection that ends without a word, as many senders do.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break Ok(()),
            Err(error) => break Err(error),
        };
        let begun = Instant::now();
        let before = last_read.begin();
        shared.pause.wait(&shared.lifetime.stopping);
        let waited = begun.elapsed();
        if users.epoch() != epoch {
            (epoch, intake_now) = (users.epoch(), intake()?);
        }
        intake_now.begin();
        let arrived = &buffer[..held + got];
        if is_first && is_http(arrived) {
            tracing::warn!(
                protocol = protocol.name(),
                "closed a connection that speaks HTTP"
            );
            return stream.write_all(NOT_HTTP);
        }
        is_first &= !arrived.contains(&b'\n');
        let (taken, next) = speaker.read(arrived, &mut intake_now, shared, &mut out);
        speaker.answer(&intake_now.finish(), &mut out);
        let counters = shared.protocols.intake.of(protocol);
        counters.bytes.fetch_add(taken as u64, Ordering::Relaxed);
        buffer.copy_within(taken..held + got, 0);
        held = held + got - taken;
        stream.write_all(&out)?;
        out.clear();
        out.shrink_to(OUT_BYTES_KEPT);
        match taken {
            0 => last_read.end_in_vain(before, waited),
            _ => last_read.note(),
        }
        if next == Next::Close {
            return Ok(());
        }
    };
    intake_now.begin();
    speaker.end(&buffer[..held], &mut intake_now);
    speaker.answer(&intake_now.finish(), &mut out);
    // A peer that has ended its own side may still read.
    ended.and(stream.write_all(&out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::by_line::ByLine;
    use crate::lines::opentsdb::Telnet;
    use crate::options::testing;
    use std::io::Cursor;

    /// A stream that takes all and brings what it is given.
    struct Sent(Cursor<Vec<u8>>);

    impl Read for Sent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_sends_bytes_and_no_line_is_silent() {
        let shared = testing::shared();
        for (sent, is_silent) in [("put a", true), ("put a 1 1 host=a\nput", false)] {
            let last_read = LastRead::ago(Duration::from_secs(3600));
            let mut stream = Sent(Cursor::new(sent.into()));
            let speaker = Box::new(ByLine::new(Telnet::default()));
            let source = (Protocol::OpenTsdb, IpAddr::from([127, 0, 0, 1]), &last_read);
            serve(&mut stream, &shared, source, &Sender::Anybody, speaker).unwrap();
            let silent = last_read.elapsed() > Duration::from_secs(3000);
            assert_eq!(silent, is_silent, "{sent}");
        }
    }

    #[test]
    fn who_waits_for_the_end_of_a_pause_is_not_silent() {
        const PAUSE: Duration = Duration::from_millis(50);
        let (shared, last_read) = (testing::shared(), LastRead::default());
        let until = Instant::now() + Duration::from_secs(3600);
        shared.pause.begin(until, false);
        std::thread::scope(|threads| {
            let sender = threads.spawn(|| {
                let mut stream = Sent(Cursor::new("put a".into()));
                let speaker = Box::new(ByLine::new(Telnet::default()));
                let source = (Protocol::OpenTsdb, IpAddr::from([127, 0, 0, 1]), &last_read);
                serve(&mut stream, &shared, source, &Sender::Anybody, speaker)
            });
            while last_read.after_ms.load(Ordering::Relaxed) != u64::MAX {
                std::thread::yield_now();
            }
            std::thread::sleep(PAUSE);
            shared.pause.end();
            sender.join().unwrap().unwrap();
        });
        let after_ms = last_read.after_ms.load(Ordering::Relaxed);
        assert!(Duration::from_millis(after_ms) >= PAUSE);
    }
}
