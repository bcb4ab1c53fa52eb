//! Byte cursor, LEB128 varints and zigzag.
//!
//! Seven bits a byte, low bits first, the high bit says "more follows"; signed
//! numbers go through zigzag (0, -1, 1, -2 become 0, 1, 2, 3) so that small
//! magnitudes stay short. The cursor never reads past its slice and never
//! panics: every shortage is [`Error::Truncated`].

use crate::Error;

/// Folds the sign into the lowest bit.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends `value` in 1 to 10 bytes.
#[inline]
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number, small magnitudes short.
#[inline]
pub(crate) fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint(zigzag(value), out);
}

/// Bytes that [`put_varint`] would append.
#[inline]
pub(crate) fn varint_len(value: u64) -> usize {
    ((64 - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// A cursor over untrusted bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.bytes.split_first().ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        let (word, rest) = self
            .bytes
            .split_first_chunk::<8>()
            .ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*word))
    }

    #[inline]
    pub(crate) fn take(&mut self, len_bytes: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self
            .bytes
            .split_at_checked(len_bytes)
            .ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        // One byte is the usual case.
        if let Some((&first, rest)) = self.bytes.split_first()
            && first < 0x80
        {
            self.bytes = rest;
            return Ok(u64::from(first));
        }
        if let Some(word) = self.bytes.first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let len = ends.trailing_zeros() as usize / 8 + 1;
                self.bytes = &self.bytes[len..];
                return Ok(join_sevens(word & (u64::MAX >> (64 - 8 * len))));
            }
        }
        self.long_varint()
    }

    /// Nine or ten bytes, or fewer near the end: one at a time.
    #[cold]
    fn long_varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for (index, &byte) in self.bytes.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && byte > 1 {
                return Err(Error::Corrupt("a varint exceeds 64 bits"));
            }
            value |= bits << (7 * index);
            if byte < 0x80 {
                self.bytes = &self.bytes[index + 1..];
                return Ok(value);
            }
        }
        Err(Error::Truncated)
    }

    #[inline]
    pub(crate) fn zigzag(&mut self) -> Result<i64, Error> {
        Ok(unzigzag(self.varint()?))
    }
}

/// Closes the gaps between eight groups of seven bits.
#[inline]
fn join_sevens(word: u64) -> u64 {
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x3fff_0000_3fff_0000) >> 2;
    (word & 0x0fff_ffff) | (word & 0x0fff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip(value: u64, shift in 0u32..64, signed: i64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_varint(value, &mut bytes);
            prop_assert_eq!(bytes.len(), varint_len(value));
            put_zigzag(signed, &mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.zigzag(), Ok(signed));
            prop_assert!(reader.rest().is_empty());
            prop_assert_eq!(Reader::new(&bytes).varint(), Reader::new(&bytes).long_varint());
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert_eq!(Reader::new(&[0x80]).varint(), Err(Error::Truncated));
        assert_eq!(Reader::new(&[]).varint(), Err(Error::Truncated));
        let too_long = [0xff; 11];
        assert!(matches!(
            Reader::new(&too_long).varint(),
            Err(Error::Corrupt(_))
        ));
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Reader::new(&largest).varint(), Ok(u64::MAX));
    }
}
