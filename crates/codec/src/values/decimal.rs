//! What the two decimal codings share: mantissas, exponent search, the head.
//!
//! Most measurements are decimals that were parsed into f64: `m / 10^d` with a
//! true division gives the very bits back, which is checked for every value.
//! One `d` serves the whole frame. The few values that do not fit (NaN
//! markers, -0.0, outliers) are exceptions, stored raw beside the mantissas.
//! The idea of one exponent per block is that of ALP (Afroozeh, Kuffo, Boncz,
//! SIGMOD 2023); a division in place of its multiplication halves the
//! exceptions on real data.
//!
//! Mantissas stay below 2^51, so that they are exact in f64 and rounding is an
//! addition; all loops below vectorise without special instructions.
//!
//! Head: exponent byte; zigzag smallest mantissa; without exceptions: varint
//! range, varint sum of offsets (these are the frame's statistics); with a
//! divisor: varint divisor; with exceptions: varint count, then for each a
//! varint distance to the one before, then their raw bits.

use super::{Scratch, flag};
use crate::varint::{Reader, put_varint, put_zigzag};
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// Powers of ten that f64 holds exactly.
pub(crate) const EXPONENT_MAX: u8 = 22;
const POWERS: [f64; EXPONENT_MAX as usize + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Adding and subtracting 1.5 * 2^52 rounds anything below 2^51 to an integer.
const ROUNDER: f64 = 6755399441055744.0;
const MANTISSA_LIMIT: f64 = (1u64 << 51) as f64;
/// Adding 2^52 to an integer below it leaves the integer in the low bits.
const TWO_52: f64 = (1u64 << 52) as f64;
const LOW_52: u64 = (1 << 52) - 1;
const LANES: usize = 4;
/// At most one value in this many may be an exception.
const EXCEPTION_RATIO: usize = 12;

/// `10^exponent`; the caller has checked that it is at most [`EXPONENT_MAX`].
#[inline]
pub(crate) fn power_of_ten(exponent: u8) -> f64 {
    POWERS[usize::from(exponent)]
}

/// The integer `m` with `m / scale == value` to the bit, if there is one below 2^51.
#[inline]
pub(crate) fn mantissa_of(value: f64, scale: f64) -> Option<i64> {
    let mantissa = (value * scale + ROUNDER) - ROUNDER;
    let exact = (mantissa / scale).to_bits() == value.to_bits() && mantissa.abs() < MANTISSA_LIMIT;
    exact.then_some(mantissa as i64)
}

/// The exponent that most of a small sample of the values need.
pub(crate) fn guess_exponent(values: &[f64]) -> Option<u8> {
    const PROBES: usize = 12;
    let stride = values.len().div_ceil(PROBES);
    let (mut exponent, mut probed, mut failed) = (0u8, 0, 0);
    for value in values.iter().step_by(stride) {
        probed += 1;
        match (exponent..=EXPONENT_MAX).find(|e| mantissa_of(*value, power_of_ten(*e)).is_some()) {
            Some(needed) => exponent = needed,
            None => failed += 1,
        }
    }
    (failed * 4 <= probed && failed < probed).then_some(exponent)
}

/// Writes mantissas to `scratch.floats` and notes the exceptions; false if there are too many.
///
/// An exception's mantissa repeats its neighbour's, so that it costs no bits.
pub(crate) fn quantize(values: &[f64], scale: f64, scratch: &mut Scratch) -> bool {
    scratch.exceptions.clear();
    let floats = &mut scratch.floats[..values.len()];
    for (index, (chunk, slots)) in values.chunks(64).zip(floats.chunks_mut(64)).enumerate() {
        if !quantize_chunk(chunk, scale, slots) {
            note_exceptions(
                chunk,
                scale,
                slots,
                (index * 64) as u16,
                &mut scratch.exceptions,
            );
            if scratch.exceptions.len() > values.len().div_ceil(EXCEPTION_RATIO) {
                return false;
            }
        }
    }
    let Some(&first) = scratch.exceptions.first() else {
        return true;
    };
    if scratch.exceptions.len() == values.len() {
        return false;
    }
    if first == 0 {
        let held = (0..values.len())
            .find(|index| !scratch.exceptions.contains(&(*index as u16)))
            .unwrap_or(0);
        floats[0] = floats[held];
    }
    for &index in scratch.exceptions.iter().filter(|index| **index > 0) {
        floats[usize::from(index)] = floats[usize::from(index) - 1];
    }
    true
}

/// True if every value of the chunk is held exactly. No branches: vectorises.
#[inline]
fn quantize_chunk(values: &[f64], scale: f64, slots: &mut [f64]) -> bool {
    let mut wrong = 0u64;
    for (value, slot) in values.iter().zip(slots) {
        let mantissa = (value * scale + ROUNDER) - ROUNDER;
        wrong |= (mantissa / scale).to_bits() ^ value.to_bits();
        // Sets bit 63 unless |mantissa| < 2^51; NaN and infinity compare above every limit.
        wrong |= (MANTISSA_LIMIT.to_bits() - 1).wrapping_sub(mantissa.abs().to_bits()) & 1 << 63;
        *slot = mantissa;
    }
    wrong == 0
}

fn note_exceptions(
    values: &[f64],
    scale: f64,
    slots: &mut [f64],
    start: u16,
    exceptions: &mut Vec<u16>,
) {
    for (index, (value, slot)) in (start..).zip(values.iter().zip(slots)) {
        if mantissa_of(*value, scale).is_none() {
            exceptions.push(index);
            *slot = 0.0;
        }
    }
}

/// Extent of mantissas and of their deltas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Extent {
    /// Of one or more finite numbers.
    pub(crate) fn of(floats: &[f64]) -> Self {
        let mut min = [floats[0]; LANES];
        let mut max = [floats[0]; LANES];
        let (groups, tail) = floats.as_chunks::<LANES>();
        for group in groups {
            for lane in 0..LANES {
                min[lane] = if group[lane] < min[lane] {
                    group[lane]
                } else {
                    min[lane]
                };
                max[lane] = if group[lane] > max[lane] {
                    group[lane]
                } else {
                    max[lane]
                };
            }
        }
        Self {
            min: tail.iter().chain(&min).copied().fold(floats[0], f64::min),
            max: tail.iter().chain(&max).copied().fold(floats[0], f64::max),
        }
    }
}

