//! What a fleet of sensors measures: random walks on a common clock.
//!
//! Every series gets a sample in turn, round after round, a fixed step apart. Values have two
//! digits after the point, wander by up to a tenth, and stay from 10.00 to 99.99. What a series holds
//! in the end depends on seed and number alone: a late sample comes at a place uniform between its own
//! and the end, so that every share of late samples sends the same data. In reverse order the same
//! values come newest first, as a backfill does.
//!
//! A part knows the newest sample of each of its series, and everything it sent to a few of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Timestamp of every series' first sample.
pub(crate) const START_MS: i64 = 1_700_000_000_000;
/// Time between two samples of a series.
pub(crate) const STEP_MS: i64 = 10_000;
const VALUES: Range<u16> = 1_000..10_000;
/// A value differs from the one before by less than this many hundredths.
const STRIDE: u64 = 10;
/// Series of a part whose samples are all remembered.
const SPOTS: usize = 8;

/// What is sent, by all parts together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) series: u64,
    pub(crate) rounds: u32,
    pub(crate) late_percent: f64,
    pub(crate) reverse: bool,
    pub(crate) seed: u64,
}

/// A sample: milliseconds since 1970 and hundredths.
pub(crate) type Reading = (i64, u16);

/// Neighbouring series, written by one connection or thread.
#[derive(Debug)]
pub(crate) struct Part {
    plan: Plan,
    first: u64,
    late_share: u64,
    series: Vec<Walk>,
    /// Samples so far that came after a newer one of their series.
    pub(crate) late: u64,
    spots: Vec<Spot>,
    next_spot: usize,
}

/// A series under way: the next step, its newest value and step that were sent, and the late samples
/// that wait for their places.
#[derive(Debug, Default)]
struct Walk {
    next: u32,
    value: u16,
    /// The value of the newest step of the clock so far.
    newest: u16,
    sent: u32,
    held: BinaryHeap<Reverse<(u32, u32, u16)>>,
}

#[derive(Debug)]
struct Spot {
    at: usize,
    sent: Vec<Reading>,
}

/// The key of a series; all are of the same length.
pub(crate) fn key(number: u64) -> String {
    format!("sensor:{number:07}")
}

