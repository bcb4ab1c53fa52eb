//! One bit for every place of a grid, set for each timestamp.
//!
//! For regular timestamps with gaps, and for grids that late samples fill at
//! random. Whether a timestamp exists is one division and one bit; its index is
//! a count of the bits before it.
//!
//! Layout: varint spacing of the grid (the common divisor of all deltas), then
//! the bits, lowest bit of the first byte first. The first and the last place
//! are set and the unused bits of the last byte are zero, so the length follows
//! from the bytes. With at most [`PLACES_PER_SAMPLE_MAX`] places per sample, a
//! frame takes at most 256 bytes. Tested against a twin that reads bit by bit.

use crate::Error;
use crate::codings::Found;
use crate::varint::{Reader, put_varint, varint_len};

/// Sparser grids are left to other codings.
pub(crate) const PLACES_PER_SAMPLE_MAX: usize = 4;

/// The coarsest grid that all timestamps lie on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    spacing: u64,
    /// Places from the first timestamp to the last, both included.
    pub(crate) places: usize,
}

impl Grid {
    /// The grid of two or more ascending timestamps; `None` if it is too sparse.
    pub(crate) fn fit(timestamps: &[i64]) -> Option<Self> {
        let [first, second, ..] = *timestamps else {
            return None;
        };
        let span = timestamps[timestamps.len() - 1].wrapping_sub(first) as u64;
        let gaps_max = (timestamps.len() * PLACES_PER_SAMPLE_MAX - 1) as u64;
        let mut spacing = second.wrapping_sub(first) as u64;
        if spacing < span.div_ceil(gaps_max) {
            return None;
        }
        let mut divider = Divider::new(spacing);
        for pair in timestamps.windows(2) {
            let delta = pair[1].wrapping_sub(pair[0]) as u64;
            if divider.nearest(delta).wrapping_mul(spacing) == delta {
                continue;
            }
            let mut rest = delta;
            while rest != 0 {
                (spacing, rest) = (rest, spacing % rest);
            }
            // The spacing only falls, so a grid too sparse stays so.
            if spacing < span.div_ceil(gaps_max) {
                return None;
            }
            divider = Divider::new(spacing);
        }
        Some(Self {
            spacing,
            places: (span / spacing) as usize + 1,
        })
    }

    /// Bytes that [`encode`] appends.
    pub(crate) fn len_bytes(&self) -> usize {
        varint_len(self.spacing) + self.places.div_ceil(8)
    }
}

/// Divides by multiplying: about 2,000 grid places need few of the 53 bits of an f64.
#[derive(Clone, Copy)]
struct Divider {
    reciprocal: f64,
}

impl Divider {
    fn new(divisor: u64) -> Self {
        Self {
            reciprocal: 1.0 / divisor as f64,
        }
    }

    /// The exact quotient of a multiple of the divisor up to 2^40 times as large.
    fn nearest(self, dividend: u64) -> u64 {
        (dividend as f64 * self.reciprocal + 0.5) as u64
    }
}

/// Appends the timestamps that `grid` was fitted to.
pub(crate) fn encode(timestamps: &[i64], grid: Grid, out: &mut Vec<u8>) {
    put_varint(grid.spacing, out);
    let start = out.len();
    out.resize(start + grid.places.div_ceil(8), 0);
    let bits = &mut out[start..];
    let divider = Divider::new(grid.spacing);
    for timestamp in timestamps {
        let place = divider.nearest(timestamp.wrapping_sub(timestamps[0]) as u64) as usize;
        bits[place / 8] |= 1 << (place % 8);
    }
}

/// Fills `out`. `span` is the distance from the first to the last timestamp.
pub(crate) fn decode(bytes: &[u8], first: i64, span: u64, out: &mut [i64]) -> Result<(), Error> {
    let bitmap = Bitmap::parse(bytes, span, out.len())?;
    bitmap.check_count(out.len())?;
    let mut slots = out.iter_mut();
    let mut start = first;
    for mut word in bitmap.words() {
        for slot in slots.by_ref().take(word.count_ones() as usize) {
            let place = u64::from(word.trailing_zeros());
            *slot = start.wrapping_add_unsigned(place.wrapping_mul(bitmap.spacing));
            word &= word.wrapping_sub(1);
        }
        start = start.wrapping_add_unsigned(bitmap.spacing.wrapping_mul(64));
    }
    Ok(())
}

