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

const LANES: usize = 4;

/// Appends the mantissas that `decimal::quantize` left in `scratch`; returns the flags.
pub(crate) fn encode(values: &[f64], exponent: u8, scratch: &mut Scratch, out: &mut Vec<u8>) -> u8 {
    let mut flags = decimal::put_head(values, exponent, scratch, out);
    let words = &scratch.words[..values.len()];
    let spread = Spread::of(&scratch.floats[..values.len()]);
    put_varint(words[0], out);
    let slots = &mut scratch.deltas[..values.len() - 1];
    let deltas = words
        .iter()
        .zip(&words[1..])
        .map(|(a, b)| b.wrapping_sub(*a));
    if spread.is_even() {
        put_zigzag(spread.min as i64, out);
        let min = spread.min as i64 as u64;
        slots
            .iter_mut()
            .zip(deltas)
            .for_each(|(slot, delta)| *slot = delta.wrapping_sub(min));
    } else {
        flags |= flag::ZIGZAG;
        slots
            .iter_mut()
            .zip(deltas)
            .for_each(|(slot, delta)| *slot = zigzag(delta as i64));
    }
    pfor::encode(slots, out);
    flags
}

/// How far the deltas reach. Floats, because their minimum vectorises everywhere;
/// exact, because offsets stay below 2^52.
struct Spread {
    min: f64,
    max: f64,
    mean_magnitude: f64,
}

impl Spread {
    fn of(offsets: &[f64]) -> Self {
        let gaps = offsets.len() - 1;
        if gaps == 0 {
            return Self {
                min: 0.0,
                max: 0.0,
                mean_magnitude: 0.0,
            };
        }
        let mut min = [f64::INFINITY; LANES];
        let mut max = [f64::NEG_INFINITY; LANES];
        let mut sum = [0.0; LANES];
        let mut add = |lane: usize, delta: f64| {
            min[lane] = if delta < min[lane] { delta } else { min[lane] };
            max[lane] = if delta > max[lane] { delta } else { max[lane] };
            sum[lane] += delta.abs();
        };
        let (before, before_tail) = offsets[..gaps].as_chunks::<LANES>();
        let (after, after_tail) = offsets[1..].as_chunks::<LANES>();
        for (a, b) in before.iter().zip(after) {
            for lane in 0..LANES {
                add(lane, b[lane] - a[lane]);
            }
        }
        before_tail
            .iter()
            .zip(after_tail)
            .for_each(|(a, b)| add(0, b - a));
        Self {
            min: min.iter().copied().fold(f64::INFINITY, f64::min),
            max: max.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean_magnitude: sum.iter().sum::<f64>() / gaps as f64,
        }
    }

    /// True if offsets from the smallest delta take at most two bits more than
    /// the zigzag of a usual one; false if a few jumps would set the width.
    fn is_even(&self) -> bool {
        let usual = width_of(2 * self.mean_magnitude as u64) + 1;
        width_of((self.max - self.min) as u64) <= usual + 1
    }
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
                // Grouped so that one addition, not two, waits for the sample before.
                offset = offset.wrapping_add(slot.wrapping_add_signed(min));
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
