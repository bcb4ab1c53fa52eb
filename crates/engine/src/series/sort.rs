//! Sorting late operations by timestamp, arrival order kept among equals.
//!
//! A stable radix sort, least significant digit first (Knuth, The Art of
//! Computer Programming, volume 3, section 5.2.5), over the bits in which the
//! timestamps differ: milliseconds of a day take three passes, whatever their
//! order. Small, already sorted or very wide inputs go to the standard stable
//! sort, which finds existing runs.
//!
//! Tested against the standard sort on random data.

use super::late::LateOp;
use latewood_model::Timestamp;

const DIGIT_BITS: u32 = 11;
/// More passes than this cost more than comparing.
const PASSES_MAX: u32 = 4;
const RADIX_MIN: usize = 128;

/// Sorts `ops` by timestamp, stably. Linear for spans below 2^44 ms.
pub(crate) fn sort_by_timestamp(ops: &mut Vec<LateOp>) {
    if ops.is_sorted_by_key(|op| op.timestamp) {
        return;
    }
    let (first, last) = span(ops);
    let bits = u64::BITS - last.abs_diff(first).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    if ops.len() < RADIX_MIN || passes > PASSES_MAX {
        ops.sort_by_key(|op| op.timestamp);
        return;
    }
    let width = bits.div_ceil(passes);
    let mut from = std::mem::take(ops);
    let mut to = from.clone();
    for pass in 0..passes {
        scatter(&from, &mut to, first, pass * width, width);
        std::mem::swap(&mut from, &mut to);
    }
    *ops = from;
}

fn span(ops: &[LateOp]) -> (Timestamp, Timestamp) {
    ops.iter()
        .fold((Timestamp::MAX, Timestamp::MIN), |span, op| {
            (span.0.min(op.timestamp), span.1.max(op.timestamp))
        })
}

/// One pass: `from` into `to`, ordered by `width` bits from `shift` on.
fn scatter(from: &[LateOp], to: &mut [LateOp], base: Timestamp, shift: u32, width: u32) {
    let mask = (1u64 << width) - 1;
    let digit = |op: &LateOp| ((op.timestamp.abs_diff(base) >> shift) & mask) as usize;
    let mut places = [0u32; 1 << DIGIT_BITS];
    for op in from {
        places[digit(op)] += 1;
    }
    let mut next = 0;
    for place in &mut places[..1 << width] {
        let count = *place;
        *place = next;
        next += count;
    }
    for op in from {
        let place = &mut places[digit(op)];
        to[*place as usize] = *op;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::DuplicatePolicy;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_stable_sort(
            span_bits in 0u32..64,
            timestamps in prop::collection::vec(any::<i64>(), 0..600),
        ) {
            let ops: Vec<LateOp> = timestamps
                .iter()
                .enumerate()
                .map(|(arrival, timestamp)| LateOp {
                    timestamp: timestamp >> span_bits,
                    value: arrival as f64,
                    policy: DuplicatePolicy::Last,
                })
                .collect();
            let (mut sorted, mut expected) = (ops.clone(), ops);
            sort_by_timestamp(&mut sorted);
            expected.sort_by_key(|op| op.timestamp);
            let plain = |ops: &[LateOp]| -> Vec<_> {
                ops.iter().map(|op| (op.timestamp, op.value.to_bits())).collect()
            };
            prop_assert_eq!(plain(&sorted), plain(&expected));
        }
    }
}
