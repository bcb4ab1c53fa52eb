//! One connection's deliveries, and the ledger of what the server has acknowledged.

use latewood_wire::resp::encode_command;

use super::fleet::Fleet;
use super::plan::Delivery;
use crate::load::Source;

/// Sends deliveries in order and counts the replies. Replies come in the order of the commands,
/// so one number is a complete ledger: everything before it is acknowledged.
#[derive(Debug)]
pub(super) struct Uploader<'a> {
    fleet: &'a Fleet,
    deliveries: &'a [Delivery],
    acknowledged: usize,
    sent: usize,
}

impl<'a> Uploader<'a> {
    /// Begins after the first `acknowledged` deliveries.
    pub(super) fn new(fleet: &'a Fleet, deliveries: &'a [Delivery], acknowledged: usize) -> Self {
        Uploader {
            fleet,
            deliveries,
            acknowledged,
            sent: acknowledged,
        }
    }

    /// Deliveries the server has acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Deliveries sent, acknowledged or not.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }
}

impl Source for Uploader<'_> {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let left = &self.deliveries[self.sent..];
        let batch = &left[..left.len().min(most)];
        let (mut time, mut number) = (itoa::Buffer::new(), zmij::Buffer::new());
        for delivery in batch {
            let device = delivery.device as usize;
            let (timestamp_ms, value) = self.fleet.samples(device)[delivery.sample as usize];
            let key = self.fleet.devices()[device].key.as_bytes();
            let time = time.format(timestamp_ms).as_bytes();
            encode_command(
                out,
                &[b"TS.ADD", key, time, number.format(value).as_bytes()],
            );
        }
        self.sent += batch.len();
        batch.len()
    }

    fn answered(&mut self, count: usize) {
        self.acknowledged += count;
    }
}
