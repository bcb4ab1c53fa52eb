//! Reading the values of a frame: dispatches to every coding.

use super::decimal::{Head, delta, reference};
use super::{ValueCoding, constant, dictionary, flag, narrow, ordered, raw, ulp, xor};
use crate::varint::Reader;
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// The values of a parsed frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) coding: ValueCoding,
    pub(crate) flags: u8,
    pub(crate) count: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Section<'a> {
    /// True if the general statistics precede the coded values.
    fn has_stats(&self) -> bool {
        match self.coding {
            ValueCoding::Constant => false,
            ValueCoding::DecimalFor | ValueCoding::DecimalDelta => {
                self.flags & flag::EXCEPTIONS != 0
            }
            _ => true,
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats, Error> {
        let mut reader = Reader::new(self.bytes);
        if self.has_stats() {
            return Stats::get(&mut reader, self.flags & flag::HAS_NAN != 0);
        }
        match self.coding {
            ValueCoding::Constant => Ok(Stats::of_constant(
                constant::value(&mut reader)?,
                self.count,
            )),
            _ => Ok(Head::parse(&mut reader, self.flags)?.stats(self.count)),
        }
    }

    /// Whether all values are known to be whole numbers, none of them -0.0.
    pub(crate) fn is_whole(&self) -> Result<bool, Error> {
        let mut reader = self.coded()?;
        match self.coding {
            ValueCoding::Constant => {
                let value = constant::value(&mut reader)?;
                Ok(value.fract() == 0.0 && value.to_bits() != (-0.0_f64).to_bits())
            }
            // What does not divide by 10^0 is an exception, and so is -0.0.
            ValueCoding::DecimalFor | ValueCoding::DecimalDelta if !self.has_stats() => {
                Ok(reader.u8()? == 0)
            }
            _ => Ok(false),
        }
    }

    /// The cursor after the statistics, where the coding's own bytes begin.
    pub(super) fn coded(&self) -> Result<Reader<'a>, Error> {
        let mut reader = Reader::new(self.bytes);
        if self.has_stats() {
            Stats::get(&mut reader, self.flags & flag::HAS_NAN != 0)?;
        }
        Ok(reader)
    }

    /// Fills `out`, whose length is the count.
    pub(crate) fn decode(&self, out: &mut [f64]) -> Result<(), Error> {
        let mut reader = self.coded()?;
        match self.coding {
            ValueCoding::Raw => raw::decode(&mut reader, out),
            ValueCoding::Constant => constant::decode(&mut reader, out),
            ValueCoding::DecimalFor => reference::decode(&mut reader, self.flags, out),
            ValueCoding::DecimalDelta => delta::decode(&mut reader, self.flags, out),
            ValueCoding::Ulp => ulp::decode(&mut reader, out),
            ValueCoding::Dictionary => dictionary::decode(&mut reader, out),
            ValueCoding::Xor => xor::decode(&mut reader, out),
            ValueCoding::Ordered => ordered::decode(&mut reader, out),
            ValueCoding::Narrow => narrow::decode(&mut reader, out),
        }
    }

    /// One value. O(1) for raw, constant and most decimals; otherwise decodes the frame.
    pub(crate) fn at(&self, index: usize) -> Result<f64, Error> {
        if index >= self.count {
            return Err(Error::OutOfRange {
                index,
                count: self.count,
            });
        }
        match self.coding {
            ValueCoding::Raw => raw::at(&mut self.coded()?, index),
            ValueCoding::Constant => constant::value(&mut self.coded()?),
            ValueCoding::DecimalFor if self.flags & flag::EXCEPTIONS == 0 => {
                reference::at(&mut self.coded()?, self.flags, self.count, index)
            }
            _ => {
                let mut values = [0.0; FRAME_SAMPLES_MAX];
                self.decode(&mut values[..self.count])?;
                Ok(values[index])
            }
        }
    }
}
