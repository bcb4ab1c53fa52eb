//! XOR with the value before, leading and trailing zeros cut off.
//!
//! After Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series
//! Database" (VLDB 2015), section 4.1.2: `0` repeats the value; `10` reuses the
//! last window of meaningful bits; `11` opens a new one with 5 bits of leading
//! zeros and 6 bits of length less one. The first value takes 64 bits. Kept as
//! the reference coding and for full-precision data that repeats in part.

use crate::Error;
use crate::bits::{BitReader, BitWriter};
use crate::varint::Reader;

pub(crate) fn encode(values: &[f64], out: &mut Vec<u8>) {
    let mut bits = BitWriter::new(out);
    let mut previous = values[0].to_bits();
    let mut window: Option<(u32, u32)> = None;
    bits.put(previous, 64);
    for value in &values[1..] {
        let xor = value.to_bits() ^ previous;
        previous = value.to_bits();
        if xor == 0 {
            bits.put(0, 1);
            continue;
        }
        let (leading, trailing) = (xor.leading_zeros().min(31), xor.trailing_zeros());
        match window {
            Some((from, to)) if leading >= from && trailing >= to => {
                bits.put(0b01, 2);
                bits.put(xor >> to, 64 - from - to);
            }
            _ => {
                let len = 64 - leading - trailing;
                bits.put(0b11 | u64::from(leading) << 2 | u64::from(len - 1) << 7, 13);
                bits.put(xor >> trailing, len);
                window = Some((leading, trailing));
            }
        }
    }
    bits.finish();
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let mut bits = BitReader::new(reader.rest());
    let mut value = bits.get(64)?;
    let (mut trailing, mut len) = (0u32, 64u32);
    for (index, slot) in out.iter_mut().enumerate() {
        if index > 0 && bits.bit()? {
            if bits.bit()? {
                let head = bits.get(11)?;
                len = (head >> 5) as u32 + 1;
                trailing = 64u32
                    .checked_sub((head & 31) as u32 + len)
                    .ok_or(Error::Corrupt("an XOR window exceeds 64 bits"))?;
            }
            value ^= bits.get(len)? << trailing;
        }
        *slot = f64::from_bits(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, check};
    use proptest::prelude::*;

    /// The twin: every bit a `bool`, windows recomputed from the paper's words.
    fn naive_encode(values: &[f64]) -> Vec<bool> {
        let put = |out: &mut Vec<bool>, value: u64, len: u32| {
            out.extend((0..len).map(|bit| value >> bit & 1 == 1))
        };
        let mut out = Vec::new();
        put(&mut out, values[0].to_bits(), 64);
        let (mut from, mut to, mut open) = (0, 0, false);
        for pair in values.windows(2) {
            let xor = pair[0].to_bits() ^ pair[1].to_bits();
            out.push(xor != 0);
            if xor == 0 {
                continue;
            }
            let reuse = open
                && xor >> (64 - from).min(63) >> u32::from(from == 0) == 0
                && xor.trailing_zeros() >= to;
            out.push(!reuse);
            if !reuse {
                (from, to, open) = (xor.leading_zeros().min(31), xor.trailing_zeros(), true);
                put(&mut out, u64::from(from), 5);
                put(&mut out, u64::from(63 - from - to), 6);
            }
            put(&mut out, xor >> to, 64 - from - to);
        }
        out
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values()) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let twin = naive_encode(&values);
            prop_assert_eq!(bytes.len(), twin.len().div_ceil(8));
            let differs = twin.iter().enumerate().any(|(at, bit)| (bytes[at / 8] >> (at % 8) & 1 == 1) != *bit);
            prop_assert!(!differs);
            check(&bytes, &values, decode);
        }
    }
}
