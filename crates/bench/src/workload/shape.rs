//! Which timestamps late samples have: one shape for each way data comes late.
//!
//! Steps are a millisecond. Only `uniform` and `corrections` repeat timestamps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clap::ValueEnum;
use rand::RngExt;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

/// Newest timestamp of a uniform series before its first sample.
pub(super) const UNIFORM_START_MS: i64 = 100_000;
/// The same of the other shapes: 2001, with room before it.
const START_MS: i64 = 1_000_000_000_000;
/// The median delay of `delays`, and the deviation of its logarithm.
const DELAY_MEDIAN_MS: f64 = 2_000.0;
const DELAY_SIGMA: f64 = 1.0;
const DELAY_MAX_MS: f64 = 60_000.0;
/// Samples a device holds back at once.
const DAY: u64 = 1_000;

/// How late samples are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LateShape {
    /// Anywhere from 0 to the newest, as the public client has it
    #[default]
    Uniform,
    /// Each after a delay of its own, log-normal around two seconds
    Delays,
    /// A thousand at once and in order, of a time the device was away
    DeviceDay,
    /// Before everything, from the newest to the oldest
    Backfill,
    /// Again at a timestamp that is there
    Corrections,
}

/// What a series remembers of its late samples.
#[derive(Debug)]
pub(super) enum Lateness {
    Uniform { seen: Vec<u64>, distinct: u64 },
    Delays(BinaryHeap<Reverse<(i64, i64)>>),
    DeviceDay(Away),
    Backfill { oldest_ms: i64 },
    Corrections,
}

/// A device that sends a while, is away, and brings what it held back.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// Samples until it goes away.
    until: u64,
    /// The next of those it held back, and how many they still are.
    held_ms: i64,
    held: u64,
}

impl LateShape {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// What options and reports call it.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn is_uniform(&self) -> bool {
        *self == LateShape::Uniform
    }

    /// The newest timestamp before the first sample.
    pub(super) fn start_ms(self) -> i64 {
        match self {
            LateShape::Uniform => UNIFORM_START_MS,
            _ => START_MS,
        }
    }

    /// The memory of a series of this shape with `late_share` late samples.
    pub(super) fn begin(self, late_share: f64, rng: &mut SmallRng) -> Lateness {
        match self {
            LateShape::Uniform => Lateness::Uniform {
                seen: vec![0; UNIFORM_START_MS as usize / 64 + 1],
                distinct: 0,
            },
            LateShape::Delays => Lateness::Delays(BinaryHeap::new()),
            LateShape::DeviceDay => Lateness::DeviceDay(Away {
                // Devices do not come back together.
                until: rng.random_range(0..=in_order_of_a_day(late_share)),
                ..Away::default()
            }),
            LateShape::Backfill => Lateness::Backfill {
                oldest_ms: START_MS,
            },
            LateShape::Corrections => Lateness::Corrections,
        }
    }
}

impl Lateness {
    /// The next timestamp of a series whose newest so far is `newest_ms`.
    #[inline]
    pub(super) fn next_ms(&mut self, newest_ms: &mut i64, share: f64, rng: &mut SmallRng) -> i64 {
        match self {
            Lateness::Delays(coming) => delayed(coming, newest_ms, share, rng),
            Lateness::DeviceDay(away) => away.next_ms(newest_ms, share),
            _ if rng.random::<f64>() >= share => advance(newest_ms),
            Lateness::Uniform { seen, distinct } => {
                let late_ms = rng.random_range(0..*newest_ms);
                note(seen, distinct, late_ms);
                late_ms
            }
            Lateness::Backfill { oldest_ms } => {
                *oldest_ms -= 1;
                *oldest_ms
            }
            // There must be one to correct.
            _ if *newest_ms == START_MS => advance(newest_ms),
            _ => rng.random_range(START_MS + 1..=*newest_ms),
        }
    }

    /// Different timestamps of a series that has sent `sent` samples.
    pub(super) fn distinct(&self, newest_ms: i64, sent: u64) -> u64 {
        match self {
            Lateness::Uniform { distinct, .. } => (newest_ms - UNIFORM_START_MS) as u64 + distinct,
            Lateness::Corrections => (newest_ms - START_MS) as u64,
            _ => sent,
        }
    }
}

fn advance(newest_ms: &mut i64) -> i64 {
    *newest_ms += 1;
    *newest_ms
}

/// Timestamps above the start were all sent in order before; only those up to it need a bit.
fn note(seen: &mut [u64], distinct: &mut u64, late_ms: i64) {
    if late_ms > UNIFORM_START_MS {
        return;
    }
    let (word, bit) = (late_ms as usize / 64, 1 << (late_ms % 64));
    *distinct += u64::from(seen[word] & bit == 0);
    seen[word] |= bit;
}

