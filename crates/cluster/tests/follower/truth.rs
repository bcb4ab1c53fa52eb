//! What a run knows at every moment, whoever read what.

use crate::ledger::life::partition;
use crate::ledger::turns::Chance;
use latewood_cluster::envelope::{Envelope, State};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::scan::{Scan, Verdict};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use std::collections::BTreeSet;

/// What is in the log since when, whoever read it.
pub(super) struct Truth {
    scan: Scan,
    next: u64,
    /// Moments, and the group that came next then.
    pub(super) counted: Vec<(u64, u64)>,
    /// The same of what was acknowledged.
    pub(super) acknowledged: Vec<(u64, u64)>,
    /// Epochs that were not claimed by an operator.
    pub(super) automatic: BTreeSet<u64>,
    kafka: Kafka,
}

/// Brokers: time that a call takes, and when they go away.
struct Kafka {
    chance: Chance,
    away: bool,
}

impl Truth {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            scan: Scan::new(State::START),
            next: 0,
            counted: Vec::new(),
            acknowledged: Vec::new(),
            automatic: BTreeSet::new(),
            kafka: Kafka {
                chance: Chance(seed),
                away: false,
            },
        }
    }

    /// What follows a call: time passes, and brokers go away or come back.
    pub(super) fn pass(&mut self, kafka: &MemoryKafka, clock: &SimClock) {
        self.note(kafka, clock);
        let Kafka { chance, away } = &mut self.kafka;
        clock.advance_ms(chance.below(20) as u32);
        *away ^= chance.below(if *away { 150 } else { 600 }) == 0;
        kafka.set_away(*away);
    }

    fn note(&mut self, kafka: &MemoryKafka, clock: &SimClock) {
        let now_ns = clock.boottime_ns();
        for (offset, value) in kafka.records_from(&partition(), self.next) {
            self.next = offset + 1;
            let is_epoch = matches!(self.scan.next(offset, &value), Verdict::Epoch(_));
            let record = Envelope::decode(&value);
            if is_epoch && matches!(record, Ok(Envelope::Epoch { n: Some(_), .. })) {
                self.automatic.insert(offset);
            }
            let next = self.scan.state().sequence;
            if self.counted.last().is_none_or(|last| last.1 < next) {
                self.counted.push((now_ns, next));
            }
        }
    }
}

/// The group that came next at a moment.
pub(super) fn at(moments: &[(u64, u64)], at_ns: u64) -> u64 {
    let before = moments.partition_point(|(moment, _)| *moment <= at_ns);
    before.checked_sub(1).map_or(1, |last| moments[last].1)
}
