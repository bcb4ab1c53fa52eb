//! Values to offsets: exponent search, mantissas, exceptions, the common divisor.

use super::extent::{CHUNK, Extent, ExtentOf, Lanes};
use super::head::{LOW_52, TWO_52};
use super::{delta, reference};
use crate::Stats;
use crate::powers::{Divider, EXPONENT_MAX, MANTISSA_LIMIT, ROUNDER, mantissa_of, power_of_ten};
use crate::simd::{self, Kernel};
use crate::values::{Scratch, ValueCoding, flag};
use crate::varint::{put_varint, put_zigzag};

/// At most one value in this many may be an exception.
const EXCEPTION_RATIO: usize = 12;

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

/// The rest of a frame of decimals, once `scratch` holds the offsets (from the
/// smallest mantissa, divided by their common divisor, as floats and as words)
/// and the indices of the exceptions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offsets {
    exponent: u8,
    extent: Extent,
    /// Sum of the offsets before they are divided.
    sum: u64,
    divisor: u64,
}

impl Offsets {
    /// Finds mantissas at `exponent` for all but a few values; `None` if there are too many.
    pub(crate) fn find(values: &[f64], exponent: u8, scratch: &mut Scratch) -> Option<Self> {
        let extent = quantize(values, exponent, scratch)?;
        let floats = &mut scratch.floats[..values.len()];
        let words = &mut scratch.words[..values.len()];
        let sum = simd::run(Shift {
            min: extent.min,
            floats,
            words,
        });
        let divisor = common_divisor(floats, words);
        if divisor > 1 {
            simd::run(Shrink {
                divisor: divisor as f64,
                floats,
                words,
            });
        }
        Some(Self {
            exponent,
            extent,
            sum,
            divisor,
        })
    }

    /// Appends head and offsets under one of the two decimal codings; returns
    /// the flags to note in the frame.
    pub(crate) fn put(
        self,
        coding: ValueCoding,
        values: &[f64],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> u8 {
        let flags = self.put_head(values, &scratch.exceptions, out);
        let words = &scratch.words[..values.len()];
        if coding == ValueCoding::DecimalFor {
            reference::encode(words, out);
            return flags;
        }
        let floats = &scratch.floats[..values.len()];
        flags | delta::encode(floats, words, scratch.deltas.as_mut_slice(), out)
    }

    fn put_head(self, values: &[f64], exceptions: &[u16], out: &mut Vec<u8>) -> u8 {
        let mut flags = 0;
        if !exceptions.is_empty() {
            flags |= flag::EXCEPTIONS;
            if Stats::of(values).put(out) {
                flags |= flag::HAS_NAN;
            }
        }
        out.push(self.exponent);
        put_zigzag(self.extent.min as i64, out);
        if exceptions.is_empty() {
            put_varint((self.extent.max - self.extent.min) as u64, out);
            put_varint(self.sum, out);
        }
        if self.divisor > 1 {
            flags |= flag::DIVISOR;
            put_varint(self.divisor, out);
        }
        if !exceptions.is_empty() {
            put_exceptions(values, exceptions, out);
        }
        flags
    }
}

/// Writes mantissas to `scratch.floats` and notes the exceptions; `None` if there are too many.
///
/// An exception's mantissa repeats its neighbour's, so that it costs no bits.
fn quantize(values: &[f64], exponent: u8, scratch: &mut Scratch) -> Option<Extent> {
    scratch.exceptions.clear();
    let floats = &mut scratch.floats[..values.len()];
    let (extent, inexact) = simd::run(Quantize {
        values,
        divider: Divider::new(exponent),
        slots: floats,
    });
    if inexact == 0 {
        return Some(extent);
    }
    let scale = power_of_ten(exponent);
    for (index, (chunk, slots)) in values
        .chunks(CHUNK)
        .zip(floats.chunks_mut(CHUNK))
        .enumerate()
    {
        if inexact >> index & 1 == 1 {
            let start = (index * CHUNK) as u16;
            note_exceptions(chunk, scale, slots, start, &mut scratch.exceptions);
            if scratch.exceptions.len() > values.len().div_ceil(EXCEPTION_RATIO) {
                return None;
            }
        }
    }
    if scratch.exceptions.len() == values.len() {
        return None;
    }
    if scratch.exceptions.first() == Some(&0) {
        let held = (0..values.len())
            .find(|index| !scratch.exceptions.contains(&(*index as u16)))
            .unwrap_or(0);
        floats[0] = floats[held];
    }
    for &index in scratch.exceptions.iter().filter(|index| **index > 0) {
        floats[usize::from(index)] = floats[usize::from(index) - 1];
    }
    Some(simd::run(ExtentOf(floats)))
}

/// Mantissas, their extent, and a bit for every chunk with a value that is not held exactly.
struct Quantize<'a> {
    values: &'a [f64],
    divider: Divider,
    slots: &'a mut [f64],
}

