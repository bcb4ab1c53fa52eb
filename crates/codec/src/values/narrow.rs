//! f32 values that were printed as short as possible and parsed as f64.
//!
//! 13.370428 is the shortest decimal that names one particular f32. Stored as a
//! decimal it takes 27 bits and its neighbours more; the f32 itself, as a whole
//! number of the finest binary fraction in the frame, takes 24. Reading derives
//! the decimal from the f32 and its unit in the last place. The encoder verifies
//! for every value that this restores the exact bits.
//!
//! The few that fail (printers break ties differently) are exceptions.
//!
//! Layout: byte with the binary places `s`, zigzag smallest `k`, varint number
//! of exceptions, for each two bytes of index and eight of value, offsets of
//! `k` (`pfor`); the f32 is `k / 2^s`. Its decimal has at most
//! `p = (1233 * (23 - e) + 4095) >> 12` places, `e` its binary exponent, and `p - 1`
//! if the nearest such decimal is less than half a unit in the last place off.

use super::Scratch;
use super::decimal::extent::CHUNK;
use crate::pfor::{self, BLOCK};
use crate::powers::{EXPONENT_MAX, MANTISSA_LIMIT, ROUNDER, power_of_ten};
use crate::simd::{self, Kernel};
use crate::varint::{Reader, put_varint, put_zigzag};
use crate::{Error, FRAME_SAMPLES_MAX};

/// The stored form of an exponent of zero, and the mask of an exponent.
const BIAS: i64 = 1023;
const EXPONENT_BITS: i64 = 0x7ff;
const MANTISSA_BITS: u32 = 52;
const PLACES_MAX: u32 = 127;
/// At most one value in this many, and one more, may be an exception.
const EXCEPTION_RATIO: usize = 24;

/// Appends the values; false, with leftovers in `out`, if too many are not printed f32.
pub(crate) fn encode(values: &[f64], scratch: &mut Scratch, out: &mut Vec<u8>) -> bool {
    let exceptions = &mut scratch.exceptions;
    exceptions.clear();
    let narrowed = &mut scratch.floats[..values.len()];
    let (mut places, mut previous) = (0, 0.0);
    for (index, (chunk, slots)) in (0..).zip(values.chunks(CHUNK).zip(narrowed.chunks_mut(CHUNK))) {
        let found = simd::run(Narrowing {
            values: chunk,
            slots,
        });
        places = places.max(found.places);
        if found.is_whole {
            previous = slots[slots.len() - 1];
        } else if !note_exceptions(slots, index * CHUNK, &mut previous, exceptions) {
            return false;
        }
    }
    if places > PLACES_MAX {
        return false;
    }
    let ints = &mut scratch.ints[..values.len()];
    let Some(min) = simd::run(Scaling {
        narrowed,
        scale: power_of_two(places),
        ints,
    }) else {
        return false;
    };
    out.push(places as u8);
    put_zigzag(min, out);
    put_varint(exceptions.len() as u64, out);
    for &index in exceptions.iter() {
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(&values[usize::from(index)].to_bits().to_le_bytes());
    }
    let words = &mut scratch.words[..values.len()];
    words
        .iter_mut()
        .zip(ints)
        .for_each(|(word, int)| *word = int.wrapping_sub(min) as u64);
    pfor::encode(words, out);
    true
}

/// Narrows values; any that is not a printed f32 becomes NaN.
struct Narrowing<'a> {
    values: &'a [f64],
    slots: &'a mut [f64],
}

/// Result of [`Narrowing`].
struct Narrowed {
    /// Binary places that the values need.
    places: u32,
    /// All of them are printed f32.
    is_whole: bool,
}

impl Kernel for Narrowing<'_> {
    type Output = Narrowed;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Narrowed {
        let (mut places, mut wrong) = (0, 0);
        for (value, slot) in self.values.iter().zip(self.slots) {
            let narrow = f64::from(*value as f32);
            // A value that is not finite may come back as a NaN of other bits.
            let off = widen(narrow).to_bits() ^ value.to_bits() | u64::from(!narrow.is_finite());
            let is_held = off == 0;
            places = places.max(if is_held { binary_places(narrow) } else { 0 });
            wrong |= off;
            *slot = if is_held { narrow } else { f64::NAN };
        }
        Narrowed {
            places: places as u32,
            is_whole: wrong == 0,
        }
    }
}