/// What comes next where each sample is on its way for a while with probability `share`.
fn delayed(
    coming: &mut BinaryHeap<Reverse<(i64, i64)>>,
    newest_ms: &mut i64,
    share: f64,
    rng: &mut SmallRng,
) -> i64 {
    loop {
        let is_due = |next: &Reverse<(i64, i64)>| next.0.0 <= *newest_ms;
        if let Some(arrived) = coming.peek().copied().filter(is_due) {
            coming.pop();
            return arrived.0.1;
        }
        let made_ms = advance(newest_ms);
        if rng.random::<f64>() >= share {
            return made_ms;
        }
        // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
        let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let delay_ms = DELAY_MEDIAN_MS * (DELAY_SIGMA * normal).exp();
        let due_ms = made_ms + delay_ms.clamp(1.0, DELAY_MAX_MS) as i64;
        coming.push(Reverse((due_ms, made_ms)));
    }
}

impl Away {
    fn next_ms(&mut self, newest_ms: &mut i64, share: f64) -> i64 {
        if self.until > 0 || share <= 0.0 {
            self.until = self.until.saturating_sub(1);
            return advance(newest_ms);
        }
        if self.held == 0 {
            // It comes back: the first sample after the gap is the newest, the gap follows.
            (self.held_ms, self.held) = (*newest_ms, DAY);
            *newest_ms += DAY as i64;
            return advance(newest_ms);
        }
        self.held -= 1;
        if self.held == 0 {
            // One of them came first.
            self.until = in_order_of_a_day(share) - 1;
        }
        advance(&mut self.held_ms)
    }
}

/// Samples in order for each day that was held back; at least the one that ends the gap.
fn in_order_of_a_day(late_share: f64) -> u64 {
    let in_order = DAY as f64 * (1.0 - late_share) / late_share.max(f64::MIN_POSITIVE);
    (in_order.min(1e15).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::series::Series;
    use super::*;
    use std::collections::BTreeSet;

    fn samples(shape: LateShape, share: f64, count: usize) -> (Series, Vec<i64>) {
        let mut series = Series::shaped("k".into(), shape, share, 11, 3);
        let sent = (0..count).map(|_| series.next_sample().0).collect();
        (series, sent)
    }

    #[test]
    fn every_shape_counts_its_timestamps_and_keeps_its_share() {
        for &shape in LateShape::all() {
            for share in [0.0, 0.1, 0.5, 0.99, 1.0] {
                let (series, sent) = samples(shape, share, 200_000);
                let name = format!("{} at {share}", shape.name());
                let distinct: BTreeSet<i64> = sent.iter().copied().collect();
                assert_eq!(series.distinct(), distinct.len() as u64, "{name}");
                assert!(distinct.first() >= Some(&0), "{name}");
                let (mut newest_ms, mut late) = (i64::MIN, 0);
                for timestamp_ms in sent {
                    late += u64::from(timestamp_ms <= newest_ms);
                    newest_ms = newest_ms.max(timestamp_ms);
                }
                // Those delayed by less than the gap to the next in order are not late.
                let found = late as f64 / 200_000.0;
                assert!((found - share).abs() < 0.02, "{name}: {found}");
            }
        }
    }

    #[test]
    fn a_day_comes_in_order_and_a_backfill_backwards() {
        let (_, sent) = samples(LateShape::DeviceDay, 0.5, 10_000);
        let mut pairs = sent.windows(2);
        let gap = pairs.position(|pair| pair[1] - pair[0] == DAY as i64 + 1);
        let end = gap.unwrap() + 1;
        let day: Vec<i64> = sent[end + 1..=end + DAY as usize].to_vec();
        let missed: Vec<i64> = (sent[end] - DAY as i64..sent[end]).collect();
        assert_eq!(day, missed);
        let (_, sent) = samples(LateShape::Backfill, 0.5, 1_000);
        let late: Vec<i64> = sent.into_iter().filter(|&at| at <= START_MS).collect();
        assert!(late.len() > 400 && late.windows(2).all(|pair| pair[1] == pair[0] - 1));
    }

    #[test]
    fn delays_are_seconds_and_corrections_meet_what_is_there() {
        let (_, sent) = samples(LateShape::Delays, 0.3, 100_000);
        let mut newest_ms = 0;
        let mut delays: Vec<i64> = Vec::new();
        for timestamp_ms in sent {
            newest_ms = newest_ms.max(timestamp_ms);
            delays.extend(Some(newest_ms - timestamp_ms).filter(|&delay| delay > 0));
        }
        delays.sort_unstable();
        let median = delays[delays.len() / 2];
        assert!((1_500..2_500).contains(&median), "{median}");
        assert!(*delays.last().unwrap() <= DELAY_MAX_MS as i64);
        let (_, sent) = samples(LateShape::Corrections, 0.9, 1_000);
        let mut there = BTreeSet::new();
        for timestamp_ms in sent {
            let is_next = there.last().is_none_or(|last| timestamp_ms == *last + 1);
            assert!(there.insert(timestamp_ms) == is_next);
        }
    }
}
