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
//! A clock that stands still while others own the log cannot be trusted with that. A read that trusts
//! none waits for a record that was sent after it arrived: records are numbered as they are sent, and
//! whoever waits asks for the next one, all for the same ([`Shown::record`]).
//!
//! Invariants: the lease counts from before the first sending of the newest record that is proven,
//! on a clock that goes on while the machine is suspended. Whoever answers looks at the clock after
//! the snapshot was taken. A record has its number before it is sent the first time.
//!
//! Tested by `tests/lease.rs`.

use crate::owner::{Claimed, Received};
use latewood_engine::io::Clock;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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
    /// The number of the newest record that was sent, or is about to be.
    sent: AtomicU64,
    /// That of the newest that counts.
    counted: AtomicU64,
    /// That of the first that somebody waits for.
    wanted: AtomicU64,
    /// Tells the thread that sends records that one is waited for.
    on_ask: OnceLock<OnAsk>,
}

/// Called when a record is waited for that nothing else may have sent.
pub type OnAsk = Box<dyn Fn() + Send + Sync>;

/// A record that is on its way.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    number: u64,
    at_ns: u64,
}

/// What a read would show, and what must be proven for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// A moment at or after which the snapshot was taken, which is not to come.
    pub at_ns: u64,
    /// The newest group that must be in the log, as the snapshot may hold it; 0 is none.
    pub position: u64,
    /// A record that must count, if no later one does; 0 is none.
    pub record: u64,
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
            sent: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            on_ask: OnceLock::new(),
        }
    }

    /// Has `on_ask` called when a record is waited for; once.
    pub fn on_ask(&self, on_ask: OnAsk) {
        self.on_ask.get_or_init(|| on_ask);
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

    /// The same, and all that it needs beside the lease is proven.
    pub fn shows(&self, shown: &Shown) -> bool {
        self.covers(shown.at_ns) && self.has_proven(shown)
    }

    fn has_proven(&self, shown: &Shown) -> bool {
        self.proven.load(Ordering::Acquire) >= shown.position
            && self.counted.load(Ordering::Acquire) >= shown.record
    }

    /// The first record that is sent from now on. Once it counts, nobody else owned the log before
    /// now, whatever clocks say.
    pub fn next_record(&self) -> u64 {
        self.sent.load(Ordering::SeqCst) + 1
    }

    /// Waits until `shown` may be answered, for as long as a read is held, and has the record sent
    /// that it needs. Returns whether it may.
    pub async fn comes_to_show(&self, shown: Shown) -> bool {
        self.ask(shown.record);
        let covered = async {
            sleep(self.begins_in()).await;
            let mut until = self.until_ns.subscribe();
            let is_answered = |until: &Option<u64>| {
                until.is_none_or(|until| shown.at_ns < until && self.has_proven(&shown))
            };
            let until = until.wait_for(is_answered).await;
            until.is_ok_and(|until| until.is_some())
        };
        timeout(self.hold, covered).await.unwrap_or(false)
    }

    /// Has the record of this number sent as soon as none is on its way, whatever it says.
    fn ask(&self, record: u64) {
        if self.wanted.fetch_max(record, Ordering::SeqCst) < record
            && let Some(on_ask) = self.on_ask.get()
        {
            on_ask();
        }
    }

    /// Whether somebody waits for a record that was not sent yet.
    pub fn is_asked(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) >= self.next_record()
    }

    /// The groups up to `position` are in the log. Whoever waits hears it with the next
    /// [`Lease::renew`].
    pub fn prove(&self, position: u64) {
        self.proven.fetch_max(position, Ordering::AcqRel);
    }

    /// A record is about to be sent the first time, by the only one who sends any.
    pub fn send(&self) -> Sent {
        let at_ns = self.now_ns();
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        Sent { number, at_ns }
    }

    /// A record counts.
    pub fn renew(&self, sent: Sent) {
        self.counted.fetch_max(sent.number, Ordering::AcqRel);
        let until_ns = sent.at_ns + LEASE.as_nanos() as u64;
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
