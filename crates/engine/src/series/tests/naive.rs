//! A naive model of a series.

use latewood_model::{DuplicatePolicy, Sample, Timestamp};
use std::collections::BTreeMap;

/// Every sample of a series by its timestamp.
#[derive(Default)]
pub(super) struct Naive {
    pub(super) samples: BTreeMap<Timestamp, f64>,
    pub(super) retention_ms: i64,
}

impl Naive {
    pub(super) fn floor(&self) -> Timestamp {
        match self.samples.keys().next_back() {
            Some(newest) if self.retention_ms > 0 => newest - self.retention_ms,
            _ => Timestamp::MIN,
        }
    }

    pub(super) fn append(&mut self, sample: Sample, policy: DuplicatePolicy) -> bool {
        if sample.timestamp < self.floor() {
            return false;
        }
        let value = match self.samples.get(&sample.timestamp) {
            Some(&old) => policy.resolve(old, sample.value),
            None => Some(sample.value),
        };
        if let Some(value) = value {
            self.samples.insert(sample.timestamp, value);
        }
        value.is_some()
    }

    pub(super) fn read(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, u64)> {
        let from = from.max(self.floor());
        if from > to {
            return Vec::new();
        }
        let range = self.samples.range(from..=to);
        range.map(|(&at, value)| (at, value.to_bits())).collect()
    }
}
