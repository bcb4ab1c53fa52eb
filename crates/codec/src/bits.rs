//! A stream of bits, lowest first, for the two reference codings.
//!
//! Gorilla's codings mix fields of 1 to 64 bits; everything else in this crate
//! is byte-aligned or fixed-width. Reading past the end is
//! [`Error::Truncated`], never a panic.

use crate::Error;
use crate::bitpack::mask;

/// Appends bits to a byte vector.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// Writes the lowest `bits` (0 to 64) of `value`.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        let value = value & mask(bits);
        self.pending |= value << self.pending_bits;
        let free = 64 - self.pending_bits;
        if bits < free {
            self.pending_bits += bits;
            return;
        }
        self.out.extend_from_slice(&self.pending.to_le_bytes());
        self.pending = if free < 64 { value >> free } else { 0 };
        self.pending_bits = bits - free;
    }

    /// Writes out the last, partly filled word.
    pub(crate) fn finish(self) {
        let len = self.pending_bits.div_ceil(8) as usize;
        self.out
            .extend_from_slice(&self.pending.to_le_bytes()[..len]);
    }
}

/// Reads bits from a byte slice.
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    pending: u64,
    pending_bits: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// Reads `bits` (0 to 64).
    #[inline]
    pub(crate) fn get(&mut self, bits: u32) -> Result<u64, Error> {
        if bits <= self.pending_bits {
            let value = self.pending & mask(bits);
            self.pending = if bits < 64 { self.pending >> bits } else { 0 };
            self.pending_bits -= bits;
            return Ok(value);
        }
        let low = self.pending;
        let low_bits = self.pending_bits;
        self.refill()?;
        let need = bits - low_bits;
        if need > self.pending_bits {
            return Err(Error::Truncated);
        }
        let value = low | (self.pending & mask(need)) << low_bits;
        self.pending = if need < 64 { self.pending >> need } else { 0 };
        self.pending_bits -= need;
        Ok(value)
    }

    #[inline]
    pub(crate) fn bit(&mut self) -> Result<bool, Error> {
        Ok(self.get(1)? == 1)
    }

    fn refill(&mut self) -> Result<(), Error> {
        if let Some((word, rest)) = self.bytes.split_first_chunk::<8>() {
            self.pending = u64::from_le_bytes(*word);
            self.pending_bits = 64;
            self.bytes = rest;
            return Ok(());
        }
        if self.bytes.is_empty() {
            return Err(Error::Truncated);
        }
        let mut word = [0u8; 8];
        word[..self.bytes.len()].copy_from_slice(self.bytes);
        self.pending = u64::from_le_bytes(word);
        self.pending_bits = 8 * self.bytes.len() as u32;
        self.bytes = &[];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_come_back(fields in prop::collection::vec((any::<u64>(), 0u32..=64), 0..100)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            fields.iter().for_each(|(value, bits)| writer.put(*value, *bits));
            writer.finish();
            let total: usize = fields.iter().map(|(_, bits)| *bits as usize).sum();
            prop_assert_eq!(bytes.len(), total.div_ceil(8));
            let mut reader = BitReader::new(&bytes);
            for (value, bits) in &fields {
                prop_assert_eq!(reader.get(*bits), Ok(value & mask(*bits)));
            }
            prop_assert_eq!(reader.get(64), Err(Error::Truncated));
        }
    }
}
