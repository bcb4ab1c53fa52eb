//! InfluxDB line protocol in datagrams: each holds whole lines.
//!
//! What has arrived is one batch, so that many small datagrams cost what a large
//! one does. Nothing is answered. What the kernel has no room for is lost before
//! it comes here; while a batch waits for memory or for the disk, that may be. What comes to a node
//! that does not own the log is dropped and counted.

use super::speaker::{blocking, intake_for, is_barred, takes_none, user_for};
use crate::acl::User;
use crate::intake::EngineIntake;
use crate::state::{LinePort, LineProtocol, Shared};
use latewood_wire::influx::Decoder;
use latewood_wire::intake::{Intake, Reason};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// More bytes than any datagram holds.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;
/// Bytes after which what has arrived is applied.
const BATCH_BYTES: usize = 256 * 1024;
/// Pause after the socket failed.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes what comes to `socket` until `stop` says so.
///
/// # Errors
/// Those of the socket that no further try would mend.
pub(super) async fn serve(
    socket: UdpSocket,
    port: LinePort,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut receiver = Receiver::new(socket, port, shared);
    loop {
        let is_last = tokio::select! {
            biased;
            // An error says that nobody is left to say it.
            _ = stop.wait_for(|stop| *stop) => true,
            ready = receiver.socket.readable() => ready.map(|()| false)?,
        };
        let shared = &receiver.shared;
        shared.pause.ended(&shared.lifetime.stopping).await;
        let received;
        (receiver, received) = blocking(move || {
            let received = receiver.batch();
            (receiver, received)
        })
        .await;
        // What came before the stop was asked for is still taken.
        if is_last {
            return Ok(());
        }
        if let Err(error) = received {
            // Nobody can be told, and the next datagram may do.
            tracing::warn!(%error, "cannot receive a datagram");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A socket, and what becomes of its datagrams. Goes to a thread that may block for each batch,
/// and comes back.
struct Receiver {
    socket: UdpSocket,
    port: LinePort,
    shared: Arc<Shared>,
    /// With whose rights is written, as of the epoch; or that there is no such user.
    user: Result<Arc<User>, String>,
    intake: EngineIntake,
    epoch: u64,
    buffer: Vec<u8>,
}

impl Receiver {
    fn new(socket: UdpSocket, port: LinePort, shared: Arc<Shared>) -> Self {
        let user = user_for(&shared, port.user.as_deref());
        Self {
            intake: intake(&shared, &user),
            epoch: shared.runtime.users.epoch(),
            user,
            socket,
            port,
            shared,
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        }
    }

    /// Applies what has arrived, but does not go on without end. May block.
    fn batch(&mut self) -> io::Result<()> {
        let epoch = self.shared.runtime.users.epoch();
        if epoch != self.epoch {
            self.user = user_for(&self.shared, self.port.user.as_deref());
            (self.epoch, self.intake) = (epoch, intake(&self.shared, &self.user));
        }
        self.intake.begin();
        let received = self.receive();
        self.intake.finish();
        received
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut taken = 0;
        while taken < BATCH_BYTES {
            let (bytes, peer) = match self.socket.try_recv_from(&mut self.buffer) {
                Ok(got) => got,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    // What an ICMP message says of a datagram means nothing here.
                    ErrorKind::Interrupted | ErrorKind::ConnectionRefused => continue,
                    _ => return Err(error),
                },
            };
            taken += bytes.max(1);
            if let Err(to) = self.shared.takes_writes() {
                self.intake.sent_by(peer.ip(), b"");
                let text = format_args!("a datagram of {peer}: {}", takes_none(&to));
                self.intake.refuse(1, Reason::Follower, text);
                continue;
            }
            let user = match &self.user {
                _ if is_barred(&self.shared, peer) => {
                    Err("protected mode serves this machine only")
                }
                Ok(user) => Ok(user),
                Err(reason) => Err(reason.as_str()),
            };
            match user {
                Ok(user) => self.intake.sent_by(peer.ip(), &user.name),
                Err(reason) => {
                    self.intake.sent_by(peer.ip(), b"");
                    let text = format_args!("a datagram of {peer}: {reason}");
                    self.intake.refuse(1, Reason::Permission, text);
                    continue;
                }
            }
            // Lines are counted in each datagram.
            let mut decoder = Decoder::new(self.port.precision);
            decoder.decode(&self.buffer[..bytes], true, &mut self.intake);
            let protocol = LineProtocol::InfluxUdp.counted_as();
            let counters = self.shared.protocols.intake.of(protocol);
            counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Where nobody has the rights, `default` stands for them: nothing is given to it.
fn intake(shared: &Arc<Shared>, user: &Result<Arc<User>, String>) -> EngineIntake {
    let user = user
        .as_ref()
        .map_or_else(|_| shared.runtime.users.default_user(), Arc::clone);
    intake_for(shared, LineProtocol::InfluxUdp, &user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing;
    use latewood_cluster::node::{NodeId, Role};
    use latewood_wire::influx::Precision;

    #[test]
    fn a_datagram_at_a_follower_is_dropped_and_counted() {
        let shared = testing::shared();
        let (node, _) = testing::follow(&shared);
        let port = LinePort {
            protocol: LineProtocol::InfluxUdp,
            address: String::new(),
            is_tls: false,
            user: None,
            precision: Precision::Milliseconds,
        };
        let runtime = latewood_tls::runtime().unwrap();
        runtime.block_on(async {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let mut receiver = Receiver::new(socket, port, Arc::clone(&shared));
            let counters = shared
                .protocols
                .intake
                .of(LineProtocol::InfluxUdp.counted_as());
            let dropped = || counters.refused[Reason::Follower as usize].load(Ordering::Relaxed);
            for (role, owner, wanted) in [
                (Role::Follower, Some(2), (1, 0)),
                (Role::Loading, None, (2, 0)),
                (Role::Owner, Some(1), (2, 1)),
            ] {
                node.change(|standing| {
                    standing.role = role;
                    standing.owner = owner.map(|id| NodeId([id; 20]));
                });
                sender.send_to(b"m v=1 5\nm v=2 6", address).await.unwrap();
                receiver.socket.readable().await.unwrap();
                receiver.batch().unwrap();
                assert_eq!((dropped(), shared.db.len()), wanted, "{role:?}");
            }
        });
    }
}
