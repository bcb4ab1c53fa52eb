//! When the next record of an owner is due: by the clock of its lease, which need not be that of
//! this machine, or by that of the machine, whichever comes first.

use std::time::{Duration, Instant};

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Instant,
    /// By the clock of the lease, if there is one.
    pub(super) leased_ns: Option<u64>,
}

impl Moment {
    /// The moment this much later.
    pub(super) fn after(self, time: Duration) -> Self {
        Self {
            at: self.at + time,
            leased_ns: self.leased_ns.map(|at_ns| at_ns + time.as_nanos() as u64),
        }
    }

    /// How long it is until `later` comes by one of the clocks; `None` if it has come.
    pub(super) fn until(self, later: Self) -> Option<Duration> {
        let left = later.at.checked_duration_since(self.at)?;
        let pairs = self.leased_ns.zip(later.leased_ns);
        let left = match pairs {
            None => left,
            Some((now_ns, later_ns)) => {
                left.min(Duration::from_nanos(later_ns.saturating_sub(now_ns)))
            }
        };
        (!left.is_zero()).then_some(left)
    }
}
