//! Patched frame of reference: blocks of at most 128 unsigned integers, packed
//! at a width that most of them fit; the others are patched in.
//!
//! Block: one byte `width | 0x80 if patched`; if patched, one byte with the
//! number of patches and one with the width of their high bits; the packed low
//! bits; then the positions (one byte each) and the packed high bits of the
//! patches. After Zukowski, Heman, Nes and Boncz, "Super-Scalar RAM-CPU Cache
//! Compression" (ICDE 2006).
//!
//! Tested by round trips against a twin that decodes bit by bit.

use crate::Error;
use crate::bitpack::{self, mask, packed_len, width_of};
use crate::varint::Reader;

/// Values in a full block.
pub(crate) const BLOCK: usize = 128;
const PATCHED: u8 = 0x80;

/// Appends `values` as blocks of [`BLOCK`].
pub(crate) fn encode(values: &[u64], out: &mut Vec<u8>) {
    for block in values.chunks(BLOCK) {
        encode_block(block, out);
    }
}

/// Fills `out` from the blocks at the cursor.
pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [u64]) -> Result<(), Error> {
    out.chunks_mut(BLOCK)
        .try_for_each(|block| decode_block(reader, block))
}

/// Appends one block of 1 to [`BLOCK`] values.
pub(crate) fn encode_block(values: &[u64], out: &mut Vec<u8>) {
    let widest = width_of(values.iter().fold(0, |or, v| or | v));
    let width = choose_width(values, widest);
    if width == widest {
        out.push(width as u8);
        bitpack::pack(values, width, out);
        return;
    }
    let low_mask = mask(width);
    let (mut low, mut high, mut positions) = ([0u64; BLOCK], [0u64; BLOCK], [0u8; BLOCK]);
    let mut patches = 0;
    for (index, (low, value)) in low.iter_mut().zip(values).enumerate() {
        *low = value & low_mask;
        if *value > low_mask {
            (positions[patches], high[patches]) = (index as u8, value >> width);
            patches += 1;
        }
    }
    out.extend([width as u8 | PATCHED, patches as u8, (widest - width) as u8]);
    bitpack::pack(&low[..values.len()], width, out);
    out.extend_from_slice(&positions[..patches]);
    bitpack::pack(&high[..patches], widest - width, out);
}

/// Fills `out` (1 to [`BLOCK`] values) from the block at the cursor.
pub(crate) fn decode_block(reader: &mut Reader<'_>, out: &mut [u64]) -> Result<(), Error> {
    Block::parse(reader, out.len())?.unpack(0, out)
}

/// Value `index` of a run of `count` values in blocks, without unpacking them.
pub(crate) fn get(reader: &mut Reader<'_>, count: usize, index: usize) -> Result<u64, Error> {
    for start in (0..count).step_by(BLOCK) {
        let block = Block::parse(reader, BLOCK.min(count - start))?;
        if index < start + BLOCK {
            return Ok(block.get(index - start));
        }
    }
    Err(Error::OutOfRange { index, count })
}

/// The sections of one block, still packed.
pub(crate) struct Block<'a> {
    width: u32,
    high_width: u32,
    packed: &'a [u8],
    positions: &'a [u8],
    high: &'a [u8],
}

impl<'a> Block<'a> {
    /// The block of `count` (at most [`BLOCK`]) values at the cursor. O(1).
    #[inline]
    pub(crate) fn parse(reader: &mut Reader<'a>, count: usize) -> Result<Self, Error> {
        let head = reader.u8()?;
        let width = u32::from(head & !PATCHED);
        let (patches, high_width) = if head & PATCHED != 0 {
            (usize::from(reader.u8()?), u32::from(reader.u8()?))
        } else {
            (0, 0)
        };
        // A patch without bits is invalid: it would be shifted out of its value.
        let is_empty = patches > 0 && high_width == 0;
        if width + high_width > 64 || patches > count || is_empty {
            return Err(Error::Corrupt("a packed block contradicts itself"));
        }
        let packed = reader.take(packed_len(count, width))?;
        let positions = reader.take(patches)?;
        let high = reader.take(packed_len(patches, high_width))?;
        Ok(Self {
            width,
            high_width,
            packed,
            positions,
            high,
        })
    }

    /// Fills `out` with the values from `start` on, a multiple of eight.
    #[inline]
    pub(crate) fn unpack(&self, start: usize, out: &mut [u64]) -> Result<(), Error> {
        let packed = self
            .packed
            .get(start / 8 * self.width as usize..)
            .unwrap_or_default();
        bitpack::unpack(packed, self.width, out);
        for (patch, &position) in self.positions.iter().enumerate() {
            let Some(at) = usize::from(position).checked_sub(start) else {
                continue;
            };
            if let Some(slot) = out.get_mut(at) {
                *slot |= bitpack::get(self.high, self.high_width, patch) << self.width;
            } else if usize::from(position) >= BLOCK {
                return Err(Error::Corrupt("a patch lies outside its block"));
            }
        }
        Ok(())
    }