/// Puts the value before in the place of each NaN, and notes where; false once
/// there are too many. The first slot is value `start` of the frame.
fn note_exceptions(
    slots: &mut [f64],
    start: usize,
    previous: &mut f64,
    exceptions: &mut Vec<u16>,
) -> bool {
    for (index, slot) in (start..).zip(slots) {
        if !slot.is_nan() {
            *previous = *slot;
        } else if exceptions.len() * EXCEPTION_RATIO <= index {
            exceptions.push(index as u16);
            *slot = *previous;
        } else {
            return false;
        }
    }
    true
}

/// Makes whole numbers of narrowed values; the smallest, unless one is too large.
struct Scaling<'a> {
    narrowed: &'a [f64],
    scale: f64,
    ints: &'a mut [i64],
}

impl Kernel for Scaling<'_> {
    type Output = Option<i64>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<i64> {
        let (mut min, mut too_large) = (i64::MAX, false);
        for (narrow, int) in self.narrowed.iter().zip(self.ints) {
            let scaled = narrow * self.scale;
            too_large |= scaled.abs() >= MANTISSA_LIMIT;
            *int = (scaled + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i64;
            min = min.min(*int);
        }
        (!too_large).then_some(min)
    }
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let places = u32::from(reader.u8()?);
    if places > PLACES_MAX {
        return Err(Error::Corrupt("more than 127 binary places"));
    }
    let min = reader.zigzag()?;
    let exceptions = reader.varint()?;
    if exceptions > FRAME_SAMPLES_MAX as u64 {
        return Err(Error::Corrupt("more exceptions than samples"));
    }
    let mut exceptions = Reader::new(reader.take(exceptions as usize * 10)?);
    let mut offsets = [0u64; BLOCK];
    for slots in out.chunks_mut(BLOCK) {
        let offsets = &mut offsets[..slots.len()];
        pfor::decode_block(reader, offsets)?;
        simd::run(Widening {
            offsets,
            min,
            unit: 1.0 / power_of_two(places),
            slots,
        });
    }
    while !exceptions.rest().is_empty() {
        let index = usize::from(exceptions.u8()?) | usize::from(exceptions.u8()?) << 8;
        let slot = out
            .get_mut(index)
            .ok_or(Error::Corrupt("an exception lies outside its frame"))?;
        *slot = f64::from_bits(exceptions.u64()?);
    }
    Ok(())
}

/// Makes values of the offsets of whole numbers from the smallest.
struct Widening<'a> {
    offsets: &'a [u64],
    min: i64,
    /// Unit of the numbers, a power of two.
    unit: f64,
    slots: &'a mut [f64],
}

impl Kernel for Widening<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (slot, offset) in self.slots.iter_mut().zip(self.offsets) {
            *slot = widen(self.min.wrapping_add_unsigned(*offset) as f64 * self.unit);
        }
    }
}

/// The shortest decimal that rounds to `narrow`, an f32 held in f64.
///
/// With `p - 1` places the products are exact, so whether the rounded one still
/// names the f32 (lies within half a unit in its last place) needs no division.
#[inline(always)]
fn widen(narrow: f64) -> f64 {
    let exponent = (narrow.to_bits() >> MANTISSA_BITS) as i64 & EXPONENT_BITS;
    let places = (1233 * (23 + BIAS - exponent) + 4095) >> 12;
    let places = places.clamp(0, i64::from(EXPONENT_MAX)) as u8;
    let (fewer, all) = (power_of_ten(places.saturating_sub(1)), power_of_ten(places));
    let scaled = narrow * fewer;
    let distance = (scaled - ((scaled + ROUNDER) - ROUNDER)).abs();
    let half_unit = f64::from_bits(((exponent - 24).max(1) as u64) << MANTISSA_BITS);
    let scale = if distance < half_unit * fewer {
        fewer
    } else {
        all
    };
    ((narrow * scale + ROUNDER) - ROUNDER) / scale
}

