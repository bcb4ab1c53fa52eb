//! Decimals as deltas of mantissas, in patched blocks of 128.
//!
//! For values that walk. Deltas are offsets from the smallest, or zigzag where
//! a few jumps (counter resets, spikes) would spoil that. The head is described
//! in `decimal::head`; then come a varint with the first offset, unless zigzag a
//! zigzag varint with the smallest delta, and the blocks of `pfor`.

use super::Head;
use super::extent::{CHUNK, Extent, Lanes};
use crate::Error;
use crate::bitpack::width_of;
use crate::pfor::{self, BLOCK};
use crate::simd::{self, Kernel};
use crate::values::flag;
use crate::varint::{Reader, put_varint, put_zigzag, unzigzag, zigzag};

/// Appends the offsets that `decimal::Offsets::find` left as floats and as
/// words; returns the flags. `deltas` is scratch of the same length.
pub(crate) fn encode(floats: &[f64], words: &[u64], deltas: &mut [u64], out: &mut Vec<u8>) -> u8 {
    put_varint(words[0], out);
    let deltas = &mut deltas[1..words.len()];
    let min = simd::run(SpreadOf(floats)).even_min();
    if let Some(min) = min {
        put_zigzag(min, out);
    }
    simd::run(Deltas {
        words,
        min,
        out: deltas,
    });
    pfor::encode(deltas, out);
    if min.is_none() { flag::ZIGZAG } else { 0 }
}

/// How far the deltas reach. Floats, because their minimum vectorises everywhere;
/// exact, because offsets stay below 2^52.
struct Spread {
    extent: Extent,
    mean_magnitude: f64,
}

impl Spread {
    /// The smallest delta, if offsets from it take at most two bits more than
    /// the zigzag of a usual one; `None` if a few jumps would set the width.
    fn even_min(&self) -> Option<i64> {
        let Extent { min, max } = self.extent;
        if max < min {
            // A single value has no deltas.
            return Some(0);
        }
        let usual = width_of(2 * self.mean_magnitude as u64) + 1;
        (width_of((max - min) as u64) <= usual + 1).then_some(min as i64)
    }
}

struct SpreadOf<'a>(&'a [f64]);

impl Kernel for SpreadOf<'_> {
    type Output = Spread;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Spread {
        let gaps = self.0.len() - 1;
        let (mut lanes, mut magnitudes) = (Lanes::new(), [0.0f64; CHUNK]);
        let mut deltas = [0.0; CHUNK];
        let before = self.0[..gaps].chunks(CHUNK);
        for (before, after) in before.zip(self.0[1..].chunks(CHUNK)) {
            let deltas = &mut deltas[..before.len()];
            for (((delta, magnitude), a), b) in (deltas.iter_mut().zip(&mut magnitudes))
                .zip(before)
                .zip(after)
            {
                *delta = b - a;
                *magnitude += delta.abs();
            }
            lanes.include(deltas);
        }
        Spread {
            extent: lanes.extent(),
            mean_magnitude: magnitudes.iter().sum::<f64>() / gaps.max(1) as f64,
        }
    }
}

/// Differences of neighbours, less the smallest or as zigzag.
struct Deltas<'a> {
    words: &'a [u64],
    min: Option<i64>,
    out: &'a mut [u64],
}

impl Kernel for Deltas<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let pairs = self.words.iter().zip(&self.words[1..]);
        let slots = self.out.iter_mut().zip(pairs);
        match self.min {
            Some(min) => slots.for_each(|(slot, (a, b))| {
                *slot = b.wrapping_sub(*a).wrapping_sub(min as u64);
            }),
            None => slots.for_each(|(slot, (a, b))| *slot = zigzag(b.wrapping_sub(*a) as i64)),
        }
    }
}

pub(crate) fn decode(reader: &mut Reader<'_>, flags: u8, out: &mut [f64]) -> Result<(), Error> {
    let (head, mut sums) = Sums::begin(reader, flags)?;
    out[0] = head.value(sums.offset);
    let mut block = [0u64; BLOCK];
    for slots in out[1..].chunks_mut(BLOCK) {
        let offsets = &mut block[..slots.len()];
        sums.next(reader, offsets)?;
        head.values(offsets, slots);
    }
    head.patch(out)
}

/// Fills `out` with the offsets of the values, in units of the head.
pub(crate) fn offsets<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    out: &mut [u64],
) -> Result<Head<'a>, Error> {
    let (head, mut sums) = Sums::begin(reader, flags)?;
    let Some((first, rest)) = out.split_first_mut() else {
        return Ok(head);
    };
    *first = sums.offset;
    for slots in rest.chunks_mut(BLOCK) {
        sums.next(reader, slots)?;
    }
    Ok(head)
}

/// Running sums of the deltas.
struct Sums {
    offset: u64,
    /// The smallest delta; `None` where deltas are zigzag.
    min: Option<i64>,
}

impl Sums {
    /// The head and the first offset.
    #[inline(always)]
    fn begin<'a>(reader: &mut Reader<'a>, flags: u8) -> Result<(Head<'a>, Self), Error> {
        let head = Head::parse(reader, flags)?;
        let offset = reader.varint()?;
        let min = match flags & flag::ZIGZAG {
            0 => Some(reader.zigzag()?),
            _ => None,
        };
        Ok((head, Self { offset, min }))
    }

    /// Fills `slots` with the offsets of the next block.
    #[inline(always)]
    fn next(&mut self, reader: &mut Reader<'_>, slots: &mut [u64]) -> Result<(), Error> {
        pfor::decode_block(reader, slots)?;
        let mut offset = self.offset;
        match self.min {
            Some(min) => slots.iter_mut().for_each(|slot| {
                // Grouped so that one addition, not two, waits for the sample before.
                offset = offset.wrapping_add(slot.wrapping_add_signed(min));
                *slot = offset;
            }),
            None => slots.iter_mut().for_each(|slot| {
                offset = offset.wrapping_add_signed(unzigzag(*slot));
                *slot = offset;
            }),
        }
        self.offset = offset;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::decimal::twin::{encoded, naive_values};
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
        naive_values(&head, offsets.into_iter())
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values()) {
            if let Some((flags, bytes)) = encoded(&values, crate::ValueCoding::DecimalDelta) {
                let section = crate::values::Section {
                    coding: crate::ValueCoding::DecimalDelta, flags, count: values.len(), bytes: &bytes,
                };
                let twin = naive_decode(section.coded().unwrap(), flags, values.len());
                prop_assert_eq!(bits(&twin), bits(&values));
            }
        }
    }
}
