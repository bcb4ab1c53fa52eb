//! What a reply to a read waits for after its snapshots were taken: nothing on a plain server; a
//! lease where the log is in Kafka (`--read-lease`); that a follower is fresh still.
//!
//! A lease says that a record of the log proves that this server still owned it when the snapshot
//! was taken. Most replies have one at once. The others wait, without a thread, until the next
//! record is proven; after a while an error takes their place. Where other nodes may take over, all
//! that was read must be in the log as well. A follower that was fresh when the
//! command began may be stale when its snapshot is taken, and an owner may be none any more: then
//! an error that leads to the owner takes the place of the reply.
//!
//! Invariant: what waits is bounded by `clients.unproven`; a reply beyond it is refused at once.
//! Tested by `net/tests/leases.rs` and `net/tests/roles.rs`, and with two servers by
//! `tests/kafka/leases.rs`.

use crate::state::{Redirect, Shared};
use latewood_cluster::remote::Lease;
use std::fmt;
use std::sync::Arc;

/// What a client is told whose read waited in vain.
const UNPROVEN: &str = "the read was not answered, because Kafka did not confirm in \
    time that this server still owns the log; another one may have taken over";

/// Why a read of a follower is refused.
pub(crate) const BEHIND: &str = "this node has not read all of the log that an answer needs";
/// What a client is told whose read began before this node owned the log.
const TOOK_OVER: &str =
    "the read was not answered, because this server took the log over meanwhile";

/// For whom a read is answered, and as what it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    accepts_followers: bool,
    as_owner: bool,
    /// Of its first key.
    pub(super) slot: u16,
}

impl Default for Reading {
    /// On a plain server.
    fn default() -> Self {
        Self {
            accepts_followers: false,
            as_owner: true,
            slot: 0,
        }
    }
}

/// Whether what was read up to this moment may be answered.
pub(super) enum Proof {
    Given,
    /// Once there is a lease.
    Awaited(Unproven),
    /// Not here.
    Refused(Unanswered),
}

/// Why a read that was done is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It is to go there.
    Elsewhere(Redirect),
    TookOver,
    Unproven,
}

impl Unanswered {
    /// The line of the error that a client of Redis is told, about a key of this slot.
    fn line(&self, slot: u16) -> String {
        match self {
            Self::Elsewhere(to) => to.line(slot),
            Self::TookOver | Self::Unproven => format!("TRYAGAIN {self}"),
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere(to) => write!(f, "{BEHIND}; {to}"),
            Self::TookOver => f.write_str(TOOK_OVER),
            Self::Unproven => f.write_str(UNPROVEN),
        }
    }
}

/// A moment that no lease covers yet, or groups that are not proven to be in the log.
pub(super) struct Unproven {
    lease: Arc<Lease>,
    at_ns: u64,
    /// The newest group that may have been read.
    position: u64,
}

impl Unproven {
    async fn comes(self) -> bool {
        self.lease.comes_to_cover(self.at_ns, self.position).await
    }
}

impl Reading {
    /// One that begins now.
    pub(crate) fn new(shared: &Shared, accepts_followers: bool, slot: u16) -> Self {
        Self {
            accepts_followers,
            as_owner: shared.is_owner(),
            slot,
        }
    }

    /// Waits until what it read up to now may be answered.
    ///
    /// # Errors
    /// That it may not.
    pub(crate) async fn proven(self, shared: &Shared) -> Result<(), Unanswered> {
        match Proof::now(shared, self) {
            Proof::Given => Ok(()),
            Proof::Refused(why) => Err(why),
            Proof::Awaited(unproven) => {
                let is_proven = unproven.comes().await;
                is_proven.then_some(()).ok_or(Unanswered::Unproven)
            }
        }
    }
}

impl Proof {
    /// Of this moment, which is after the snapshots of a read were taken.
    pub(super) fn now(shared: &Shared, reading: Reading) -> Self {
        if !shared.is_owner() {
            let taken = shared.takes_reads(reading.accepts_followers);
            let refused = |to| Self::Refused(Unanswered::Elsewhere(to));
            return taken.map_or_else(refused, |()| Self::Given);
        }
        if !reading.as_owner {
            // How fresh its snapshots were cannot be told any more.
            return Self::Refused(Unanswered::TookOver);
        }
        let Some(lease) = shared.lease.get() else {
            return Self::Given;
        };
        // What another node may not have when it takes over is not shown.
        let is_shared = shared.node.get().is_some();
        let position = is_shared.then(|| shared.db.position().0);
        let (at_ns, position) = (lease.now_ns(), position.unwrap_or(0));
        if lease.covers_proven(at_ns, position) {
            return Self::Given;
        }
        Self::Awaited(Unproven {
            lease: Arc::clone(lease),
            at_ns,
            position,
        })
    }

    /// Whether the reply may go out as it is.
    pub(super) fn is_given(&self) -> bool {
        matches!(self, Self::Given)
    }

    /// Tells `tell` whether a reply of `bytes` bytes about a key of `slot` may be sent, as soon as
    /// that is known; the line of the error if not.
    pub(super) fn settle(
        self,
        shared: &Shared,
        (bytes, slot): (usize, u16),
        tell: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        let unproven = match self {
            Self::Given => return tell(Ok(())),
            Self::Refused(why) => return tell(Err(why.line(slot))),
            Self::Awaited(unproven) => unproven,
        };
        let refused = move || Err(Unanswered::Unproven.line(slot));
        let held = Arc::clone(&shared.clients.unproven);
        let (mut own, share_bytes) = (0, shared.db.reply_bytes_max());
        if held.grant(&mut own, bytes, share_bytes).is_err() {
            return tell(refused());
        }
        later(async move {
            let is_proven = unproven.comes().await;
            held.give_back(&mut own, usize::MAX);
            tell(if is_proven { Ok(()) } else { refused() });
        });
    }
}

/// Does `work`, which waits and does little else, on the runtime.
pub(crate) fn later(work: impl Future<Output = ()> + Send + 'static) {
    match latewood_tls::runtime() {
        Ok(runtime) => drop(runtime.spawn(work)),
        Err(error) => tracing::error!(%error, "cannot start the threads that wait for replies"),
    }
}
