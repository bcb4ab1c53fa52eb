//! A Bloom filter of the timestamps of a series.
//!
//! BLOCK must know whether a sample exists at the timestamp of a late one, and
//! almost always none does. The filter decides that from one cache line, whatever
//! the spacing of the timestamps; only if it answers *maybe* is a lookup necessary.
//! All bits of a timestamp are in one cache line (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
//!
//! Invariant: a timestamp that was inserted is never reported as absent. Nothing is
//! removed: a filter with timestamps that no longer exist only answers *maybe* more
//! often. Tested below, together with the rate of false positives.

use latewood_model::Timestamp;

const LINE_BITS: usize = 512;
/// Bits for each timestamp in a full filter. One in a hundred lookups is then a
/// false positive, and less than one in a thousand in a half-full one.
const TIMESTAMP_BITS: usize = 10;
/// Bits set by a timestamp.
const PROBES: u32 = 5;
/// Bits that select a bit of a line.
const PLACE_BITS: u32 = LINE_BITS.ilog2();
/// The golden ratio and another odd number, to spread adjacent timestamps.
const SPREAD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Line([u64; LINE_BITS / 64]);

#[derive(Clone, Debug)]
pub(super) struct Filter {
    lines: Box<[Line]>,
    taken: usize,
}

impl Filter {
    /// An empty filter for `timestamps` timestamps.
    pub(super) fn new(timestamps: usize) -> Self {
        let lines = (timestamps * TIMESTAMP_BITS).div_ceil(LINE_BITS).max(1);
        Self {
            lines: vec![Line([0; LINE_BITS / 64]); lines].into(),
            taken: 0,
        }
    }

    /// Inserts a timestamp. Constant time.
    #[inline]
    pub(super) fn insert(&mut self, timestamp: Timestamp) {
        let (line, places) = self.find(timestamp);
        let Line(words) = &mut self.lines[line];
        for place in places {
            words[place / 64] |= 1 << (place % 64);
        }
        self.taken += 1;
    }

    /// `false` if `timestamp` was certainly never inserted. Constant time.
    #[inline]
    pub(super) fn may_hold(&self, timestamp: Timestamp) -> bool {
        let (line, places) = self.find(timestamp);
        let Line(words) = &self.lines[line];
        // No branch for each bit: which one is missing cannot be predicted.
        let bits = places.map(|place| words[place / 64] >> (place % 64));
        bits.fold(1, |all, bit| all & bit) == 1
    }

    /// Whether it holds the number of timestamps it was made for.
    pub(super) fn is_full(&self) -> bool {
        self.taken * TIMESTAMP_BITS >= self.lines.len() * LINE_BITS
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// The line of a timestamp, and its bits there.
    #[inline]
    fn find(&self, timestamp: Timestamp) -> (usize, impl Iterator<Item = usize> + use<>) {
        let wide = u128::from(timestamp as u64 ^ SPREAD[1]) * u128::from(SPREAD[0]);
        let hash = (wide as u64) ^ (wide >> 64) as u64;
        // The upper half times the number of lines, without a division.
        let line = ((hash >> 32) * self.lines.len() as u64) >> 32;
        let places = hash.wrapping_mul(SPREAD[1]);
        let place = move |probe| {
            let shift = u64::BITS - PLACE_BITS * (probe + 1);
            (places >> shift) as usize % LINE_BITS
        };
        (line as usize, (0..PROBES).map(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_taken_in_is_never_absent(
            timestamps in prop::collection::vec(any::<i64>(), 0..300),
            dense in prop::collection::vec(0i64..1000, 0..300),
            capacity in 0usize..500,
        ) {
            let mut filter = Filter::new(capacity);
            for &at in timestamps.iter().chain(&dense) {
                filter.insert(at);
                prop_assert!(filter.may_hold(at));
            }
            for &at in timestamps.iter().chain(&dense) {
                prop_assert!(filter.may_hold(at), "{}", at);
            }
        }
    }

    #[test]
    fn it_is_seldom_wrong_whatever_the_spacing() {
        const COUNT: i64 = 50_000;
        for step in [1, 2, 10, 32, 512, 1_000, 4_096, 15_000, 60_000, 3_600_000] {
            for begin in [0, 1_700_000_000_000] {
                let mut filter = Filter::new(COUNT as usize);
                for index in 0..COUNT {
                    filter.insert(begin + index * 2 * step);
                }
                let between = (0..COUNT).map(|index| begin + (index * 2 + 1) * step);
                let wrong = between.filter(|&at| filter.may_hold(at)).count();
                assert!(
                    wrong < COUNT as usize / 40,
                    "{wrong} at {step} from {begin}"
                );
            }
        }
    }

    #[test]
    fn it_is_full_after_what_it_was_made_for() {
        for capacity in [1, 51, 52, 1_000] {
            let mut filter = Filter::new(capacity);
            let mut taken = 0;
            while !filter.is_full() {
                filter.insert(taken);
                taken += 1;
            }
            let line = (LINE_BITS / TIMESTAMP_BITS) as i64 + 1;
            assert!(
                (capacity as i64..=capacity as i64 + line).contains(&taken),
                "{taken}"
            );
            assert!(filter.memory_bytes() <= capacity * 2 + 64);
        }
    }
}
