//! Lengths, numbers and strings of the RDB format, from any reader.

use crate::error::{Error, Result};
use crate::lzf;
use crc_fast::{CrcAlgorithm, Digest};
use std::io::{self, ErrorKind, Read};

/// The longest key that is read.
pub(crate) const KEY_BYTES_MAX: usize = 1 << 20;
/// Bytes that are passed over at once.
const SKIP_BYTES: usize = 64 * 1024;

/// A length, or how a string is encoded otherwise.
pub(crate) enum Length {
    Plain(u64),
    Int8,
    Int16,
    Int32,
    Lzf,
}

/// The bytes of a file or payload, counted and summed.
pub(crate) struct Bytes<R> {
    inner: R,
    at: u64,
    sum: Digest,
    /// What is passed over.
    skipped: Vec<u8>,
}

impl<R: Read> Bytes<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            at: 0,
            sum: Digest::new(CrcAlgorithm::Crc64Redis),
            skipped: Vec::new(),
        }
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The checksum of the bytes read so far.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.finalize()
    }

    pub(crate) fn damaged<T>(&self, what: impl Into<String>) -> Result<T> {
        let (what, at) = (what.into(), self.at);
        Err(Error::Damaged { what, at })
    }

    fn ended(&self, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof => Error::Truncated(self.at),
            _ => Error::Io(error),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let read = self.inner.read_exact(&mut bytes);
        read.map_err(|error| self.ended(error))?;
        self.at += N as u64;
        self.sum.update(&bytes);
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// `len` bytes, `bytes_max` at most. Memory grows with what is there, not with what `len` says.
    fn raw(&mut self, len: u64, bytes_max: usize) -> Result<Vec<u8>> {
        if len > bytes_max as u64 {
            return self.damaged(format!("a string has {len} bytes"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.inner).take(len).read_to_end(&mut bytes)?;
        self.at += read as u64;
        if (read as u64) < len {
            return Err(Error::Truncated(self.at));
        }
        self.sum.update(&bytes);
        Ok(bytes)
    }

    /// Passes over `len` bytes.
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            let piece = len.min(SKIP_BYTES as u64) as usize;
            if self.skipped.len() < piece {
                self.skipped.resize(piece, 0);
            }
            let read = self.inner.read_exact(&mut self.skipped[..piece]);
            read.map_err(|error| self.ended(error))?;
            self.sum.update(&self.skipped[..piece]);
            self.at += piece as u64;
            len -= piece as u64;
        }
        Ok(())
    }

    pub(crate) fn length(&mut self) -> Result<Length> {
        let first = self.byte()?;
        let low = u64::from(first & 0x3f);
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(low),
            (1, _) => Length::Plain(low << 8 | u64::from(self.byte()?)),
            (2, 0x80) => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            (2, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            (3, 0xc0) => Length::Int8,
            (3, 0xc1) => Length::Int16,
            (3, 0xc2) => Length::Int32,
            (3, 0xc3) => Length::Lzf,
            _ => return self.damaged(format!("a length begins with byte {first}")),
        })
    }

    /// A length that is a number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        match self.length()? {
            Length::Plain(number) => Ok(number),
            _ => self.damaged("a string is where a number has to be"),
        }
    }

    /// A string of at most `bytes_max` bytes.
    pub(crate) fn string(&mut self, bytes_max: usize) -> Result<Vec<u8>> {
        let text = |number: i32| number.to_string().into_bytes();
        Ok(match self.length()? {
            Length::Plain(len) => self.raw(len, bytes_max)?,
            Length::Int8 => text(i32::from(i8::from_le_bytes(self.array()?))),
            Length::Int16 => text(i32::from(i16::from_le_bytes(self.array()?))),
            Length::Int32 => text(i32::from_le_bytes(self.array()?)),
            Length::Lzf => {
                let (packed_len, len) = (self.number()?, self.number()?);
                let packed = self.raw(packed_len, bytes_max)?;
                let len = usize::try_from(len).ok().filter(|len| *len <= bytes_max);
                let bytes = len.and_then(|len| lzf::unpack(&packed, len));
                match bytes {
                    Some(bytes) => bytes,
                    None => return self.damaged("a compressed string is damaged"),
                }
            }
        })
    }

    pub(crate) fn skip_string(&mut self) -> Result<()> {
        match self.length()? {
            Length::Plain(len) => self.skip(len),
            Length::Int8 => self.skip(1),
            Length::Int16 => self.skip(2),
            Length::Int32 => self.skip(4),
            Length::Lzf => {
                let (packed_len, _) = (self.number()?, self.number()?);
                self.skip(packed_len)
            }
        }
    }
}
