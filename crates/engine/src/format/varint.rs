//! Integers of 1 to 9 bytes whose first byte tells the length.
//!
//! The number of trailing zero bits of the first byte, plus one, is the length
//! in bytes; a first byte of 0 means eight whole bytes follow. A value is
//! written with one eight-byte store and read with one eight-byte load, where
//! the usual seven-bits-and-a-flag form needs a loop. (The scheme is known as
//! prefix varint.) Signed numbers are zigzag-folded first. Every value has one
//! encoding; a reader refuses longer ones. Tested by proptest below.

/// Maximum length of an integer in bytes.
pub(crate) const VARINT_BYTES_MAX: usize = 9;

/// Folds a signed number so that small magnitudes become small numbers.
#[inline]
pub(crate) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
pub(crate) const fn unzigzag(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// The length of `value` in bytes.
#[inline]
const fn len_bytes(value: u64) -> usize {
    // A byte for each seven bits; the fraction is exact as far as 56 bits.
    let last = 63 - (value | 1).leading_zeros() as usize;
    if last >= 56 { 9 } else { (last * 9 + 73) / 64 }
}

/// Writes `value` at `at` and returns the position after it.
///
/// `out` must have at least [`VARINT_BYTES_MAX`] bytes from `at` on; bytes after
/// the value may be overwritten.
///
/// # Panics
/// If `out` is too short.
#[inline]
pub(crate) fn put(out: &mut [u8], at: usize, value: u64) -> usize {
    let n = len_bytes(value);
    if n == 9 {
        out[at] = 0;
        out[at + 1..at + 9].copy_from_slice(&value.to_le_bytes());
    } else {
        let word = (value << n) | (1 << (n - 1));
        out[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    at + n
}

/// Reads a value from the front of `bytes` and advances past it. `None` if the
/// bytes end early or are not the only valid encoding of the value.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let word = match bytes.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        }
    };
    let n = (word as u8).trailing_zeros() as usize + 1;
    let rest = bytes.get(n..)?;
    let value = if n == 9 {
        u64::from_le_bytes(*bytes[1..].first_chunk::<8>()?)
    } else {
        (word >> n) & ((1 << (7 * n)) - 1)
    };
    *bytes = rest;
    // A shorter encoding exists: `put` does not write this.
    (n == 1 || value >> (7 * (n - 1)) != 0).then_some(value)
}

/// Reads a length and that many bytes.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: u64) -> Vec<u8> {
        let mut out = vec![0xAA; 16];
        let end = put(&mut out, 0, value);
        out.truncate(end);
        out
    }

    #[test]
    fn lengths_change_at_every_seventh_bit() {
        for n in 1..=8_u32 {
            let first_longer = 1_u64 << (7 * n);
            assert_eq!(encoded(first_longer - 1).len(), n as usize);
            assert_eq!(encoded(first_longer).len(), n as usize + 1);
        }
        assert_eq!(encoded(u64::MAX).len(), VARINT_BYTES_MAX);
    }

    #[test]
    fn overlong_forms_are_refused() {
        // 1 in two bytes, and 1 in nine.
        for mut bytes in [&[0b110_u8, 0][..], &[0, 1, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(take(&mut bytes), None);
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value: u64, shift in 0_u32..64, tail: Vec<u8>) {
            let value = value >> shift;
            let mut bytes = encoded(value);
            let len = bytes.len();
            for cut in 0..len {
                prop_assert_eq!(take(&mut &bytes[..cut]), None);
            }
            bytes.extend_from_slice(&tail);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert_eq!(rest, &tail[..]);
        }

        #[test]
        fn signs_fold_and_unfold(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