impl Kernel for Quantize<'_> {
    type Output = (Extent, u32);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (Extent, u32) {
        let (mut lanes, mut inexact) = (Lanes::new(), 0);
        let chunks = self.values.chunks(CHUNK);
        for (index, (chunk, slots)) in chunks.zip(self.slots.chunks_mut(CHUNK)).enumerate() {
            let mut wrong = 0u64;
            for (value, slot) in chunk.iter().zip(&mut *slots) {
                let mantissa = (value * self.divider.scale + ROUNDER) - ROUNDER;
                wrong |= self.divider.divide::<FMA>(mantissa).to_bits() ^ value.to_bits();
                // Sets bit 63 unless |mantissa| < 2^51; NaN and infinity compare above every limit.
                wrong |=
                    (MANTISSA_LIMIT.to_bits() - 1).wrapping_sub(mantissa.abs().to_bits()) & 1 << 63;
                *slot = mantissa;
            }
            lanes.include(slots);
            inexact |= u32::from(wrong != 0) << index;
        }
        (lanes.extent(), inexact)
    }
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

/// Mantissas become offsets from `min`; returns the sum of these.
struct Shift<'a> {
    min: f64,
    floats: &'a mut [f64],
    words: &'a mut [u64],
}

impl Kernel for Shift<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> u64 {
        let mut sum = 0u64;
        for (word, float) in self.words.iter_mut().zip(self.floats) {
            *float -= self.min;
            *word = word_of(*float);
            sum = sum.wrapping_add(*word);
        }
        sum
    }
}

/// Divides the offsets by their common divisor.
struct Shrink<'a> {
    divisor: f64,
    floats: &'a mut [f64],
    words: &'a mut [u64],
}

impl Kernel for Shrink<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (word, float) in self.words.iter_mut().zip(self.floats) {
            *float /= self.divisor;
            *word = word_of(*float);
        }
    }
}

/// A whole number in 0..2^52 as an integer, without a conversion instruction.
#[inline(always)]
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

/// Greatest common divisor of the offsets, which both slices hold; at least 1.
///
/// The divisor of the first few is usually that of all; it is checked against
/// all, in floats because that vectorises: a quotient below 2^52 is whole exactly
/// if the division is.
fn common_divisor(floats: &[f64], words: &[u64]) -> u64 {
    const FEW: usize = 16;
    let guess = gcd_of(0, words.iter().take(FEW));
    if guess == 1
        || guess > 1
            && simd::run(AllDivisible {
                by: guess as f64,
                floats,
            })
    {
        return guess;
    }
    gcd_of(guess, words.iter()).max(1)
}

struct AllDivisible<'a> {
    by: f64,
    floats: &'a [f64],
}

impl Kernel for AllDivisible<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> bool {
        let mut fractions = 0;
        for float in self.floats {
            let quotient = float / self.by;
            fractions |= ((quotient + TWO_52) - TWO_52).to_bits() ^ quotient.to_bits();
        }
        fractions == 0
    }
}

/// Greatest common divisor of `start` and all words; stops early at 1.
fn gcd_of<'a>(start: u64, words: impl Iterator<Item = &'a u64>) -> u64 {
    let mut divisor = start;
    for &word in words {
        divisor = gcd(divisor, word);
        if divisor == 1 {
            break;
        }
    }
    divisor
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::powers::tests::NO_MANTISSA;

    #[test]
    fn what_has_no_mantissa_is_an_exception() {
        for odd in NO_MANTISSA {
            assert!(
                quantize(&[odd], 0, &mut Scratch::default()).is_none(),
                "{odd}"
            );
        }
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
