//! In which order the samples of the devices arrive, and sending them in that order.
//!
//! The year is cut into parts. Within a part time goes on hour by hour and every device that is
//! online sends its newest sample. A device that is offline sends nothing; back online it uploads
//! what it has kept, a few samples an hour, scattered over the whole gap, while it goes on
//! measuring. The same seed gives the same order.

use std::ops::Range;

use latewood_wire::resp::encode_command;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::fleet::Fleet;
use crate::load::Source;

/// Equal parts of the year: on time, late, late with a kill.
pub(super) const PARTS: usize = 3;
/// Connections the devices share.
pub(super) const CONNECTIONS: usize = 8;
/// Hours a device stays offline at a time.
const OFFLINE_HOURS: Range<usize> = 24..240;
/// Hours a device stays online at a time.
const ONLINE_HOURS: Range<usize> = 24..96;
/// Kept samples a device uploads for each new one.
const CATCH_UP: usize = 8;
/// Of so many devices one goes offline now and then.
const OFFLINE_ONE_IN: usize = 4;

/// One sample on its way: whose, and its place in what that device measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) device: u32,
    pub(super) sample: u32,
}

/// One part of the year as one connection delivers it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) late: u64,
    /// How many of them, from the first, the server has acknowledged.
    pub(super) done: usize,
}

/// A device while the plan is made.
struct Sender {
    device: u32,
    next: u32,
    end: u32,
    newest: Option<u32>,
    kept: Vec<u32>,
    goes_offline: bool,
    online: bool,
    hours_left: usize,
}

/// One part of the year, for the devices that one connection serves. In all parts but the first one
/// device in four goes offline.
pub(super) fn plan(fleet: &Fleet, part: usize, connection: usize, seed: u64) -> Plan {
    let stream = (part * CONNECTIONS + connection) as u64;
    let mut rng = SmallRng::seed_from_u64(seed.wrapping_add(stream.wrapping_mul(0x9e37_79b9)));
    let mut plan = Plan::default();
    let mut senders: Vec<Sender> = (connection..fleet.devices.len())
        .step_by(CONNECTIONS)
        .map(|device| {
            let samples = fleet.samples(device).len();
            let goes_offline = part > 0 && rng.random_range(0..OFFLINE_ONE_IN) == 0;
            Sender {
                device: device as u32,
                next: (samples * part / PARTS) as u32,
                end: (samples * (part + 1) / PARTS) as u32,
                newest: None,
                kept: Vec::new(),
                goes_offline,
                online: true,
                // Not all at once: each begins somewhere within its first online stretch.
                hours_left: rng.random_range(1..ONLINE_HOURS.end),
            }
        })
        .collect();
    while senders.iter().any(|sender| sender.next < sender.end) {
        for sender in &mut senders {
            sender.hour(&mut plan, &mut rng);
        }
    }
    for sender in &mut senders {
        sender.upload(usize::MAX, &mut plan, &mut rng);
    }
    plan
}

impl Sender {
    fn hour(&mut self, plan: &mut Plan, rng: &mut SmallRng) {
        if self.next == self.end {
            return;
        }
        if self.goes_offline && self.hours_left == 0 {
            self.online = !self.online;
            let hours = [OFFLINE_HOURS, ONLINE_HOURS][usize::from(self.online)].clone();
            self.hours_left = rng.random_range(hours);
        }
        self.hours_left = self.hours_left.saturating_sub(1);
        let sample = self.next;
        self.next += 1;
        if self.online {
            self.deliver(sample, plan);
            self.upload(CATCH_UP, plan, rng);
        } else {
            self.kept.push(sample);
        }
    }

    /// Sends up to `most` of the kept samples, picked at random.
    fn upload(&mut self, most: usize, plan: &mut Plan, rng: &mut SmallRng) {
        for _ in 0..most.min(self.kept.len()) {
            let at = rng.random_range(0..self.kept.len());
            let sample = self.kept.swap_remove(at);
            self.deliver(sample, plan);
        }
    }

    fn deliver(&mut self, sample: u32, plan: &mut Plan) {
        plan.late += u64::from(self.newest.is_some_and(|newest| sample < newest));
        self.newest = self.newest.max(Some(sample));
        let device = self.device;
        plan.deliveries.push(Delivery { device, sample });
    }
}

/// Sends deliveries in order and counts the replies. Replies come in the order of the commands,
/// so one number is a complete ledger: everything before it is acknowledged.
#[derive(Debug)]
pub(super) struct Uploader<'a> {
    fleet: &'a Fleet,
    deliveries: &'a [Delivery],
    /// Deliveries the server has acknowledged, and those sent, acknowledged or not.
    pub(super) acknowledged: usize,
    pub(super) sent: usize,
}

impl<'a> Uploader<'a> {
    /// Begins after what is acknowledged of a plan.
    pub(super) fn new(fleet: &'a Fleet, plan: &'a Plan) -> Self {
        Uploader {
            fleet,
            deliveries: &plan.deliveries,
            acknowledged: plan.done,
            sent: plan.done,
        }
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
            let key = self.fleet.devices[device].key.as_bytes();
            let time = time.format(timestamp_ms).as_bytes();
            let number = number.format(value).as_bytes();
            encode_command(out, &[b"TS.ADD", key, time, number]);
        }
        self.sent += batch.len();
        batch.len()
    }

    fn answered(&mut self, count: usize) {
        self.acknowledged += count;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every sample of every device arrives exactly once, whatever the parts and connections.
    #[test]
    fn nothing_is_lost_or_sent_twice_and_a_seed_replays() {
        let fleet = Fleet::new(1).unwrap();
        let mut seen = BTreeSet::new();
        let (mut late, mut total) = (0, 0);
        for at in 0..PARTS * CONNECTIONS {
            let (part, connection) = (at / CONNECTIONS, at % CONNECTIONS);
            let plan = plan(&fleet, part, connection, 11);
            for delivery in &plan.deliveries {
                let is_new = seen.insert((delivery.device, delivery.sample));
                assert!(is_new, "{delivery:?}");
            }
            assert!(part > 0 || plan.late == 0);
            late += plan.late;
            total += plan.deliveries.len() as u64;
        }
        assert_eq!(total, fleet.total());
        assert!(late > total / 50, "{late} of {total} are late");
        let order = |seed| plan(&fleet, 1, 0, seed).deliveries;
        assert_eq!(order(5), order(5));
        assert_ne!(order(5), order(6));
    }
}