/// Turns the mantissas in `scratch.floats` into offsets from the smallest, over
/// their common divisor, there and in `scratch.words`; writes the head and
/// returns the flags to note in the frame.
pub(crate) fn put_head(
    values: &[f64],
    exponent: u8,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> u8 {
    let floats = &mut scratch.floats[..values.len()];
    let extent = Extent::of(floats);
    let words = &mut scratch.words[..values.len()];
    let mut sum = 0u64;
    for (word, float) in words.iter_mut().zip(floats.iter_mut()) {
        *float -= extent.min;
        *word = word_of(*float);
        sum = sum.wrapping_add(*word);
    }
    let mut flags = 0;
    if !scratch.exceptions.is_empty() {
        flags |= flag::EXCEPTIONS;
        if Stats::of(values).put(out) {
            flags |= flag::HAS_NAN;
        }
    }
    out.push(exponent);
    put_zigzag(extent.min as i64, out);
    if scratch.exceptions.is_empty() {
        put_varint((extent.max - extent.min) as u64, out);
        put_varint(sum, out);
    }
    let divisor = common_divisor(floats, words);
    if divisor > 1 {
        flags |= flag::DIVISOR;
        put_varint(divisor, out);
        for (word, float) in words.iter_mut().zip(floats) {
            *float /= divisor as f64;
            *word = word_of(*float);
        }
    }
    if !scratch.exceptions.is_empty() {
        put_exceptions(values, &scratch.exceptions, out);
    }
    flags
}

/// A whole number in 0..2^52 as an integer, without a conversion instruction.
#[inline]
fn word_of(float: f64) -> u64 {
    (float + TWO_52).to_bits() & LOW_52
}

fn put_exceptions(values: &[f64], exceptions: &[u16], out: &mut Vec<u8>) {
    put_varint(exceptions.len() as u64, out);
    let mut previous = 0;
    for &index in exceptions {
        put_varint(u64::from(index - previous), out);
        previous = index;
    }
    for &index in exceptions {
        out.extend_from_slice(&values[usize::from(index)].to_bits().to_le_bytes());
    }
}

/// The parsed head of a decimal section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    scale: f64,
    min: f64,
    range: u64,
    sum: u64,
    divisor: f64,
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
            scale: power_of_ten(exponent),
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
            min: self.min / self.scale,
            max: (self.min + self.range as f64) / self.scale,
            sum: sum as f64 / self.scale,
            nan_count: 0,
        }
    }

    /// The value of one offset.
    #[inline]
    pub(crate) fn value(&self, offset: u64) -> f64 {
        let offset = f64::from_bits(offset & LOW_52 | TWO_52.to_bits()) - TWO_52;
        (offset * self.divisor + self.min) / self.scale
    }

    /// The values of many offsets. Vectorises.
    pub(crate) fn values(&self, offsets: &[u64], out: &mut [f64]) {
        if self.scale == 1.0 {
            // Integers: dividing by one is the most expensive way to copy.
            let whole = Self {
                scale: 1.0,
                ..*self
            };
            for (slot, offset) in out.iter_mut().zip(offsets) {
                let offset = f64::from_bits(offset & LOW_52 | TWO_52.to_bits()) - TWO_52;
                *slot = offset * whole.divisor + whole.min;
            }
            return;
        }
        for (slot, offset) in out.iter_mut().zip(offsets) {
            *slot = self.value(*offset);
        }
    }

    /// Puts the exceptions in their places.
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

