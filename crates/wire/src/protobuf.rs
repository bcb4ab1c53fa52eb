//! The fields of a protobuf message, one after the other, where they lie.
//!
//! Messages with a sample in each of thousands of parts are read through this,
//! on top of prost's own readers of keys and numbers: prost's derived types
//! would make a string of every label of every series before anything is known
//! about it. What a message holds is bytes of the body; nothing is copied.
//!
//! Tested by the decoders that use it and their fuzz targets.

use prost::encoding::{WireType, decode_key, decode_varint};

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// A key, number or length that is none, or one that leads out of the message.
    #[error("the message is cut short or is no protobuf message of its type")]
    Malformed,
    /// A reference to a symbol that the message does not have.
    #[error("a label refers to symbol {0}, which is not there")]
    NoSymbol(u64),
    /// A name without its value.
    #[error("labels come in pairs of references, and one is alone")]
    OddReferences,
    /// More symbols than a message may have.
    #[error("the message has too many symbols")]
    TooManySymbols,
    /// The series refer to more bytes of labels than those of a message may have.
    #[error("the labels of all series of the message are too long together")]
    TooManyLabels,
}

/// What stands in a field.
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

    /// The next field and its number; `None` behind the last.
    ///
    /// # Errors
    /// `Malformed`; then nothing more can be read.
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
            // Groups, which nobody sends.
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
