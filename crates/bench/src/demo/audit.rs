//! What the server must hold, and comparing every sample of every device with it, bit for bit.

use std::sync::atomic::{AtomicU64, Ordering};
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
        let absent = |device| vec![Due::Absent; fleet.samples(device).len()];
        Ledger((0..fleet.devices.len()).map(absent).collect())
    }

    /// Of `deliveries` the first `acknowledged` must be there, the rest up to `sent` may be.
    pub(super) fn note(&mut self, deliveries: &[Delivery], acknowledged: usize, sent: usize) {
        for (at, delivery) in deliveries[..sent].iter().enumerate() {
            let is_present = at < acknowledged;
            self.0[delivery.device as usize][delivery.sample as usize] =
                if is_present { Due::Present } else { Due::Maybe };
        }
    }
}

/// Reads every device whole and compares it with the ledger; shows under `label` how far it is.
pub(super) fn audit(
    address: &Address,
    fleet: &Fleet,
    ledger: &Ledger,
    label: &str,
) -> Result<Audit> {
    let mut progress = Progress::new(label, fleet.total());
    let [confirmed, unacknowledged] = [const { AtomicU64::new(0) }; 2];
    let read = |reader| {
        let mut control = Control::connect(address)?;
        for device in (reader..fleet.devices.len()).step_by(READERS) {
            let key = &fleet.devices[device].key;
            let held = rows(&control.run(&format!("TS.RANGE {key} - +"))?)?;
            let seen = compare(key, &held, fleet.samples(device), &ledger.0[device])?;
            confirmed.fetch_add(seen.confirmed, Ordering::Relaxed);
            unacknowledged.fetch_add(seen.unacknowledged, Ordering::Relaxed);
        }
        Ok(())
    };
    let look = || progress.show(confirmed.load(Ordering::Relaxed));
    let read = beside(LOOK_EVERY, look, || side_by_side(READERS, read));
    progress.finish();
    read?;
    Ok(Audit {
        confirmed: confirmed.into_inner(),
        unacknowledged: unacknowledged.into_inner(),
    })
}

fn compare(key: &str, held: &[(i64, f64)], samples: &[(i64, f64)], due: &[Due]) -> Result<Audit> {
    let wrong = |what: String| Err(Error::new(format!("{key} {what}")));
    let mut held = held.iter().peekable();
    let mut audit = Audit::default();
    for (&(at, value), due) in samples.iter().zip(due) {
        match (due, held.next_if(|sample| sample.0 == at)) {
            (Due::Present, None) => return wrong(format!("lost its sample at {at}")),
            (Due::Absent, Some(_)) => return wrong(format!("has a sample at {at} never sent")),
            (_, Some((_, got))) if got.to_bits() != value.to_bits() => {
                return wrong(format!("has {got} at {at}, not {value}"));
            }
            (Due::Present, Some(_)) => audit.confirmed += 1,
            (Due::Maybe, Some(_)) => audit.unacknowledged += 1,
            (_, None) => {}
        }
    }
    match held.next() {
        None => Ok(audit),
        Some((at, _)) => wrong(format!("has a sample at {at} that nobody sent")),
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
