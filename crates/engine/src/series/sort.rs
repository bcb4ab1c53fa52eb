//! Sorting late operations by timestamp, keeping arrival order among equals.
//!
//! The sort works on words: each holds the differing bits of a timestamp above the
//! index of the operation. A radix sort orders the words, least significant digit
//! first (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). The
//! operations, three times as large, move once.
//!
//! Tested against the standard sort on random data.

use super::late::LateOp;
use latewood_model::Timestamp;

const DIGIT_BITS_MAX: u32 = 11;
/// Below this length a comparison sort is faster.
const RADIX_MIN: usize = 256;

/// The operations sorted by timestamp, in arrival order among equals, without those
/// that a later LAST overrides. Linear if they span less than 2^40 ms.
pub(crate) fn sorted(ops: &[LateOp]) -> Vec<LateOp> {
    let mut sorted = Vec::with_capacity(ops.len());
    if ops.is_sorted_by_key(|op| op.timestamp) {
        ops.iter().for_each(|op| follow(&mut sorted, *op));
    } else if let Some((mut words, place_bits)) = words(ops) {
        sort_words(&mut words, place_bits);
        let places = words.iter().map(|word| word & ((1 << place_bits) - 1));
        places.for_each(|place| follow(&mut sorted, ops[place as usize]));
    } else {
        let mut ops = ops.to_vec();
        ops.sort_by_key(|op| op.timestamp);
        ops.iter().for_each(|op| follow(&mut sorted, *op));
    }
    sorted
}

/// The same in place.
pub(crate) fn sort_ops(ops: &mut Vec<LateOp>) {
    if !ops.is_sorted_by(|one, other| one.timestamp < other.timestamp) {
        *ops = sorted(ops);
    }
}

/// Adds an operation that is not older than the others, and removes those it
/// overrides.
fn follow(sorted: &mut Vec<LateOp>, op: LateOp) {
    let is_before = |last: &&LateOp| last.timestamp == op.timestamp;
    while op.overrides() && sorted.last().filter(is_before).is_some() {
        sorted.pop();
    }
    sorted.push(op);
}

/// A word for each operation, and the number of its index bits; `None` if a word is
/// too short.
fn words(ops: &[LateOp]) -> Option<(Vec<u64>, u32)> {
    let ends = (Timestamp::MAX, Timestamp::MIN);
    let (first, last) = ops.iter().fold(ends, |ends, op| {
        (ends.0.min(op.timestamp), ends.1.max(op.timestamp))
    });
    let place_bits = usize::BITS - ops.len().leading_zeros();
    if last.abs_diff(first).leading_zeros() < place_bits {
        return None;
    }
    let word = |(op, place): (&LateOp, u64)| op.timestamp.abs_diff(first) << place_bits | place;
    Some((ops.iter().zip(0..).map(word).collect(), place_bits))
}

/// Sorts words that ascend in their lowest `sorted_bits`.
fn sort_words(words: &mut Vec<u64>, sorted_bits: u32) {
    if words.len() < RADIX_MIN {
        return words.sort_unstable();
    }
    let all = words.iter().fold(0, |all, word| all | word);
    let bits = u64::BITS - all.leading_zeros() - sorted_bits;
    // No more counters than words.
    let width_max = words.len().ilog2().min(DIGIT_BITS_MAX);
    let passes = bits.div_ceil(width_max);
    let width = bits.div_ceil(passes);
    let mut other = vec![0; words.len()];
    for pass in 0..passes {
        scatter(words, &mut other, sorted_bits + pass * width, width);
        std::mem::swap(words, &mut other);
    }
}

/// One pass: `from` into `to`, ordered by `width` bits from `shift` on.
fn scatter(from: &[u64], to: &mut [u64], shift: u32, width: u32) {
    let mask = (1u64 << width) - 1;
    let digit = |word: u64| (word >> shift & mask) as usize;
    let mut places = [0u32; 1 << DIGIT_BITS_MAX];
    for &word in from {
        places[digit(word)] += 1;
    }
    let mut next = 0;
    for place in &mut places[..1 << width] {
        next += std::mem::replace(place, next);
    }
    for &word in from {
        let place = &mut places[digit(word)];
        to[*place as usize] = word;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::DuplicatePolicy::{Last, Sum};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_stable_sort(
            span_bits in 0u32..64,
            lasts in any::<bool>(),
            timestamps in prop::collection::vec(any::<i64>(), 0..1_200),
        ) {
            let policy = |arrival: usize| if lasts && arrival.is_multiple_of(3) { Last } else { Sum };
            let ops: Vec<LateOp> = timestamps
                .iter()
                .enumerate()
                .map(|(arrival, timestamp)| LateOp {
                    timestamp: timestamp >> span_bits,
                    value: arrival as f64,
                    policy: policy(arrival),
                })
                .collect();
            let (mut in_place, mut expected) = (ops.clone(), ops.clone());
            sort_ops(&mut in_place);
            expected.sort_by_key(|op| op.timestamp);
            let plain = |ops: &[LateOp]| -> Vec<_> {
                ops.iter().map(|op| (op.timestamp, op.value.to_bits())).collect()
            };
            let is_overridden = |place: usize| {
                let same = |op: &&LateOp| op.timestamp == expected[place].timestamp;
                expected[place + 1..].iter().take_while(same).any(|op| op.policy == Last)
            };
            let kept: Vec<LateOp> =
                (0..expected.len()).filter(|&place| !is_overridden(place)).map(|place| expected[place]).collect();
            prop_assert_eq!(plain(&sorted(&ops)), plain(&kept));
            prop_assert_eq!(plain(&in_place), plain(&kept));
        }
    }
}