/// Names and values of the labels of a series; six of them, which no other has all.
pub(crate) fn labels(number: u64) -> [(&'static str, String); 6] {
    [
        ("region", format!("r{}", number % 100)),
        ("kind", format!("k{}", number % 3)),
        ("batch", format!("b{}", number % 10)),
        ("host", format!("h{}", number / 10)),
        ("rack", format!("q{}", number / 1_000)),
        ("unit", "celsius".to_owned()),
    ]
}

impl Plan {
    /// So many samples of all series together, rounded up to whole rounds.
    pub(crate) fn new(series: u64, samples: u64, late_percent: f64, seed: u64) -> Self {
        Plan {
            series,
            rounds: u32::try_from(samples.div_ceil(series)).unwrap_or(u32::MAX),
            late_percent,
            reverse: false,
            seed,
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.series * u64::from(self.rounds)
    }

    /// `count` parts of nearly the same size, none of them empty.
    pub(crate) fn parts(self, count: usize) -> Vec<Part> {
        let count = (count as u64).clamp(1, self.series);
        let bound = |at: u64| self.series * at / count;
        let part = |at| Part::new(self, bound(at)..bound(at + 1));
        (0..count).map(part).collect()
    }
}

impl Part {
    fn new(plan: Plan, series: Range<u64>) -> Self {
        let count = (series.end - series.start) as usize;
        let spread = u64::from(VALUES.end - VALUES.start);
        let walk = |number: u64| Walk {
            value: VALUES.start + (mixed(plan.seed ^ mixed(number)) % spread) as u16,
            ..Walk::default()
        };
        let spots = SPOTS.min(count);
        let spot = |at| Spot {
            at: at * count / spots,
            sent: Vec::with_capacity(plan.rounds as usize),
        };
        Part {
            first: series.start,
            late_share: (plan.late_percent / 100.0 * 2f64.powi(32)) as u64,
            late: 0,
            series: series.map(walk).collect(),
            spots: (0..spots).map(spot).collect(),
            next_spot: 0,
            plan,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    pub(crate) fn number(&self, at: usize) -> u64 {
        self.first + at as u64
    }

    /// The sample of the next turn of series `at`; turns go round over all series.
    #[inline]
    pub(crate) fn next(&mut self, at: usize) -> Reading {
        let stream = self.plan.seed ^ mixed(self.number(at));
        let (rounds, walk) = (self.plan.rounds, &mut self.series[at]);
        let (step, value) = loop {
            let step = walk.next;
            let is_due = |held: &&Reverse<(u32, u32, u16)>| held.0.0 <= step || step >= rounds;
            if walk.held.peek().filter(is_due).is_some()
                && let Some(Reverse((_, step, value))) = walk.held.pop()
            {
                break (step, value);
            }
            let random = mixed(stream.wrapping_add(u64::from(step)));
            walk.value = wander(walk.value, random & 0xffff_ffff);
            walk.next += 1;
            if !self.plan.reverse || step == 0 {
                walk.newest = walk.value;
            }
            if random >> 32 >= self.late_share || step >= rounds {
                break (step, walk.value);
            }
            let later = ((mixed(random) >> 32) * u64::from(rounds - step)) >> 32;
            let place = step + 1 + later as u32;
            walk.held.push(Reverse((place, step, walk.value)));
        };
        self.late += u64::from(step < walk.sent);
        walk.sent = walk.sent.max(step);
        let timestamp_ms = START_MS + self.step(step) * STEP_MS;
        if self.spots[self.next_spot].at == at {
            self.spots[self.next_spot].sent.push((timestamp_ms, value));
            self.next_spot = (self.next_spot + 1) % self.spots.len();
        }
        (timestamp_ms, value)
    }

    /// The newest sample of a series, once all of its turns are over.
    pub(crate) fn newest(&self, at: usize) -> Reading {
        let last = self.plan.rounds.saturating_sub(1);
        let last = if self.plan.reverse { 0 } else { last };
        (START_MS + self.step(last) * STEP_MS, self.series[at].newest)
    }

    /// The remembered series: their places in this part, and what they were sent, by time.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = (usize, Vec<(i64, f64)>)> {
        self.spots.iter().map(|spot| {
            let sent = spot.sent.iter();
            let mut sent: Vec<_> = sent.map(|&(at, value)| (at, number(value))).collect();
            sent.sort_unstable_by_key(|sample| sample.0);
            (spot.at, sent)
        })
    }

    /// Which step of the clock the `index`-th sample in order has.
    fn step(&self, index: u32) -> i64 {
        i64::from(if self.plan.reverse {
            self.plan.rounds - 1 - index
        } else {
            index
        })
    }
}

/// A value as a server reads it.
pub(crate) fn number(hundredths: u16) -> f64 {
    f64::from(hundredths) / 100.0
}

/// Random bits of a number: the finalizer of splitmix64.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The value after `value`, by 32 random bits; it turns round at the ends.
fn wander(value: u16, random: u64) -> u16 {
    let stride = ((random * (2 * STRIDE - 1)) >> 32) as i32 - (STRIDE as i32 - 1);
    let there = (i32::from(value) + stride) as u16;
    if VALUES.contains(&there) {
        there
    } else {
        (i32::from(value) - stride) as u16
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn plan(late_percent: f64, reverse: bool) -> Plan {
        Plan {
            series: 37,
            rounds: 200,
            late_percent,
            reverse,
            seed: 5,
        }
    }

    fn sent(plan: Plan, parts: usize) -> (Vec<Part>, Vec<BTreeMap<i64, u16>>) {
        let mut parts = plan.parts(parts);
        let mut all = vec![BTreeMap::new(); plan.series as usize];
        for part in &mut parts {
            for _ in 0..plan.rounds {
                for at in 0..part.len() {
                    let (timestamp_ms, value) = part.next(at);
                    assert!(VALUES.contains(&value));
                    let series: &mut BTreeMap<_, _> = &mut all[part.number(at) as usize];
                    assert_eq!(series.insert(timestamp_ms, value), None, "it repeats");
                }
            }
        }
        (parts, all)
    }

    #[test]
    fn knows_the_newest_sample_and_every_sample_of_its_spots() {
        for (late_percent, reverse) in [(0.0, false), (25.0, false), (99.0, false), (0.0, true)] {
            let (parts, all) = sent(plan(late_percent, reverse), 3);
            for part in &parts {
                for at in 0..part.len() {
                    let series = &all[part.number(at) as usize];
                    assert_eq!(series.len(), 200);
                    let last = series.last_key_value().map(|(t, v)| (*t, *v));
                    assert_eq!(last, Some(part.newest(at)), "{late_percent} % late");
                }
                assert_eq!(part.remembered().count(), SPOTS);
                for (at, sent) in part.remembered() {
                    let all = all[part.number(at) as usize].iter();
                    assert!(all.map(|(&at, &value)| (at, number(value))).eq(sent));
                }
            }
        }
    }

    #[test]
    fn late_samples_are_as_many_as_asked_and_counted() {
        for (percent, least, most) in [(0.0, 0, 0), (25.0, 1_500, 2_100), (99.0, 6_000, 7_300)] {
            let mut part = plan(percent, false).parts(1).remove(0);
            let (mut late, mut newest) = (0, [0; 37]);
            for turn in 0..200 * 37 {
                let newest = &mut newest[turn % 37];
                let (timestamp_ms, _) = part.next(turn % 37);
                late += u64::from(timestamp_ms < *newest);
                *newest = timestamp_ms.max(*newest);
            }
            assert!((least..=most).contains(&late), "{late} late of 7,400");
            assert_eq!(part.late, late);
        }
    }

    #[test]
    fn every_share_of_late_samples_sends_the_same_data() {
        let (_, all) = sent(plan(0.0, false), 3);
        let first: Vec<i64> = all[0].keys().copied().collect();
        assert_eq!(first[..2], [START_MS, START_MS + STEP_MS]);
        assert!(all.iter().all(|series| series.keys().eq(first.iter())));
        assert!(all[0].values().ne(all[1].values()));
        for (percent, parts) in [(0.0, 1), (10.0, 3), (99.0, 2)] {
            assert!(all == sent(plan(percent, false), parts).1, "{percent} %");
        }
        let (_, mirrored) = sent(plan(0.0, true), 3);
        for (forward, backward) in all.iter().zip(&mirrored) {
            assert!(forward.values().eq(backward.values().rev()));
        }
    }
}
