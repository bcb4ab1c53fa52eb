//! One connection: what arrives is a batch, and the answers go back.

use super::speaker::{Next, Speaker, intake_of};
use crate::observe::Protocol;
use crate::state::Shared;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
const NOT_HTTP: &[u8] = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n\
    this port does not speak HTTP\n";

/// Serves a connection until it ends.
///
/// # Errors
/// Those of the socket; `WouldBlock` where the peer was idle for too long.
pub(super) fn serve(
    mut stream: TcpStream,
    shared: &Arc<Shared>,
    protocol: Protocol,
    mut speaker: Box<dyn Speaker>,
) -> io::Result<()> {
    let idle_s = shared.runtime.idle_timeout_s.load(Ordering::Relaxed);
    stream.set_read_timeout((idle_s > 0).then(|| Duration::from_secs(idle_s)))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let users = &shared.runtime.users;
    let intake = || intake_of(shared, protocol);
    let (mut epoch, mut intake_now) = (users.epoch(), intake());
    // Pages that no sender fills are not taken from the system.
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut held, mut out, mut is_first) = (0, Vec::new(), true);
    let ended = loop {
        let got = match stream.read(&mut buffer[held..]) {
            Ok(0) => break Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break Err(error),
        };
        shared.pause.wait(&shared.lifetime.stopping);
        if users.epoch() != epoch {
            (epoch, intake_now) = (users.epoch(), intake());
        }
        intake_now.begin();
        let arrived = &buffer[..held + got];
        if is_first
            && HTTP_METHODS
                .iter()
                .any(|method| arrived.starts_with(method))
        {
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
