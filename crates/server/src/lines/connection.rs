//! One connection: bytes to lines to batches, and the answers back.

use super::{LINE_BYTES_MAX, Next, Speaker};
use crate::intake::{EngineIntake, Protocol};
use crate::shared::Shared;
use latewood_wire::lines::{Lines, Step};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is read at a time, at most: a batch of some thousand samples.
const BUFFER_BYTES: usize = 256 * 1024;
/// How long a peer may leave its errors unread before it is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

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
    let intake = || EngineIntake::new(Arc::clone(shared), protocol, Some(users.default_user()));
    let (mut epoch, mut intake_now) = (users.epoch(), intake());
    let mut lines = Lines::new(LINE_BYTES_MAX);
    // Pages that no sender fills are not taken from the system.
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut held, mut out) = (0, Vec::new());
    loop {
        let got = match stream.read(&mut buffer[held..]) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        shared
            .counters
            .bytes_in
            .fetch_add(got as u64, Ordering::Relaxed);
        if users.epoch() != epoch {
            (epoch, intake_now) = (users.epoch(), intake());
        }
        let arrived = &buffer[..held + got];
        let (taken, next) = read(
            arrived,
            &mut lines,
            &mut *speaker,
            &mut intake_now,
            shared,
            &mut out,
        );
        let counters = shared.intake.of(protocol);
        counters.bytes.fetch_add(taken as u64, Ordering::Relaxed);
        buffer.copy_within(taken..held + got, 0);
        held = held + got - taken;
        stream.write_all(&out)?;
        shared
            .counters
            .bytes_out
            .fetch_add(out.len() as u64, Ordering::Relaxed);
        out.clear();
        if next == Next::Close {
            return Ok(());
        }
    }
}

/// Applies the whole lines of what has arrived; how many bytes they took.
fn read(
    arrived: &[u8],
    lines: &mut Lines,
    speaker: &mut dyn Speaker,
    intake: &mut EngineIntake,
    shared: &Shared,
    out: &mut Vec<u8>,
) -> (usize, Next) {
    intake.begin();
    let (mut taken, mut next) = (0, Next::Line);
    while next == Next::Line {
        let (step, bytes) = lines.step(&arrived[taken..]);
        taken += bytes;
        let number = u32::try_from(lines.number()).unwrap_or(u32::MAX);
        match step {
            Step::More => break,
            Step::Line(line) => next = speaker.line(line, number, intake, shared, out),
            Step::TooLong => speaker.too_long(number, intake),
        }
    }
    let report = intake.finish();
    speaker.answer(&report, out);
    (taken, next)
}