    fn get(&self, index: usize) -> u64 {
        let low = bitpack::get(self.packed, self.width, index);
        let patch = self
            .positions
            .iter()
            .position(|position| usize::from(*position) == index);
        patch.map_or(low, |patch| {
            low | bitpack::get(self.high, self.high_width, patch) << self.width
        })
    }
}

/// The width at which packed bits and patches together are smallest.
fn choose_width(values: &[u64], widest: u32) -> u32 {
    // Cheap early exit: if many values use the top two bits, patches do not pay.
    let threshold = mask(widest.saturating_sub(2));
    let wide = values.iter().filter(|value| **value > threshold).count();
    if wide * 8 > values.len() {
        return widest;
    }
    let mut widths = [0u8; 65];
    for value in values {
        widths[width_of(*value) as usize] += 1;
    }
    let mut best = (packed_len(values.len(), widest), widest);
    let mut patches = 0;
    for width in (0..widest).rev() {
        patches += usize::from(widths[width as usize + 1]);
        if patches * 8 > values.len() {
            break;
        }
        let cost =
            packed_len(values.len(), width) + 2 + patches + packed_len(patches, widest - width);
        if cost < best.0 {
            best = (cost, width);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The twin: reads the same bytes one bit at a time.
    fn naive_decode(mut bytes: &[u8], count: usize) -> Vec<u64> {
        let mut values = Vec::new();
        while values.len() < count {
            let n = (count - values.len()).min(128);
            let (width, patched) = (u32::from(bytes[0] & 0x7f), bytes[0] >= 0x80);
            let (patches, high_width) = if patched {
                (usize::from(bytes[1]), u32::from(bytes[2]))
            } else {
                (0, 0)
            };
            bytes = &bytes[if patched { 3 } else { 1 }..];
            let len = (n * width as usize).div_ceil(8);
            let mut block = bitpack::naive::unpack(&bytes[..len], width, n);
            let positions = &bytes[len..len + patches];
            let high_end = len + patches + (patches * high_width as usize).div_ceil(8);
            let high = bitpack::naive::unpack(&bytes[len + patches..high_end], high_width, patches);
            for (position, high) in positions.iter().zip(high) {
                block[usize::from(*position)] |= high << width;
            }
            bytes = &bytes[high_end..];
            values.extend(block);
        }
        assert!(bytes.is_empty());
        values
    }

    fn skewed() -> impl Strategy<Value = Vec<u64>> {
        (0u32..=64, 0u32..=64).prop_flat_map(|(common, rare)| {
            let value = prop_oneof![20 => any::<u64>().prop_map(move |v| v & mask(common)),
                                    1 => any::<u64>().prop_map(move |v| v & mask(rare))];
            prop::collection::vec(value, 1..400)
        })
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in skewed()) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            prop_assert_eq!(naive_decode(&bytes, values.len()), values.clone());
            let mut back = vec![0; values.len()];
            let mut reader = Reader::new(&bytes);
            decode(&mut reader, &mut back).unwrap();
            prop_assert!(reader.rest().is_empty());
            prop_assert_eq!(&back, &values);
            for (index, value) in values.iter().enumerate().step_by(7) {
                prop_assert_eq!(get(&mut Reader::new(&bytes), values.len(), index), Ok(*value));
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(
            head in prop::collection::vec(any::<u8>(), 1..4),
            rest in prop::collection::vec(any::<u8>(), 0..600),
            count in 1..300usize,
        ) {
            let bytes = [head, rest].concat();
            let _ = decode(&mut Reader::new(&bytes), &mut vec![0; count]);
            let _ = get(&mut Reader::new(&bytes), count, count - 1);
        }
    }

    #[test]
    fn patches_without_bits_are_refused() {
        for width in [0, 7, 64] {
            let bytes = [vec![width | PATCHED, 1, 0], vec![0; 8 * 64 + 1]].concat();
            let mut out = [0; 64];
            assert!(decode_block(&mut Reader::new(&bytes), &mut out).is_err());
            assert!(get(&mut Reader::new(&bytes), 64, 0).is_err());
        }
    }

    #[test]
    fn a_lone_outlier_does_not_widen_its_block() {
        let mut values = [3u64; 128];
        values[77] = u64::MAX;
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        assert!(bytes.len() <= 3 + 32 + 1 + 8, "{} bytes", bytes.len());
    }
}
