//! The twin of both decimal codings, and what their tests share.

use super::{Head, Offsets};
use crate::ValueCoding;
use crate::simd::tests::for_each_level;
use crate::values::samples::bits;
use crate::values::{Scratch, Section};

/// Plain division, one offset after the other.
pub(crate) fn naive_values(head: &Head<'_>, offsets: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut values: Vec<f64> = offsets
        .map(|offset| {
            (head.min as i128 + offset as i128 * head.divisor as i128) as f64 / head.divider.scale
        })
        .collect();
    head.patch(&mut values)
        .expect("the encoder wrote this head");
    values
}

/// Flags and bytes of `values` under `coding`, if it holds them: the same at
/// every level of this processor, and back to the same values at each.
pub(crate) fn encoded(values: &[f64], coding: ValueCoding) -> Option<(u8, Vec<u8>)> {
    let exponent = super::guess_exponent(values).unwrap_or(3);
    let mut written = for_each_level(|_| {
        let (mut scratch, mut bytes) = (Scratch::default(), Vec::new());
        let offsets = Offsets::find(values, exponent, &mut scratch)?;
        let flags = offsets.put(coding, values, &mut scratch, &mut bytes);
        Some((flags, bytes))
    });
    let portable = written.swap_remove(0);
    for other in &written {
        assert_eq!(*other, portable, "levels encode differently");
    }
    let (flags, bytes) = portable?;
    let count = values.len();
    let section = Section {
        coding,
        flags,
        count,
        bytes: &bytes,
    };
    for_each_level(|level| {
        let mut back = vec![0.0; count];
        section.decode(&mut back).expect("the encoder wrote it");
        assert_eq!(bits(&back), bits(values), "{level:?}");
    });
    Some((flags, bytes))
}
