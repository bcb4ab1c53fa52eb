//! Few distinct values, each written once, and small indices.
//!
//! For states, set points and other values that step between levels that are not
//! short decimals. Levels are numbered in order of first use, so common ones
//! tend to have small numbers; patched blocks keep rare ones cheap.
//!
//! Layout: varint number of levels, the levels (`scalar`), indices (`pfor`).

use super::Scratch;
use crate::varint::{Reader, put_varint};
use crate::{Error, FRAME_SAMPLES_MAX, pfor, scalar};

/// Most levels of a dictionary.
const LEVELS_MAX: usize = 64;
const SLOTS: usize = 256;

/// Appends the values; false, and nothing appended, if they have too many levels.
pub(crate) fn encode(values: &[f64], scratch: &mut Scratch, out: &mut Vec<u8>) -> bool {
    let mut levels = [0u64; LEVELS_MAX];
    let mut count = 0usize;
    // Open addressing; 0 is empty, otherwise the level's number plus one.
    let mut slots = [0u8; SLOTS];
    for (index, value) in scratch.words.iter_mut().zip(values) {
        let bits = value.to_bits();
        let mut slot = (bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize;
        *index = loop {
            match slots[slot] {
                0 if count == LEVELS_MAX => return false,
                0 => {
                    levels[count] = bits;
                    count += 1;
                    slots[slot] = count as u8;
                    break count as u64 - 1;
                }
                level if levels[usize::from(level) - 1] == bits => break u64::from(level) - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        };
    }
    put_varint(count as u64, out);
    levels[..count]
        .iter()
        .for_each(|bits| scalar::put(f64::from_bits(*bits), out));
    pfor::encode(&scratch.words[..values.len()], out);
    true
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let count = reader.varint()?;
    if count > LEVELS_MAX as u64 {
        return Err(Error::Corrupt("a dictionary has more than 64 levels"));
    }
    let mut levels = [0.0; LEVELS_MAX];
    for level in &mut levels[..count as usize] {
        *level = scalar::get(reader)?;
    }
    let mut indices = [0u64; FRAME_SAMPLES_MAX];
    let indices = &mut indices[..out.len()];
    pfor::decode(reader, indices)?;
    for (slot, index) in out.iter_mut().zip(indices) {
        if *index >= count {
            return Err(Error::Corrupt("an index exceeds its dictionary"));
        }
        *slot = levels[*index as usize];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, check, steps};
    use proptest::prelude::*;

    /// The twin of the hash table: a list that is searched from its front.
    fn naive_levels(values: &[f64]) -> Vec<u64> {
        let mut levels = Vec::new();
        for value in values {
            if !levels.contains(&value.to_bits()) {
                levels.push(value.to_bits());
            }
        }
        levels
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in prop_oneof![steps(), any_values()]) {
            let levels = naive_levels(&values);
            let mut bytes = Vec::new();
            let held = encode(&values, &mut Scratch::default(), &mut bytes);
            prop_assert_eq!(held, levels.len() <= LEVELS_MAX);
            if held {
                check(&bytes, &values, decode);
                prop_assert_eq!(usize::from(bytes[0]), levels.len());
            }
        }
    }
}
