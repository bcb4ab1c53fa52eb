//! Bit-packing: unsigned integers of one width, end to end, no gaps.
//!
//! Value `i` of width `w` occupies bits `i * w .. (i + 1) * w` of the byte
//! string, lowest bit first. Eight values of any width end on a byte, so the
//! kernels work in groups of eight with the width as a constant: each value is
//! one unaligned load, one shift and one mask, and the compiler unrolls the
//! group. Any value can be fetched alone in O(1).
//!
//! Tested against a twin that moves one bit at a time.

/// Values a kernel handles at once: eight values of any width end on a byte.
const GROUP: usize = 8;
/// Bytes past a group that a kernel may load (it masks them away).
const PADDING: usize = 8;

type Pack = fn(&[u64], &mut [u8]);
type Unpack = fn(&[u8], &mut [u64]);

/// Bytes that `count` values of `width` bits take.
#[inline]
pub(crate) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The width of the widest value whose bits are all in `or`.
#[inline]
pub(crate) fn width_of(or: u64) -> u32 {
    64 - or.leading_zeros()
}

/// All-ones in the lowest `width` bits.
#[inline]
pub(crate) fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// Appends `values`, each below `2^width`, as `packed_len` bytes.
pub(crate) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let kernel = PACK[width as usize];
    let (groups, tail) = values.split_at(values.len() / GROUP * GROUP);
    let start = out.len();
    out.resize(start + groups.len() / GROUP * width as usize, 0);
    kernel(groups, &mut out[start..]);
    if !tail.is_empty() {
        let mut padded = [0u64; GROUP];
        padded[..tail.len()].copy_from_slice(tail);
        let mut bytes = [0u8; 64];
        kernel(&padded, &mut bytes[..width as usize]);
        out.extend_from_slice(&bytes[..packed_len(tail.len(), width)]);
    }
}

/// Fills `out` from the start of `packed`; bits past its end read as zero.
pub(crate) fn unpack(packed: &[u8], width: u32, out: &mut [u64]) {
    if width == 0 {
        out.fill(0);
        return;
    }
    let kernel = UNPACK[width as usize];
    let stride = width as usize;
    let groups = (out.len() / GROUP).min(packed.len().saturating_sub(PADDING) / stride);
    let (fast, rest) = out.split_at_mut(groups * GROUP);
    kernel(packed, fast);
    // The last groups are copied out so that loads may run past them.
    let mut source = &packed[groups * stride..];
    for chunk in rest.chunks_mut(GROUP) {
        let mut padded = [0u8; 64 + PADDING];
        let len = source.len().min(stride);
        padded[..len].copy_from_slice(&source[..len]);
        source = &source[len..];
        let mut values = [0u64; GROUP];
        kernel(&padded, &mut values);
        chunk.copy_from_slice(&values[..chunk.len()]);
    }
}

/// Value `index` of `packed`; bits past the end read as zero. O(1).
#[inline]
pub(crate) fn get(packed: &[u8], width: u32, index: usize) -> u64 {
    let bit = index * width as usize;
    let (byte, shift) = (bit / 8, bit % 8);
    let word = match packed.get(byte..byte + 16) {
        Some(bytes) => {
            let mut word = [0u8; 16];
            word.copy_from_slice(bytes);
            u128::from_le_bytes(word)
        }
        None => {
            let rest = packed.get(byte..).unwrap_or_default();
            let mut word = [0u8; 16];
            word[..rest.len()].copy_from_slice(rest);
            u128::from_le_bytes(word)
        }
    };
    (word >> shift) as u64 & mask(width)
}

fn pack_groups<const W: usize>(values: &[u64], out: &mut [u8]) {
    for (group, bytes) in values.chunks_exact(GROUP).zip(out.chunks_exact_mut(W)) {
        let mut words = [0u64; 9];
        for (k, &value) in group.iter().enumerate() {
            let (word, shift) = (k * W / 64, k * W % 64);
            words[word] |= value << shift;
            if shift + W > 64 {
                words[word + 1] |= value >> (64 - shift);
            }
        }
        for (chunk, word) in bytes.chunks_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}

fn unpack_groups<const W: usize>(packed: &[u8], out: &mut [u64]) {
    let mask = mask(W as u32);
    for (g, group) in out.chunks_exact_mut(GROUP).enumerate() {
        let source = &packed[g * W..g * W + W + PADDING];
        for (k, value) in group.iter_mut().enumerate() {
            let (byte, shift) = (k * W / 8, k * W % 8);
            let mut word = [0u8; 8];
            word.copy_from_slice(&source[byte..byte + 8]);
            let mut bits = u64::from_le_bytes(word) >> shift;
            if shift + W > 64 {
                bits |= u64::from(source[byte + 8]) << (64 - shift);
            }
            *value = bits & mask;
        }
    }
}

/// One entry per width; width 0 is handled before the table is asked.
macro_rules! kernels {
    ($kernel:ident: $($width:literal)*) => {
        [$kernel::<1>, $($kernel::<$width>),*]
    };
}

const PACK: [Pack; 65] = kernels!(pack_groups:
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
const UNPACK: [Unpack; 65] = kernels!(unpack_groups:
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);

/// The twin: one bit at a time, no groups, no padding.
#[cfg(test)]
pub(crate) mod naive {
    pub(crate) fn pack(values: &[u64], width: u32) -> Vec<u8> {
        let mut bytes = vec![0u8; (values.len() * width as usize).div_ceil(8)];
        for (index, value) in values.iter().enumerate() {
            for bit in 0..width as usize {
                let at = index * width as usize + bit;
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        bytes
    }

    pub(crate) fn unpack(packed: &[u8], width: u32, count: usize) -> Vec<u64> {
        (0..count)
            .map(|index| {
                (0..width as usize).fold(0u64, |value, bit| {
                    let at = index * width as usize + bit;
                    value | u64::from(packed[at / 8] >> (at % 8) & 1) << bit
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_its_twin(width in 0u32..=64, raw in prop::collection::vec(any::<u64>(), 0..150)) {
            let values: Vec<u64> = raw.iter().map(|v| v & mask(width)).collect();
            let mut packed = vec![0xAA];
            pack(&values, width, &mut packed);
            prop_assert_eq!(&packed[1..], naive::pack(&values, width));
            prop_assert_eq!(packed.len() - 1, packed_len(values.len(), width));
            let mut back = vec![u64::MAX; values.len()];
            unpack(&packed[1..], width, &mut back);
            prop_assert_eq!(&back, &values);
            prop_assert_eq!(naive::unpack(&packed[1..], width, values.len()), values.clone());
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(get(&packed[1..], width, index), *value);
            }
        }
    }

    #[test]
    fn reading_past_the_end_gives_zeros() {
        assert_eq!(get(&[0xff], 8, 1), 0);
        assert_eq!(get(&[], 64, 7), 0);
    }
}
