//! The head before the packed mantissas, and decoding them to values.
//!
//! Head: exponent byte; zigzag smallest mantissa; without exceptions: varint
//! range, varint sum of offsets (these are the frame's statistics); with a
//! divisor: varint divisor; with exceptions: varint count, then for each a
//! varint distance to the one before, then their raw bits.

use crate::powers::{Divider, EXPONENT_MAX};
use crate::simd::{self, Kernel};
use crate::values::flag;
use crate::varint::Reader;
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// Adding 2^52 to an integer below it leaves the integer in the low bits.
pub(super) const TWO_52: f64 = (1u64 << 52) as f64;
pub(super) const LOW_52: u64 = (1 << 52) - 1;

/// The parsed head of a decimal section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(super) divider: Divider,
    pub(super) min: f64,
    range: u64,
    sum: u64,
    pub(super) divisor: f64,
    exceptions: usize,
    positions: Reader<'a>,
    raw: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn parse(reader: &mut Reader<'a>, flags: u8) -> Result<Self, Error> {
        let exponent = reader.u8()?;
        if exponent > EXPONENT_MAX {
            return Err(Error::Corrupt("a decimal exponent exceeds 22"));
        }
        let min = reader.zigzag()? as f64;
        let has_exceptions = flags & flag::EXCEPTIONS != 0;
        let (range, sum) = if has_exceptions {
            (0, 0)
        } else {
            (reader.varint()?, reader.varint()?)
        };
        let divisor = if flags & flag::DIVISOR != 0 {
            reader.varint()? as f64
        } else {
            1.0
        };
        let exceptions = if has_exceptions { reader.varint()? } else { 0 };
        if exceptions > FRAME_SAMPLES_MAX as u64 {
            return Err(Error::Corrupt("more exceptions than samples"));
        }
        let exceptions = exceptions as usize;
        let positions = *reader;
        for _ in 0..exceptions {
            reader.varint()?;
        }
        let raw = reader.take(exceptions * 8)?;
        Ok(Self {
            divider: Divider::new(exponent),
            min,
            range,
            sum,
            divisor,
            exceptions,
            positions,
            raw,
        })
    }

    /// Statistics of a section without exceptions.
    pub(crate) fn stats(&self, count: usize) -> Stats {
        let sum = (self.min as i64)
            .wrapping_mul(count as i64)
            .wrapping_add_unsigned(self.sum);
        Stats {
            min: self.min / self.divider.scale,
            max: (self.min + self.range as f64) / self.divider.scale,
            sum: sum as f64 / self.divider.scale,
            nan_count: 0,
        }
    }

    /// Statistics of `count` values whose offsets add up to `sum` and reach
    /// from `extent.0` to `extent.1`.
    #[inline(always)]
    pub(crate) fn part<const FMA: bool>(
        &self,
        count: usize,
        sum: u64,
        extent: (u64, u64),
    ) -> Stats {
        let place = |offset: u64| float_of(offset) * self.divisor + self.min;
        let sum = (self.min as i64)
            .wrapping_mul(count as i64)
            .wrapping_add_unsigned(sum.wrapping_mul(self.divisor as u64));
        Stats {
            min: self.divider.divide::<FMA>(place(extent.0)),
            max: self.divider.divide::<FMA>(place(extent.1)),
            sum: self.divider.divide::<FMA>(sum as f64),
            nan_count: 0,
        }
    }

    #[inline]
    pub(crate) fn value(&self, offset: u64) -> f64 {
        (float_of(offset) * self.divisor + self.min) / self.divider.scale
    }

    /// The values of many offsets.
    pub(crate) fn values(&self, offsets: &[u64], out: &mut [f64]) {
        simd::run(Values {
            divider: self.divider,
            min: self.min,
            divisor: self.divisor,
            offsets,
            out,
        });
    }

    /// Writes the exceptions to their positions.
    pub(crate) fn patch(&self, out: &mut [f64]) -> Result<(), Error> {
        let mut positions = self.positions;
        let mut at = 0usize;
        for word in self.raw.as_chunks::<8>().0.iter().take(self.exceptions) {
            at = at.saturating_add(usize::try_from(positions.varint()?).unwrap_or(usize::MAX));
            let slot = out
                .get_mut(at)
                .ok_or(Error::Corrupt("an exception lies outside its frame"))?;
            *slot = f64::from_bits(u64::from_le_bytes(*word));
        }
        Ok(())
    }
}

struct Values<'a> {
    divider: Divider,
    min: f64,
    divisor: f64,
    offsets: &'a [u64],
    out: &'a mut [f64],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let pairs = self.out.iter_mut().zip(self.offsets);
        if !FMA && self.divider.scale == 1.0 {
            // Integers: a division by one would cost more than the rest.
            for (slot, offset) in pairs {
                *slot = float_of(*offset) * self.divisor + self.min;
            }
            return;
        }
        for (slot, offset) in pairs {
            *slot = (self.divider).divide::<FMA>(float_of(*offset) * self.divisor + self.min);
        }
    }
}

/// An offset below 2^52 as a float, without a conversion instruction.
#[inline(always)]
fn float_of(offset: u64) -> f64 {
    f64::from_bits(offset & LOW_52 | TWO_52.to_bits()) - TWO_52
}
