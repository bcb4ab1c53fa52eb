//! What the server must hold, and comparing every sample of every device with it, bit for bit.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::fleet::Fleet;
use super::plan::Delivery;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::rows;
use crate::base::threads::{beside, side_by_side};
use crate::measure::progress::Progress;

/// Connections that read at once.
const READERS: usize = 2;
/// How often it is shown how far they are.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the server must hold of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Absent,
    Maybe,
    Present,
}

/// What the server must hold, sample by sample of each device.
#[derive(Debug)]
pub(super) struct Ledger(Vec<Vec<Due>>);

/// Samples that are held, with the right value: those that had to be, and those never acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    pub(super) confirmed: u64,
    pub(super) unacknowledged: u64,
}

impl Ledger {
    /// Nothing is sent yet.
    pub(super) fn new(fleet: &Fleet) -> Self {
        let devices = 0..fleet.devices.len();
        Ledger(
            devices
                .map(|device| vec![Due::Absent; fleet.samples(device).len()])
                .collect(),
        )
    }

    /// Of `deliveries` the first `acknowledged` must be there, the rest up to `sent` may be.
    pub(super) fn note(&mut self, deliveries: &[Delivery], acknowledged: usize, sent: usize) {
        for (at, delivery) in deliveries[..sent].iter().enumerate() {
            let due = &mut self.0[delivery.device as usize][delivery.sample as usize];
            *due = if at < acknowledged {
                Due::Present
            } else {
                Due::Maybe
            };
        }
    }
}

/// Reads every device whole and compares it with the ledger.
pub(super) fn audit(
    address: &Address,
    fleet: &Fleet,
    ledger: &Ledger,
    progress: &mut Progress,
) -> Result<Audit> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let read = |_| -> Result<Audit> {
        let mut control = Control::connect(address)?;
        let mut total = Audit::default();
        loop {
            let device = next.fetch_add(1, Ordering::Relaxed);
            let Some(key) = fleet.devices.get(device).map(|device| &device.key) else {
                return Ok(total);
            };
            let (samples, due) = (fleet.samples(device), &ledger.0[device]);
            let compare = |held: &[(i64, f64)]| compare(key, held, samples, due);
            let audit = compare(&rows(&control.run(&format!("TS.RANGE {key} - +"))?)?)?;
            total = total.plus(audit);
            done.fetch_add(audit.confirmed, Ordering::Relaxed);
        }
    };
    let look = || progress.show(done.load(Ordering::Relaxed));
    let parts = beside(LOOK_EVERY, look, || side_by_side(READERS, read))?;
    Ok(parts.into_iter().fold(Audit::default(), Audit::plus))
}

impl Audit {
    fn plus(self, other: Audit) -> Audit {
        Audit {
            confirmed: self.confirmed + other.confirmed,
            unacknowledged: self.unacknowledged + other.unacknowledged,
        }
    }
}

fn compare(key: &str, held: &[(i64, f64)], samples: &[(i64, f64)], due: &[Due]) -> Result<Audit> {
    let mut held = held.iter().copied().peekable();
    let mut audit = Audit::default();
    for (&(timestamp_ms, value), due) in samples.iter().zip(due) {
        let wrong = match (due, held.next_if(|(at, _)| *at == timestamp_ms)) {
            (Due::Present, None) => format!("lost its sample at {timestamp_ms}"),
            (Due::Absent, Some(_)) => format!("has a sample at {timestamp_ms} never sent"),
            (_, Some((_, got))) if got.to_bits() != value.to_bits() => {
                format!("has {got} at {timestamp_ms}, not {value}")
            }
            (Due::Present, Some(_)) => {
                audit.confirmed += 1;
                continue;
            }
            (Due::Maybe, Some(_)) => {
                audit.unacknowledged += 1;
                continue;
            }
            (_, None) => continue,
        };
        return Err(Error::new(format!("{key} {wrong}")));
    }
    match held.next() {
        None => Ok(audit),
        Some((at, _)) => Err(Error::new(format!(
            "{key} has a sample at {at} that nobody sent"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [(i64, f64); 3] = [(10, 1.5), (20, 2.0), (30, 3.25)];

    fn judge(held: &[(i64, f64)], due: [Due; 3]) -> Result<Audit> {
        compare("k", held, &SAMPLES, &due)
    }

    #[test]
    fn what_is_right_passes() {
        use Due::{Absent, Maybe, Present};
        let all = [(10, 1.5), (20, 2.0), (30, 3.25)];
        for (held, due, confirmed, unacknowledged) in [
            (&all[..], [Present, Present, Maybe], 2, 1),
            (&all[1..2], [Maybe, Present, Absent], 1, 0),
            (&[], [Absent, Maybe, Absent], 0, 0),
        ] {
            let expected = Audit {
                confirmed,
                unacknowledged,
            };
            assert_eq!(judge(held, due).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        use Due::{Absent, Present};
        let one = [Present, Absent, Absent];
        for (held, due, says) in [
            (
                &[(10, 1.5)][..],
                [Present, Present, Absent],
                "lost its sample at 20",
            ),
            (&[(10, 1.500_000_000_000_000_2)], one, "not 1.5"),
            (&[(10, 1.5), (30, 3.25)], one, "at 30 never sent"),
            (&[(10, 1.5), (15, 1.0)], one, "nobody sent"),
        ] {
            let error = judge(held, due).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
