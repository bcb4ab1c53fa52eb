//! Comparing every sample of every device with the source, bit for bit.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::fleet::Fleet;
use super::plan::Delivery;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};

/// Connections that read at once.
const READERS: usize = 2;

/// What the server must hold of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Absent,
    Maybe,
    Present,
}

/// What the server must hold, sample by sample.
#[derive(Debug)]
pub(super) struct Ledger {
    due: Vec<Vec<Due>>,
}

/// What an audit saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// Samples that had to be there and are, with the right value.
    pub(super) confirmed: u64,
    pub(super) unacknowledged: u64,
}

impl Ledger {
    /// Nothing is sent yet.
    pub(super) fn new(fleet: &Fleet) -> Self {
        let devices = 0..fleet.devices().len();
        let none = |device| vec![Due::Absent; fleet.samples(device).len()];
        Ledger {
            due: devices.map(none).collect(),
        }
    }

    /// Of `deliveries` the first `acknowledged` must be there, the rest up to `sent` may be.
    pub(super) fn note(&mut self, deliveries: &[Delivery], acknowledged: usize, sent: usize) {
        for (at, delivery) in deliveries[..sent].iter().enumerate() {
            let due = &mut self.due[delivery.device as usize][delivery.sample as usize];
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
    mut tick: impl FnMut(u64),
) -> Result<Audit> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let reader = || -> Result<Audit> {
        let mut control = Control::connect(address)?;
        let mut total = Audit::default();
        loop {
            let device = next.fetch_add(1, Ordering::Relaxed);
            let Some(known) = fleet.devices().get(device) else {
                return Ok(total);
            };
            let key = &known.key;
            let command = format!("TS.RANGE {key} - +");
            let (samples, due) = (fleet.samples(device), &ledger.due[device]);
            let audit = control.ask_raw(&command, |reply| compare(key, reply, samples, due))??;
            total.confirmed += audit.confirmed;
            total.unacknowledged += audit.unacknowledged;
            done.fetch_add(audit.confirmed, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
        while !readers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(std::time::Duration::from_millis(20));
            tick(done.load(Ordering::Relaxed));
        }
        let mut total = Audit::default();
        for reader in readers {
            let part = reader
                .join()
                .map_err(|_| Error::new("a reading thread died"))??;
            total.confirmed += part.confirmed;
            total.unacknowledged += part.unacknowledged;
        }
        Ok(total)
    })
}

fn compare(key: &str, reply: &[u8], samples: &[(i64, f64)], due: &[Due]) -> Result<Audit> {
    let mut audit = Audit::default();
    let mut read = RangeReply::new(reply)?;
    let mut held = read.next()?;
    for ((timestamp_ms, value), due) in samples.iter().zip(due) {
        let there = held.filter(|(at, _)| at == timestamp_ms);
        match (due, there) {
            (Due::Present, None) => {
                return Err(Error::new(format!(
                    "{key} lost its sample at {timestamp_ms}"
                )));
            }
            (Due::Absent, Some(_)) => {
                return Err(Error::new(format!(
                    "{key} has a sample at {timestamp_ms} never sent"
                )));
            }
            (_, Some((_, got))) if got.to_bits() != value.to_bits() => {
                return Err(Error::new(format!(
                    "{key} has {got} at {timestamp_ms}, not {value}"
                )));
            }
            (Due::Present, Some(_)) => audit.confirmed += 1,
            (Due::Maybe, Some(_)) => audit.unacknowledged += 1,
            (_, None) => {}
        }
        if there.is_some() {
            held = read.next()?;
        }
    }
    match held {
        None => Ok(audit),
        Some((at, _)) => Err(Error::new(format!(
            "{key} has a sample at {at} that nobody sent"
        ))),
    }
}

/// The samples of a TS.RANGE reply one by one, without a tree of values: there are millions.
struct RangeReply<'a> {
    lines: std::str::Split<'a, &'static str>,
    left: usize,
}

impl<'a> RangeReply<'a> {
    fn new(reply: &'a [u8]) -> Result<Self> {
        let text = std::str::from_utf8(reply).map_err(|_| malformed())?;
        let mut lines = text.split("\r\n");
        let head = lines.next().unwrap_or_default();
        let left = head.strip_prefix('*').and_then(|count| count.parse().ok());
        let left = left.ok_or_else(|| Error::new(format!("TS.RANGE was answered: {head}")))?;
        Ok(RangeReply { lines, left })
    }

    fn next(&mut self) -> Result<Option<(i64, f64)>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut line = || self.lines.next().ok_or_else(malformed);
        if line()? != "*2" {
            return Err(malformed());
        }
        let timestamp = line()?
            .strip_prefix(':')
            .and_then(|digits| digits.parse().ok());
        let value = line()?
            .strip_prefix('+')
            .and_then(|digits| digits.parse().ok());
        match (timestamp, value) {
            (Some(timestamp), Some(value)) => Ok(Some((timestamp, value))),
            _ => Err(malformed()),
        }
    }
}

fn malformed() -> Error {
    Error::new("a reply to TS.RANGE is not made of timestamps and values")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [(i64, f64); 3] = [(10, 1.5), (20, 2.0), (30, 3.25)];

    fn reply(samples: &[(i64, &str)]) -> Vec<u8> {
        let mut text = format!("*{}\r\n", samples.len());
        for (timestamp, value) in samples {
            text += &format!("*2\r\n:{timestamp}\r\n+{value}\r\n");
        }
        text.into_bytes()
    }

    fn judge(held: &[(i64, &str)], due: [Due; 3]) -> Result<Audit> {
        compare("k", &reply(held), &SAMPLES, &due)
    }

    #[test]
    fn what_is_right_passes() {
        use Due::{Absent, Maybe, Present};
        let all = judge(
            &[(10, "1.5"), (20, "2"), (30, "3.25")],
            [Present, Present, Maybe],
        );
        let expected = Audit {
            confirmed: 2,
            unacknowledged: 1,
        };
        assert_eq!(all.unwrap(), expected);
        assert_eq!(
            judge(&[(20, "2")], [Maybe, Present, Absent])
                .unwrap()
                .confirmed,
            1
        );
        assert_eq!(
            judge(&[], [Absent, Maybe, Absent]).unwrap(),
            Audit::default()
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        use Due::{Absent, Present};
        for (held, due, says) in [
            (
                &[(10, "1.5")][..],
                [Present, Present, Absent],
                "lost its sample at 20",
            ),
            (
                &[(10, "1.5000000000000002")],
                [Present, Absent, Absent],
                "not 1.5",
            ),
            (
                &[(10, "1.5"), (30, "3.25")],
                [Present, Absent, Absent],
                "at 30 never sent",
            ),
            (
                &[(10, "1.5"), (15, "1")],
                [Present, Absent, Absent],
                "nobody sent",
            ),
        ] {
            let error = judge(held, due).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(compare("k", b"-ERR no\r\n", &SAMPLES, &[Present; 3]).is_err());
    }
}
