//! Patched frame of reference: a block of at most 128 unsigned integers packed
//! at a width that most fit, the few that do not patched in afterwards.
//!
//! Block: one byte `width | 0x80 if patched`; if patched, one byte with the
//! number of patches; the packed low bits; then the positions (one byte each)
//! and the high bits (varints) of the patches. After Zukowski, Heman, Nes and
//! Boncz, "Super-Scalar RAM-CPU Cache Compression" (ICDE 2006).
//!
//! Tested by round trips against a twin that decodes bit by bit.

use crate::Error;
use crate::bitpack::{self, mask, packed_len, width_of};
use crate::varint::{Reader, put_varint, varint_len};

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
    let mut low = [0u64; BLOCK];
    let mut patches = 0u8;
    for (low, value) in low.iter_mut().zip(values) {
        *low = value & low_mask;
        patches += u8::from(*value > low_mask);
    }
    out.push(width as u8 | PATCHED);
    out.push(patches);
    bitpack::pack(&low[..values.len()], width, out);
    let patched = || {
        values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value > low_mask)
    };
    out.extend(patched().map(|(index, _)| index as u8));
    for (_, value) in patched() {
        put_varint(value >> width, out);
    }
}

/// Fills `out` (1 to [`BLOCK`] values) from the block at the cursor.
pub(crate) fn decode_block(reader: &mut Reader<'_>, out: &mut [u64]) -> Result<(), Error> {
    let block = Block::parse(reader, out.len())?;
    bitpack::unpack(block.packed, block.width, out);
    let mut high = Reader::new(block.high);
    for &position in block.positions {
        let slot = out
            .get_mut(usize::from(position))
            .ok_or(Error::Corrupt("a patch lies outside its block"))?;
        *slot |= high.varint()? << block.width;
    }
    Ok(())
}

/// Value `index` of a run of `count` values in blocks, without unpacking them.
pub(crate) fn get(reader: &mut Reader<'_>, count: usize, index: usize) -> Result<u64, Error> {
    for start in (0..count).step_by(BLOCK) {
        let block = Block::parse(reader, BLOCK.min(count - start))?;
        if index < start + BLOCK {
            let within = index - start;
            let mut high = Reader::new(block.high);
            let mut value = bitpack::get(block.packed, block.width, within);
            for &position in block.positions {
                let bits = high.varint()?;
                if usize::from(position) == within {
                    value |= bits << block.width;
                }
            }
            return Ok(value);
        }
    }
    Err(Error::OutOfRange { index, count })
}

/// One block taken apart, its patches not yet applied.
struct Block<'a> {
    width: u32,
    packed: &'a [u8],
    positions: &'a [u8],
    high: &'a [u8],
}

impl<'a> Block<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Result<Self, Error> {
        let head = reader.u8()?;
        let width = u32::from(head & !PATCHED);
        if width > 64 || (head & PATCHED != 0 && width == 64) {
            return Err(Error::Corrupt("a packed width exceeds 64 bits"));
        }
        let patches = if head & PATCHED != 0 {
            usize::from(reader.u8()?)
        } else {
            0
        };
        let packed = reader.take(packed_len(count, width))?;
        let positions = reader.take(patches)?;
        let high = reader.rest();
        for _ in 0..patches {
            reader.varint()?;
        }
        Ok(Self {
            width,
            packed,
            positions,
            high,
        })
    }
}

/// The width at which packed bits and patches together are smallest.
fn choose_width(values: &[u64], widest: u32) -> u32 {
    // Cheap refusal: where many values use the top two bits no patch pays.
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
        if patches * 4 > values.len() {
            break;
        }
        let mut cost = packed_len(values.len(), width) + 1 + patches;
        for bits in width + 1..=widest {
            cost += usize::from(widths[bits as usize]) * varint_len(mask(bits - width));
        }
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
            let patches = if patched { usize::from(bytes[1]) } else { 0 };
            bytes = &bytes[1 + usize::from(patched)..];
            let len = (n * width as usize).div_ceil(8);
            let mut block = bitpack::naive::unpack(&bytes[..len], width, n);
            let positions = bytes[len..len + patches].to_vec();
            bytes = &bytes[len + patches..];
            for position in positions {
                let end = bytes.iter().position(|b| *b < 0x80).unwrap() + 1;
                let high = bytes[..end]
                    .iter()
                    .rev()
                    .fold(0u64, |v, b| v << 7 | u64::from(b & 0x7f));
                block[usize::from(position)] |= high << width;
                bytes = &bytes[end..];
            }
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

    #[test]
    fn a_lone_outlier_does_not_widen_its_block() {
        let mut values = [3u64; 128];
        values[77] = u64::MAX;
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        assert!(bytes.len() <= 2 + 32 + 1 + 10, "{} bytes", bytes.len());
    }
}
