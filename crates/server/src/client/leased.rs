//! What a reply to a read waits for after its snapshots were taken: nothing on a plain server; a
//! lease where the log is in Kafka (`--read-lease`); that a follower is fresh still.
//!
//! A lease says that a record of the log proves that this server still owned it when the snapshot
//! was taken. Most replies have one at once. The others wait, without a thread, until the next
//! record is proven; after a while an error takes their place. With `--reads proven`, the default,
//! all that was read must be in the log as well, so that nothing vanishes when another node takes
//! over; with `strict` a record that was sent since the command began must be, too, whatever clocks
//! say. A follower that was fresh when the command began may be stale when its snapshot is taken, and an owner may be none any more: then
//! an error that leads to the owner takes the place of the reply.
//!
//! Invariant: what waits is bounded by `clients.unproven`; a reply beyond it is refused at once.
//! Tested by `net/tests/leases.rs` and `net/tests/roles.rs`, and with two servers by
//! `tests/kafka/leases.rs`.

use crate::state::{Reads, Redirect, Shared};
use latewood_cluster::remote::{Lease, Shown};
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
    /// The first record of the owner that was sent after it began, if its replies need any.
    record: Option<u64>,
    /// Of its first key.
    pub(super) slot: u16,
}

impl Default for Reading {
    /// On a plain server.
    fn default() -> Self {
        Self {
            accepts_followers: false,
            as_owner: true,
            record: None,
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

/// What no lease covers yet, or what is not proven to be in the log.
pub(super) struct Unproven {
    lease: Arc<Lease>,
    shown: Shown,
}

impl Unproven {
    async fn comes(self) -> bool {
        self.lease.comes_to_show(self.shown).await
    }
}

impl Reading {
    /// One that begins now.
    pub(crate) fn new(shared: &Shared, accepts_followers: bool, slot: u16) -> Self {
        Self {
            accepts_followers,
            as_owner: shared.is_owner(),
            record: shared.lease.get().map(|lease| lease.next_record()),
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
        let reads = shared.runtime.reads();
        let shown = Shown {
            at_ns: lease.now_ns(),
            position: match reads {
                // What another node may not have when it takes over is not shown.
                Reads::Proven | Reads::Strict => shared.db.position().0,
                Reads::Unproven => 0,
            },
            record: match reads {
                // One that was asked for after it began will do as well.
                Reads::Strict => reading.record.unwrap_or_else(|| lease.next_record()),
                Reads::Proven | Reads::Unproven => 0,
            },
        };
        if lease.shows(&shown) {
            return Self::Given;
        }
        Self::Awaited(Unproven {
            lease: Arc::clone(lease),
            shown,
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
