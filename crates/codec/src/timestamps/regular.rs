//! Equal spacing: timestamp `i` is `first + i * step`.
//!
//! The step is a varint in the frame's header, so timestamps take no further
//! bits and a search is one division. By far the most common shape.

/// The common spacing, if there is one. Expects at least one timestamp.
///
/// One pass without branches: also the cheapest proof that timestamps ascend.
pub(crate) fn detect(timestamps: &[i64]) -> Option<u64> {
    let (first, last) = (timestamps[0], timestamps[timestamps.len() - 1]);
    let Some(second) = timestamps.get(1) else {
        return Some(0);
    };
    if *second <= first || last <= first {
        return None;
    }
    let step = second.wrapping_sub(first);
    let differing = timestamps
        .iter()
        .zip(&timestamps[1..])
        .fold(0, |or, (a, b)| or | (b.wrapping_sub(*a) ^ step));
    if differing != 0 {
        return None;
    }
    // Equal deltas modulo 2^64 could still wrap: the span rules that out.
    let step = step as u64;
    let span = step.checked_mul(timestamps.len() as u64 - 1)?;
    (span == last.wrapping_sub(first) as u64).then_some(step)
}

pub(crate) fn decode(first: i64, step: u64, out: &mut [i64]) {
    let mut timestamp = first;
    for slot in out {
        *slot = timestamp;
        timestamp = timestamp.wrapping_add_unsigned(step);
    }
}

/// Index of the first timestamp >= `t` and whether it is `t`, for `t` inside the frame.
pub(crate) fn search(first: i64, step: u64, t: i64) -> (usize, bool) {
    let offset = t.wrapping_sub(first) as u64;
    let step = step.max(1);
    (offset.div_ceil(step) as usize, offset.is_multiple_of(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::samples::{naive_search, probes};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_counting_up(first: i64, step in 1u64..1 << 40, count in 1usize..512) {
            let twin: Vec<i64> = (0..count as i128)
                .map(|i| i128::from(first) + i * i128::from(step))
                .map_while(|t| i64::try_from(t).ok())
                .collect();
            prop_assert_eq!(detect(&twin), Some(if twin.len() == 1 { 0 } else { step }));
            let mut back = vec![0; twin.len()];
            decode(first, step, &mut back);
            prop_assert_eq!(&back, &twin);
            for t in probes(&twin) {
                if t > first && t < twin[twin.len() - 1] {
                    prop_assert_eq!(search(first, step, t), naive_search(&twin, t));
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_not_regular() {
        assert_eq!(detect(&[1, 2, 4]), None);
        assert_eq!(detect(&[3, 3, 3]), None);
        assert_eq!(detect(&[3, 2, 1]), None);
        // Equal wrapping deltas that do not ascend.
        assert_eq!(detect(&[0, i64::MAX, -2]), None);
        assert_eq!(detect(&[i64::MIN, i64::MAX]), Some(u64::MAX));
    }
}