/// Index of the first timestamp >= the one `distance` after the first, and
/// whether it is that one, for a distance above 0 and below `span`.
pub(crate) fn search(bytes: &[u8], span: u64, count: usize, distance: u64) -> Found {
    let bitmap = Bitmap::parse(bytes, span, count)?;
    bitmap.check_count(count)?;
    let whole = distance / bitmap.spacing;
    let is_on_grid = whole * bitmap.spacing == distance;
    let place = whole as usize + usize::from(!is_on_grid);
    let (before, word) = (place / 64, bitmap.word(place / 64));
    let below = word & ((1 << (place % 64)) - 1);
    let index = bitmap
        .words()
        .take(before)
        .map(u64::count_ones)
        .sum::<u32>()
        + below.count_ones();
    Ok((index as usize, is_on_grid && bitmap.is_taken(place)))
}

/// True if a timestamp lies `distance` after the first, for a distance up to
/// `span`. One division and one bit: the bits are not counted.
pub(crate) fn exists(bytes: &[u8], span: u64, count: usize, distance: u64) -> Result<bool, Error> {
    let bitmap = Bitmap::parse(bytes, span, count)?;
    let place = distance / bitmap.spacing;
    Ok(place * bitmap.spacing == distance && bitmap.is_taken(place as usize))
}

struct Bitmap<'a> {
    spacing: u64,
    bits: &'a [u8],
}

impl<'a> Bitmap<'a> {
    /// Checks all but the number of set bits. The spacing is not zero and
    /// `span / spacing` is the last place.
    #[inline(always)]
    fn parse(bytes: &'a [u8], span: u64, count: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let spacing = reader.varint()?;
        let bits = reader.rest();
        let (Some(head), Some(tail)) = (bits.first(), bits.last()) else {
            return Err(Error::Truncated);
        };
        if spacing == 0 || head & 1 == 0 || *tail == 0 {
            return Err(Error::Corrupt("a bitmap does not begin or end in a sample"));
        }
        let places = bits.len() * 8 - tail.leading_zeros() as usize;
        if places > count * PLACES_PER_SAMPLE_MAX
            || spacing.checked_mul(places as u64 - 1) != Some(span)
        {
            return Err(Error::Corrupt("a bitmap disagrees with the header"));
        }
        Ok(Self { spacing, bits })
    }

    /// The count decides how many slots there are: every set bit needs one.
    fn check_count(&self, count: usize) -> Result<(), Error> {
        if self.words().map(u64::count_ones).sum::<u32>() as usize != count {
            return Err(Error::Corrupt("a bitmap disagrees with the header"));
        }
        Ok(())
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        let (words, rest) = self.bits.as_chunks::<8>();
        let tail = (!rest.is_empty()).then(|| self.word(words.len()));
        words
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .chain(tail)
    }

    /// 64 places; zero past the end.
    fn word(&self, index: usize) -> u64 {
        let mut word = [0; 8];
        let rest = self.bits.get(index * 8..).unwrap_or(&[]);
        let len = rest.len().min(8);
        word[..len].copy_from_slice(&rest[..len]);
        u64::from_le_bytes(word)
    }