/// Greatest common divisor of the offsets, which both slices hold; at least 1.
///
/// The first few settle it for most data; what they have in common is then
/// checked against all, in floats because that vectorises: a quotient below
/// 2^52 is whole exactly if the division is.
fn common_divisor(floats: &[f64], words: &[u64]) -> u64 {
    const FEW: usize = 16;
    let guess = words
        .iter()
        .take(FEW)
        .fold(0, |divisor, word| gcd(divisor, *word));
    if guess == 1 {
        return 1;
    }
    let scale = guess.max(1) as f64;
    let mut fractions = 0;
    for float in floats {
        let quotient = float / scale;
        fractions |= ((quotient + TWO_52) - TWO_52).to_bits() ^ quotient.to_bits();
    }
    if guess > 1 && fractions == 0 {
        return guess;
    }
    words
        .iter()
        .fold(
            guess,
            |divisor, word| if divisor == 1 { 1 } else { gcd(divisor, *word) },
        )
        .max(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The twin of both decimal codings: plain division, one offset after the other.
#[cfg(test)]
pub(crate) mod naive {
    use super::*;

    pub(crate) fn values(head: &Head<'_>, offsets: impl Iterator<Item = u64>) -> Vec<f64> {
        let mut values: Vec<f64> = offsets
            .map(|offset| {
                (head.min as i128 + offset as i128 * head.divisor as i128) as f64 / head.scale
            })
            .collect();
        head.patch(&mut values).unwrap();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mantissas_are_exact_or_refused() {
        assert_eq!(mantissa_of(46.83, 100.0), Some(4683));
        assert_eq!(mantissa_of(-0.5, 10.0), Some(-5));
        assert_eq!(mantissa_of(46.833999999999996, 1000.0), None);
        for odd in [
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            MANTISSA_LIMIT,
            f64::MAX,
        ] {
            assert_eq!(mantissa_of(odd, 1.0), None, "{odd}");
            let mut slot = [0.0];
            assert!(!quantize_chunk(&[odd], 1.0, &mut slot), "{odd}");
        }
        assert_eq!(mantissa_of(MANTISSA_LIMIT - 1.0, 1.0), Some((1 << 51) - 1));
    }

    #[test]
    fn exponents_are_guessed_from_a_sample() {
        assert_eq!(guess_exponent(&[1.0, 2.5, 3.25]), Some(2));
        assert_eq!(guess_exponent(&[1e-9]), Some(9));
        assert_eq!(guess_exponent(&[f64::NAN; 5]), None);
    }

    #[test]
    fn divisors_are_found() {
        let of = |words: &[u64]| {
            let floats: Vec<f64> = words.iter().map(|word| *word as f64).collect();
            common_divisor(&floats, words)
        };
        assert_eq!(of(&[0, 12, 18, 0]), 6);
        assert_eq!(of(&[0, 0]), 1);
        assert_eq!(of(&[4, 9, 16]), 1);
        // What the first few have in common does not hold for all.
        let mut words = vec![600; 100];
        assert_eq!(of(&words), 600);
        words[99] = 90;
        assert_eq!(of(&words), 30);
        words[..20].fill(0);
        assert_eq!(of(&words), 30);
        assert_eq!(of(&[(1 << 51) + 3, 3 << 40]), 1);
    }
}
