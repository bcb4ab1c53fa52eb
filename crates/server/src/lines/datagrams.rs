//! InfluxDB line protocol in datagrams: each holds whole lines.
//!
//! What has arrived is one batch, so that many small datagrams cost what a large
//! one does. Nothing is answered. What the kernel has no room for is lost before
//! it comes here; while a batch waits for memory or for the disk, that may be.

use super::speaker::{intake_of, is_barred};
use crate::acl::DEFAULT;
use crate::intake::EngineIntake;
use crate::observe::{Protocol, Route};
use crate::state::Shared;
use latewood_wire::influx::{Decoder, Precision};
use latewood_wire::intake::{Intake, Reason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// More bytes than any datagram holds.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;
/// Bytes after which what has arrived is applied.
const BATCH_BYTES: usize = 256 * 1024;
/// How often a socket at rest looks whether the server stops.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Takes what comes to `socket`, which does not block, until the server stops.
///
/// # Errors
/// Those of the socket that no further try would mend.
pub(super) fn serve(
    socket: &UdpSocket,
    precision: Precision,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let users = &shared.runtime.users;
    let intake = || {
        let user = shared.runtime.users.default_user();
        intake_of(shared, (Protocol::Influx, Route::InfluxUdp), user)
    };
    let (mut epoch, mut intake_now) = (users.epoch(), intake());
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    // What came before the stop was asked for is still taken.
    let mut is_last = false;
    while !is_last {
        is_last = shared.lifetime.stopping.load(Ordering::Acquire);
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        shared.pause.wait(&shared.lifetime.stopping);
        if users.epoch() != epoch {
            (epoch, intake_now) = (users.epoch(), intake());
        }
        intake_now.begin();
        batch(socket, precision, shared, &mut buffer, &mut intake_now);
        intake_now.finish();
    }
    Ok(())
}

/// Reads what has arrived, but not for ever.
fn batch(
    socket: &UdpSocket,
    precision: Precision,
    shared: &Shared,
    buffer: &mut [u8],
    intake: &mut EngineIntake,
) {
    let mut taken = 0;
    while taken < BATCH_BYTES {
        let (bytes, peer) = match socket.recv_from(buffer) {
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // What an ICMP message says of a datagram means nothing here.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                ) =>
            {
                continue;
            }
            Err(error) => {
                // Nobody can be told, and the next datagram may do.
                tracing::warn!(%error, "cannot receive a datagram");
                thread::sleep(Duration::from_millis(100));
                break;
            }
        };
        taken += bytes.max(1);
        if is_barred(shared, peer) {
            let text =
                format_args!("a datagram of {peer}: protected mode serves this machine only");
            intake.refuse(1, Reason::Permission, text);
            continue;
        }
        intake.sent_by(peer.ip(), DEFAULT);
        // Lines are counted in each datagram.
        Decoder::new(precision).decode(&buffer[..bytes], true, intake);
        let counters = shared.protocols.intake.of(Protocol::Influx);
        counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