    fn is_taken(&self, place: usize) -> bool {
        self.bits
            .get(place / 8)
            .is_some_and(|byte| byte >> (place % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::samples::{ascending, naive_search, probes};
    use proptest::prelude::*;

    /// The twin: one bit after the other.
    fn naive_decode(bytes: &[u8], first: i64) -> Vec<i64> {
        let mut reader = Reader::new(bytes);
        let spacing = i128::from(reader.varint().unwrap());
        let is_set = |place: &usize| reader.rest()[place / 8] & (1 << (place % 8)) != 0;
        (0..reader.rest().len() * 8)
            .filter(is_set)
            .map(|place| (i128::from(first) + place as i128 * spacing) as i64)
            .collect()
    }

    /// Timestamps on a grid, up to eight places apart; any spacing that fits.
    fn on_a_grid() -> impl Strategy<Value = Vec<i64>> {
        let spacing = prop_oneof![1u64..10, 1u64..100_000, any::<u64>()];
        let gaps = (1u64..8).prop_flat_map(|most| prop::collection::vec(1..=most, 1..512));
        (any::<i64>(), spacing, gaps).prop_map(|(first, spacing, gaps)| {
            let mut timestamps = vec![first];
            for gap in gaps {
                let delta = gap.checked_mul(spacing);
                let last = timestamps[timestamps.len() - 1];
                match delta.and_then(|delta| last.checked_add_unsigned(delta)) {
                    Some(next) if next > last => timestamps.push(next),
                    _ => break,
                }
            }
            timestamps
        })
    }

    /// The greatest common divisor by the book, and the places it gives.
    fn naive_grid(timestamps: &[i64]) -> Option<(u64, usize)> {
        let gcd = timestamps.windows(2).fold(0, |mut a, pair| {
            let mut b = pair[1].wrapping_sub(pair[0]) as u64;
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        });
        let span = timestamps[timestamps.len() - 1].wrapping_sub(timestamps[0]) as u64;
        let places = u128::from(span.checked_div(gcd)?) + 1;
        (places <= (timestamps.len() * PLACES_PER_SAMPLE_MAX) as u128)
            .then_some((gcd, places as usize))
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(timestamps in prop_oneof![on_a_grid(), ascending()]) {
            let grid = Grid::fit(&timestamps);
            prop_assert_eq!(grid.map(|grid| (grid.spacing, grid.places)), naive_grid(&timestamps));
            let Some(grid) = grid else { return Ok(()) };
            let mut bytes = Vec::new();
            encode(&timestamps, grid, &mut bytes);
            prop_assert_eq!(bytes.len(), grid.len_bytes());
            let (first, count) = (timestamps[0], timestamps.len());
            let span = timestamps[count - 1].wrapping_sub(first) as u64;
            let mut back = vec![0; count];
            decode(&bytes, first, span, &mut back).unwrap();
            prop_assert_eq!(&back, &timestamps);
            prop_assert_eq!(&naive_decode(&bytes, first), &timestamps);
            for t in probes(&timestamps) {
                if t > first && t < timestamps[count - 1] {
                    let distance = t.wrapping_sub(first) as u64;
                    let found = naive_search(&timestamps, t);
                    prop_assert_eq!(search(&bytes, span, count, distance).unwrap(), found);
                    prop_assert_eq!(exists(&bytes, span, count, distance).unwrap(), found.1);
                }
            }
        }
    }

    #[test]
    fn refuses_bits_that_disagree_with_the_header() {
        // Spacing 10, samples at 0, 10, 40 and 90.
        let good = [10, 0b0001_0011, 0b10];
        let mut out = [0; 4];
        decode(&good, 5, 90, &mut out).unwrap();
        assert_eq!(out, [5, 15, 45, 95]);
        let refused: [(&[u8], u64, usize); 9] = [
            (&[], 90, 4),
            (&[10], 90, 4),
            (&[0, 0b0001_0011, 0b10], 90, 4),
            (&[10, 0b0001_0010, 0b10], 90, 4),
            (&[10, 0b0001_0011, 0b10, 0], 90, 4),
            (&[10, 0b0001_0011, 0b100], 90, 4),
            (&good, 80, 4),
            (&good, 90, 3),
            (&good, 90, 5),
        ];
        for (bytes, span, count) in refused {
            assert!(
                decode(bytes, 5, span, &mut vec![0; count]).is_err(),
                "{bytes:?}"
            );
            assert!(search(bytes, span, count, 40).is_err(), "{bytes:?}");
        }
        assert!(
            exists(&good, 90, 2, 40).is_err(),
            "more than four places a sample"
        );
    }
}
