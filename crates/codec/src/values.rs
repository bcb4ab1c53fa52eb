//! The values of a frame: any f64, bit for bit.
//!
//! Each coding has its file; none knows the others. A coding either holds the
//! values exactly or says that it cannot. `Section` reads what any of them
//! wrote. Statistics stand in front of the coded values, except where the
//! coding itself has them at hand (constants and clean decimals).

pub(crate) mod constant;
pub(crate) mod decimal;
pub(crate) mod decimal_delta;
pub(crate) mod decimal_for;
pub(crate) mod dictionary;
pub(crate) mod narrow;
pub(crate) mod ordered;
mod parts;
pub(crate) mod raw;
pub(crate) mod ulp;
pub(crate) mod xor;

use crate::varint::Reader;
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// How the values of a frame are written. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueCoding {
    /// Eight bytes each.
    Raw = 0,
    /// One value, repeated.
    Constant = 1,
    /// Decimal mantissas, offsets from the smallest.
    DecimalFor = 2,
    /// Decimal mantissas, deltas.
    DecimalDelta = 3,
    /// Decimal mantissas and, apart, how many units in the last place the value is off.
    Ulp = 4,
    /// Few distinct values.
    Dictionary = 5,
    /// XOR with the value before, as in the Gorilla paper. The reference.
    Xor = 6,
    /// The bits as an ordered integer, less common trailing zeros.
    Ordered = 7,
    /// f32 values printed as short as possible.
    Narrow = 8,
}

impl ValueCoding {
    /// Every coding, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Raw,
        Self::Constant,
        Self::DecimalFor,
        Self::DecimalDelta,
        Self::Ulp,
        Self::Dictionary,
        Self::Xor,
        Self::Ordered,
        Self::Narrow,
    ];

    pub(crate) fn from_id(id: u8) -> Result<Self, Error> {
        Self::ALL
            .get(usize::from(id))
            .copied()
            .ok_or(Error::Corrupt("unknown value coding"))
    }
}

/// What a coding notes beside its number, in the high bits of the same byte.
pub(crate) mod flag {
    /// Decimals: mantissas were divided by a common divisor.
    pub(crate) const DIVISOR: u8 = 0x10;
    /// Decimals: some values are stored raw; the general statistics are present.
    pub(crate) const EXCEPTIONS: u8 = 0x20;
    /// The general statistics carry a NaN count.
    pub(crate) const HAS_NAN: u8 = 0x40;
    /// Decimal deltas: zigzag instead of offsets from the smallest delta.
    pub(crate) const ZIGZAG: u8 = 0x80;
}

/// Buffers that encoding reuses from frame to frame.
pub(crate) struct Scratch {
    pub(crate) floats: Box<[f64; FRAME_SAMPLES_MAX]>,
    pub(crate) words: Box<[u64; FRAME_SAMPLES_MAX]>,
    pub(crate) deltas: Box<[u64; FRAME_SAMPLES_MAX]>,
    pub(crate) ints: Box<[i64; FRAME_SAMPLES_MAX]>,
    /// Indices of values that the coding at hand cannot hold.
    pub(crate) exceptions: Vec<u16>,
    /// For trying one layout against another.
    pub(crate) attempt: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            floats: Box::new([0.0; FRAME_SAMPLES_MAX]),
            words: Box::new([0; FRAME_SAMPLES_MAX]),
            deltas: Box::new([0; FRAME_SAMPLES_MAX]),
            ints: Box::new([0; FRAME_SAMPLES_MAX]),
            exceptions: Vec::new(),
            attempt: Vec::new(),
        }
    }
}

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
            _ => Ok(decimal::Head::parse(&mut reader, self.flags)?.stats(self.count)),
        }
    }

    /// The cursor behind the statistics, where the coding's own bytes begin.
    fn coded(&self) -> Result<Reader<'a>, Error> {
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
            ValueCoding::DecimalFor => decimal_for::decode(&mut reader, self.flags, out),
            ValueCoding::DecimalDelta => decimal_delta::decode(&mut reader, self.flags, out),
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
                decimal_for::at(&mut self.coded()?, self.flags, self.count, index)
            }
            _ => {
                let mut values = [0.0; FRAME_SAMPLES_MAX];
                self.decode(&mut values[..self.count])?;
                Ok(values[index])
            }
        }
    }
}

/// Test data shared by the codings and their twins.
#[cfg(test)]
pub(crate) mod samples {
    use proptest::prelude::*;

    /// Values that break careless codecs.
    pub(crate) const EDGES: [f64; 16] = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        f64::MAX,
        f64::MIN,
        f64::EPSILON,
        0.1 + 0.2,
        46.833999999999996,
        4503599627370495.5,
        -9007199254740993.0,
        1e22,
    ];

    /// 1 to 512 values of many shapes.
    pub(crate) fn any_values() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![decimals(), noise(), mixed(), steps()]
    }

    /// Clean decimals, walking or scattered.
    pub(crate) fn decimals() -> impl Strategy<Value = Vec<f64>> {
        let count = 1..=512usize;
        (
            0i32..8,
            any::<bool>(),
            1i64..1_000_000,
            prop::collection::vec(any::<i32>(), count),
        )
            .prop_map(|(exponent, walks, range, noise)| {
                let mut level = 0i64;
                let scale = 10f64.powi(exponent);
                let next = |n: &i32| {
                    let offset = i64::from(*n) % range;
                    level = if walks { level + offset } else { offset };
                    level as f64 / scale
                };
                noise.iter().map(next).collect()
            })
    }

    /// Any bit pattern: NaN payloads, denormals, everything.
    pub(crate) fn noise() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..=512)
    }

    /// Decimals with edge cases and arithmetic noise strewn in.
    pub(crate) fn mixed() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            30 => (-10_000i32..10_000).prop_map(|m| f64::from(m) / 100.0),
            10 => (-10_000i32..10_000).prop_map(|m| f64::from(m) * 0.1 + 0.003),
            1 => prop::sample::select(EDGES.to_vec()),
            1 => any::<u64>().prop_map(|bits| f64::from_bits(bits | 0x7ff8 << 48)),
        ];
        prop::collection::vec(value, 1..=512)
    }

    /// Few distinct values.
    pub(crate) fn steps() -> impl Strategy<Value = Vec<f64>> {
        (
            prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..20),
            prop::collection::vec(any::<prop::sample::Index>(), 1..=512),
        )
            .prop_map(|(levels, picks)| {
                picks
                    .iter()
                    .map(|pick| levels[pick.index(levels.len())])
                    .collect()
            })
    }

    /// Equality by bits, which tells -0.0 from 0.0 and one NaN from another.
    pub(crate) fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }
}
