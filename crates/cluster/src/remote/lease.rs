//! The lease of an owner: until when it may answer reads.
//!
//! A record that counts proves that nobody else owned the log when it was sent. From then on the
//! owner answers reads for [`LEASE`]. Its successor answers none before that is over, and writes
//! nothing that those answers would lack. So a node that was deposed answers nothing that is older
//! than the lease, and never beside its successor.
//!
//! When those before sent their newest records is not known, only when they were received. A FAREWELL
//! ends the answers of its own epoch, and no others ([`Received`]).
//!
//! Invariants: the lease counts from before the first sending of the newest record that is proven,
//! on a clock that goes on while the machine is suspended. Whoever answers looks at the clock after
//! the snapshot was taken.
//!
//! Tested by `tests/lease.rs`.

use crate::owner::{Claimed, Received};
use latewood_engine::io::Clock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a record lets its owner answer reads.
pub const LEASE: Duration = Duration::from_millis(1500);
/// A read without a lease is held for this time before it is refused.
const HOLD: Duration = Duration::from_secs(2);
/// What a new owner waits for the lease of the one before, whose clock may be a little slower.
const LEASE_OF_OTHERS: Duration = Duration::from_millis(1600);

/// The lease of the owner of a log.
pub struct Lease {
    clock: Arc<dyn Clock>,
    /// The owner before may answer until then.
    from_ns: u64,
    hold: Duration,
    /// Snapshots that were taken before may be answered; `None` once the log is owned no more.
    until_ns: watch::Sender<Option<u64>>,
    /// The newest group that is proven to be in the log.
    proven: AtomicU64,
}

impl Lease {
    /// That of an owner that claimed the log just now. It begins with the first record that is
    /// proven, but not before those answer no more that owned the log before and said no farewell.
    pub fn new(claimed: &Claimed, clock: Arc<dyn Clock>) -> Self {
        let now_ns = clock.boottime_ns();
        let before = claimed.deposed.as_ref();
        let received_ns = match before.and_then(|before| before.answering) {
            None => return Self::after(Duration::ZERO, HOLD, clock),
            Some(Received::ByNow) => now_ns,
            Some(Received::At(at_ns)) => at_ns,
        };
        let over_ns = received_ns + LEASE_OF_OTHERS.as_nanos() as u64;
        let wait = Duration::from_nanos(over_ns.saturating_sub(now_ns));
        Self::after(wait, HOLD, clock)
    }

    /// One that begins with the first record that is proven, but not before `wait` is over. Reads
    /// are held for `hold`.
    pub fn after(wait: Duration, hold: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            hold,
            from_ns: clock.boottime_ns() + wait.as_nanos() as u64,
            clock,
            until_ns: watch::Sender::new(Some(0)),
            proven: AtomicU64::new(0),
        }
    }

    /// How long owners before may still answer.
    pub fn begins_in(&self) -> Duration {
        Duration::from_nanos(self.from_ns.saturating_sub(self.now_ns()))
    }

    /// The moment to ask about, if a snapshot was taken just now.
    pub fn now_ns(&self) -> u64 {
        self.clock.boottime_ns()
    }

    /// Whether a snapshot that was taken at or before `at_ns`, which is not to come, may be
    /// answered now.
    pub fn covers(&self, at_ns: u64) -> bool {
        self.until_ns.borrow().is_some_and(|until| at_ns < until) && at_ns >= self.from_ns
    }

    /// The same of a snapshot that may hold groups up to `position`: all of them are in the log.
    /// Where a node takes over, nothing that was answered vanishes.
    pub fn covers_proven(&self, at_ns: u64, position: u64) -> bool {
        self.covers(at_ns) && self.has_proven(position)
    }

    fn has_proven(&self, position: u64) -> bool {
        self.proven.load(Ordering::Acquire) >= position
    }

    /// Waits until such a snapshot may be answered, for as long as a read is held. Returns whether
    /// it may.
    pub async fn comes_to_cover(&self, at_ns: u64, position: u64) -> bool {
        let covered = async {
            sleep(self.begins_in()).await;
            let mut until = self.until_ns.subscribe();
            let is_answered = |until: &Option<u64>| {
                until.is_none_or(|until| at_ns < until && self.has_proven(position))
            };
            let until = until.wait_for(is_answered).await;
            until.is_ok_and(|until| until.is_some())
        };
        timeout(self.hold, covered).await.unwrap_or(false)
    }

    /// The groups up to `position` are in the log. Whoever waits hears it with the next
    /// [`Lease::renew`].
    pub fn prove(&self, position: u64) {
        self.proven.fetch_max(position, Ordering::AcqRel);
    }

    /// A record counts that was not sent before `sent_ns`.
    pub fn renew(&self, sent_ns: u64) {
        let until_ns = sent_ns + LEASE.as_nanos() as u64;
        self.until_ns.send_replace(Some(until_ns));
    }

    /// The log is owned no more.
    pub fn end(&self) {
        self.until_ns.send_replace(None);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = *self.until_ns.borrow();
        write!(f, "Lease({}, {until:?})", self.from_ns)
    }
}
