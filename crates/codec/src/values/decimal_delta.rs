//! Decimals as deltas of mantissas, in patched blocks of 128.
//!
//! For values that walk. Deltas are offsets from the smallest, or zigzag where
//! a few jumps (counter resets, spikes) would spoil that. The head is described
//! in `decimal`; then come a varint with the first offset, unless zigzag a
//! zigzag varint with the smallest delta, and the blocks of `pfor`.

use super::decimal::{self, Head};
use super::{Scratch, flag};
use crate::bitpack::width_of;
use crate::pfor::{self, BLOCK};
use crate::varint::{Reader, put_varint, put_zigzag, unzigzag, zigzag};
use crate::{Error, FRAME_SAMPLES_MAX};

/// Appends the mantissas that `decimal::quantize` left in `scratch`; returns the flags.
pub(crate) fn encode(values: &[f64], exponent: u8, scratch: &mut Scratch, out: &mut Vec<u8>) -> u8 {
    let mut flags = decimal::put_head(values, exponent, scratch, out);
    let words = &scratch.words[..values.len()];
    let deltas = &mut scratch.ints[..values.len() - 1];
    let (mut min, mut max, mut folded_sum) = (i64::MAX, i64::MIN, 0u64);
    for (slot, (a, b)) in deltas.iter_mut().zip(words.iter().zip(&words[1..])) {
        let delta = b.wrapping_sub(*a) as i64;
        *slot = delta;
        min = min.min(delta);
        max = max.max(delta);
        folded_sum = folded_sum.wrapping_add(zigzag(delta));
    }
    put_varint(words[0], out);
    // The width most zigzag deltas need, against the width all offsets need.
    let usual = width_of(folded_sum / deltas.len().max(1) as u64) + 1;
    let slots = &mut scratch.words[..deltas.len()];
    if deltas.is_empty() || width_of(max.wrapping_sub(min) as u64) <= usual + 1 {
        let min = if deltas.is_empty() { 0 } else { min };
        put_zigzag(min, out);
        slots
            .iter_mut()
            .zip(deltas)
            .for_each(|(slot, delta)| *slot = delta.wrapping_sub(min) as u64);
    } else {
        flags |= flag::ZIGZAG;
        slots
            .iter_mut()
            .zip(deltas)
            .for_each(|(slot, delta)| *slot = zigzag(*delta));
    }
    pfor::encode(slots, out);
    flags
}

/// Fills `out`.
pub(crate) fn decode(reader: &mut Reader<'_>, flags: u8, out: &mut [f64]) -> Result<(), Error> {
    let head = Head::parse(reader, flags)?;
    let mut offset = reader.varint()?;
    let min = if flags & flag::ZIGZAG == 0 {
        Some(reader.zigzag()?)
    } else {
        None
    };
    let mut offsets = [0u64; FRAME_SAMPLES_MAX];
    let offsets = &mut offsets[..out.len()];
    offsets[0] = offset;
    for deltas in offsets[1..].chunks_mut(BLOCK) {
        pfor::decode_block(reader, deltas)?;
        match min {
            Some(min) => deltas.iter_mut().for_each(|slot| {
                offset = offset.wrapping_add(*slot).wrapping_add_signed(min);
                *slot = offset;
            }),
            None => deltas.iter_mut().for_each(|slot| {
                offset = offset.wrapping_add_signed(unzigzag(*slot));
                *slot = offset;
            }),
        }
    }
    head.values(offsets, out);
    head.patch(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, bits};
    use proptest::prelude::*;

    /// The twin: fetches one delta at a time and sums in i128.
    fn naive_decode(mut reader: Reader<'_>, flags: u8, count: usize) -> Vec<f64> {
        let head = Head::parse(&mut reader, flags).unwrap();
        let mut offset = i128::from(reader.varint().unwrap());
        let min = if flags & flag::ZIGZAG == 0 {
            Some(i128::from(reader.zigzag().unwrap()))
        } else {
            None
        };
        let mut offsets = vec![offset as u64];
        for index in 0..count - 1 {
            let delta = pfor::get(&mut reader.clone(), count - 1, index).unwrap();
            offset += min.map_or(i128::from(unzigzag(delta)), |min| min + i128::from(delta));
            offsets.push(offset as u64);
        }
        decimal::naive::values(&head, offsets.into_iter())
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values()) {
            let mut scratch = Scratch::new();
            let exponent = decimal::guess_exponent(&values).unwrap_or(3);
            if decimal::quantize(&values, decimal::power_of_ten(exponent), &mut scratch) {
                let mut bytes = Vec::new();
                let flags = encode(&values, exponent, &mut scratch, &mut bytes);
                let section = crate::values::Section {
                    coding: crate::ValueCoding::DecimalDelta, flags, count: values.len(), bytes: &bytes,
                };
                let mut back = vec![0.0; values.len()];
                section.decode(&mut back).unwrap();
                prop_assert_eq!(bits(&back), bits(&values));
                let twin = naive_decode(section.coded().unwrap(), flags, values.len());
                prop_assert_eq!(bits(&twin), bits(&values));
            }
        }
    }
}
