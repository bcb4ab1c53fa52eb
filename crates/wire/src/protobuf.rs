//! The fields of a protobuf message, in order, without copying.
//!
//! For messages of thousands of samples, on top of prost's readers of keys and
//! numbers: prost's derived types would allocate a string for every label of every
//! series before the series is looked up. All contents are slices of the body.
//!
//! Tested by the decoders that use it and their fuzz targets.

use prost::encoding::{WireType, decode_key, decode_varint};

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// An invalid key, number or length, or one that points past the message.
    #[error("the message is truncated or not a valid protobuf message of its type")]
    Malformed,
    /// A reference to a symbol that the message does not have.
    #[error("a label refers to symbol {0}, which does not exist")]
    NoSymbol(u64),
    /// A name without its value.
    #[error("odd number of label references")]
    OddReferences,
    /// More symbols than a message may have.
    #[error("the message has too many symbols")]
    TooManySymbols,
    /// The labels of all series together exceed the limit of a message.
    #[error("the labels of all series of the message are too long")]
    TooManyLabels,
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes: a fixed number or the bits of a double.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of `message`.
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field and its number; `None` after the last.
    ///
    /// # Errors
    /// `Malformed`; the rest cannot be read.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, Value<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let malformed = |_| ProtobufError::Malformed;
        let (number, kind) = decode_key(&mut self.rest).map_err(malformed)?;
        let value = match kind {
            WireType::Varint => Value::Varint(varint(&mut self.rest)?),
            WireType::SixtyFourBit => Value::Fixed64(u64::from_le_bytes(*self.take()?)),
            WireType::ThirtyTwoBit => Value::Fixed32(u32::from_le_bytes(*self.take()?)),
            WireType::LengthDelimited => {
                let length = varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| ProtobufError::Malformed)?;
                let split = self.rest.split_at_checked(length);
                let (bytes, rest) = split.ok_or(ProtobufError::Malformed)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            // Groups are deprecated and not sent.
            WireType::StartGroup | WireType::EndGroup => return Err(ProtobufError::Malformed),
        };
        Ok(Some((number, value)))
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], ProtobufError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(ProtobufError::Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Takes one number of variable length.
///
/// # Errors
/// `Malformed`.
#[inline]
pub fn varint(rest: &mut &[u8]) -> Result<u64, ProtobufError> {
    decode_varint(rest).map_err(|_| ProtobufError::Malformed)
}