/// How many binary places a finite number needs after the point.
#[inline(always)]
fn binary_places(value: f64) -> i64 {
    let bits = value.to_bits();
    let exponent = (bits >> MANTISSA_BITS) as i64 & EXPONENT_BITS;
    // The lowest bit alone, as a number, says in its exponent which one it is.
    let one = 1 << MANTISSA_BITS;
    let mantissa = (bits & (one - 1) | one) as i64;
    let lowest = (mantissa & -mantissa) as f64;
    let trailing = (lowest.to_bits() >> MANTISSA_BITS) as i64 - BIAS;
    let places = i64::from(MANTISSA_BITS) - trailing - (exponent - BIAS);
    if value == 0.0 { 0 } else { places.max(0) }
}

#[inline]
fn power_of_two(exponent: u32) -> f64 {
    f64::from_bits(u64::from(1023 + exponent) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::tests::for_each_level;
    use crate::values::samples::{any_values, bits};
    use proptest::prelude::*;

    /// The twin: the standard library prints an f32 as short as possible.
    fn naive_widen(narrow: f32) -> f64 {
        narrow.to_string().parse().unwrap()
    }

    /// The same bytes and values at every level of the processor.
    fn round_trip(values: &[f64]) -> Option<usize> {
        let mut written = for_each_level(|level| {
            let mut bytes = Vec::new();
            encode(values, &mut Scratch::default(), &mut bytes).then(|| {
                let mut back = vec![0.0; values.len()];
                decode(&mut Reader::new(&bytes), &mut back).unwrap();
                assert_eq!(bits(&back), bits(values), "{level:?}");
                bytes
            })
        });
        written.dedup();
        assert_eq!(written.len(), 1, "levels differ");
        written.pop().flatten().map(|bytes| bytes.len())
    }

    proptest! {
        #[test]
        fn printed_f32_agree_with_the_twin(drawn in prop::collection::vec(0u32..1 << 24, 128)) {
            let printed: Vec<f64> = drawn.iter().map(|k| naive_widen(*k as f32 / 524_288.0)).collect();
            let len = round_trip(&printed);
            prop_assert!(len.is_some_and(|len| len <= 128 * 3 + 8 + 3 * 10), "{:?} bytes", len);
        }

        #[test]
        fn f32_of_every_size_are_held_or_refused(
            drawn in prop::collection::vec(any::<f32>(), 1..200),
            shared in any::<f32>(),
        ) {
            // Neighbours of one number fit together, whatever its size.
            let near = |k: u32| f32::from_bits(shared.to_bits() ^ k & 0xff);
            let neighbours: Vec<f32> = drawn.iter().map(|value| near(value.to_bits())).collect();
            for values in [drawn, neighbours] {
                let printed: Vec<f64> = values.iter().map(|value| naive_widen(*value)).collect();
                round_trip(&printed);
            }
        }

        #[test]
        fn exceptions_stand_anywhere(places in prop::collection::btree_set(0usize..300, 0..12)) {
            let mut values: Vec<f64> = (0..300).map(|k| naive_widen(k as f32 / 64.0)).collect();
            places.iter().for_each(|&place| values[place] = 1.0 / 3.0 + place as f64);
            let fits = places.iter().zip(0..).all(|(place, before)| before * EXCEPTION_RATIO <= *place);
            prop_assert_eq!(round_trip(&values).is_some(), fits);
        }

        #[test]
        fn other_values_are_held_or_refused(values in any_values()) {
            round_trip(&values);
        }
    }

    #[test]
    fn specials_are_exceptions() {
        for odd in [-0.0, f64::NAN, f64::INFINITY, 0.1 + 0.2, 1e300, 16.007813] {
            let mut values = vec![-1.5, 0.0, 3.25, 0.1];
            values.resize(48, 12.625);
            values.insert(30, odd);
            assert!(round_trip(&values).is_some_and(|len| len < 260), "{odd}");
            assert!(round_trip(&[odd; 4]).is_none(), "{odd}");
        }
    }
}
