//! Leases of reads (`--read-lease`): a reply that was made is sent once a record of the log proves
//! that this server still owned it when the snapshot was taken.
//!
//! Most have a lease at once. The others wait, without a thread, until the next record is proven;
//! after a while an error takes their place.
//!
//! Invariant: what waits is bounded by `clients.unproven`; a reply beyond it is refused at once.
//! Tested by `net/tests/leases.rs`, and with two servers by `tests/kafka/leases.rs`.

use crate::state::Shared;
use latewood_cluster::remote::Lease;
use std::sync::Arc;

/// What a client is told whose read waited in vain.
pub(crate) const UNPROVEN: &str = "the read was not answered, because Kafka did not confirm in \
    time that this server still owns the log; another one may have taken over";

/// A moment that no lease covers yet.
pub(super) struct Unproven {
    lease: Arc<Lease>,
    at_ns: u64,
}

impl Unproven {
    /// This moment, which is after the snapshots of a read were taken, if it has no lease.
    pub(super) fn now(shared: &Shared) -> Option<Self> {
        let lease = shared.lease.get()?;
        let at_ns = lease.now_ns();
        (!lease.covers(at_ns)).then(|| Self {
            lease: Arc::clone(lease),
            at_ns,
        })
    }

    /// Tells `tell` whether a reply of `bytes` bytes may be sent, as soon as that is known.
    pub(super) fn settle(
        self,
        shared: &Shared,
        bytes: usize,
        tell: impl FnOnce(bool) + Send + 'static,
    ) {
        let held = Arc::clone(&shared.clients.unproven);
        let (mut own, share_bytes) = (0, shared.db.reply_bytes_max());
        if held.grant(&mut own, bytes, share_bytes).is_err() {
            return tell(false);
        }
        later(async move {
            let is_proven = self.lease.comes_to_cover(self.at_ns).await;
            held.give_back(&mut own, usize::MAX);
            tell(is_proven);
        });
    }
}

/// Does `work`, which waits and does little else, on the runtime.
pub(super) fn later(work: impl Future<Output = ()> + Send + 'static) {
    match latewood_tls::runtime() {
        Ok(runtime) => drop(runtime.spawn(work)),
        Err(error) => tracing::error!(%error, "cannot start the threads that wait for replies"),
    }
}
