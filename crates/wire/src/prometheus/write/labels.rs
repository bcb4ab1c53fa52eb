//! The raw labels of a series, as bytes that identify it.

use crate::protobuf::{Fields, ProtobufError, Value, varint};
use latewood_model::limits::LABEL_BYTES_MAX;

/// Lengths and bytes of names and values, in the order received.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Labels {
    /// Starts the next series.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.is_too_long = false;
    }

    /// The bytes so far.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether they exceed the limit of a series and are incomplete.
    #[inline]
    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Adds one part of a label.
    #[inline]
    pub(super) fn push(&mut self, part: &[u8]) {
        // A few bytes of a message can refer to a long symbol any number of times.
        if self.bytes.len() + part.len() > LABEL_BYTES_MAX {
            self.is_too_long = true;
            return;
        }
        // The limit is far below 4 GiB.
        self.bytes
            .extend_from_slice(&(part.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(part);
    }

    /// Starts with the labels of a series of version 2, which refer to symbols.
    pub(super) fn refer(&mut self, series: &[u8], symbols: &[&[u8]]) -> Result<(), ProtobufError> {
        self.clear();
        let mut count = 0;
        let mut push = |reference: u64| {
            let place = usize::try_from(reference).ok();
            let symbol = place.and_then(|place| symbols.get(place));
            self.push(symbol.ok_or(ProtobufError::NoSymbol(reference))?);
            count += 1;
            Ok(())
        };
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (1, Value::Varint(reference)) => push(reference)?,
                (1, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        push(varint(&mut packed)?)?;
                    }
                }
                _ => {}
            }
        }
        match count % 2 {
            0 => Ok(()),
            _ => Err(ProtobufError::OddReferences),
        }
    }

    /// Names and values.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut parts = Parts(&self.bytes);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }
}

/// The parts added by [`Labels::push`].
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(part)
    }
}
