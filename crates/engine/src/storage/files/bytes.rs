//! Encoding of fields, for the manifest and the rows of series files.
//!
//! Integers are those of the log ([`crate::format::varint`]). Decoding returns
//! `None` if the bytes end early or are not a valid encoding, and never allocates
//! more memory than the bytes account for.

use crate::format::value::{FORM_RAW, put_value, take_value};
use crate::format::varint::{VARINT_BYTES_MAX, put, take, unzigzag, zigzag};
use latewood_model::Timestamp;

/// Fields that are being written.
#[derive(Debug, Default)]
pub(crate) struct Put(pub(crate) Vec<u8>);

impl Put {
    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// An integer of 1 to 9 bytes.
    pub(crate) fn number(&mut self, value: u64) {
        let at = self.0.len();
        self.0.resize(at + VARINT_BYTES_MAX, 0);
        let end = put(&mut self.0, at, value);
        self.0.truncate(end);
    }

    /// A signed integer, short where it is near 0.
    pub(crate) fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    /// The difference from `from` to `to`; wraps.
    pub(crate) fn step(&mut self, from: Timestamp, to: Timestamp) {
        self.signed(to.wrapping_sub(from));
    }

    /// Four bytes.
    pub(crate) fn word(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// A form and the value in it, bit for bit: see [`crate::format::value`].
    pub(crate) fn value(&mut self, value: f64) {
        let at = self.0.len();
        self.0.resize(at + 1 + VARINT_BYTES_MAX, 0);
        let (form, end) = put_value(&mut self.0, at + 1, value, FORM_RAW);
        self.0[at] = form;
        self.0.truncate(end);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A length and that many bytes.
    pub(crate) fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }
}

/// Fields that are being read.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        take(&mut self.0)
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub(crate) fn step(&mut self, from: Timestamp) -> Option<Timestamp> {
        self.signed().map(|step| from.wrapping_add(step))
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// Eight bytes.
    pub(crate) fn long(&mut self) -> Option<u64> {
        let (long, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*long))
    }

    pub(crate) fn value(&mut self) -> Option<f64> {
        let form = self.byte().filter(|&form| form <= FORM_RAW)?;
        take_value(&mut self.0, form)
    }

    pub(crate) fn raw(&mut self, len: u64) -> Option<&'a [u8]> {
        let (raw, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(raw)
    }

    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.raw(len)
    }

    /// A count of items that take at least one byte each.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }
}
