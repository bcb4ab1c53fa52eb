//! The bits of a float as an integer that sorts like the float.
//!
//! Full-precision values that are close together share their high bits, and
//! numbers that were once f32 (or otherwise short in binary) end in zeros: both
//! vanish after shifting out the common trailing zeros and coding the rest as
//! integers. Holds every input.
//!
//! Layout: byte with the number of trailing zeros dropped, integers (`stream`).

use super::Scratch;
use crate::varint::Reader;
use crate::{Error, FRAME_SAMPLES_MAX, stream};

pub(crate) fn encode(values: &[f64], scratch: &mut Scratch, out: &mut Vec<u8>) {
    let or = values.iter().fold(0, |or, value| or | value.to_bits());
    let shift = or.trailing_zeros().min(63);
    let ints = &mut scratch.ints[..values.len()];
    ints.iter_mut()
        .zip(values)
        .for_each(|(slot, value)| *slot = to_ordered(value.to_bits(), shift));
    out.push(shift as u8);
    stream::encode(
        ints,
        scratch.words.as_mut_slice(),
        &mut scratch.attempt,
        out,
    );
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let shift = u32::from(reader.u8()?);
    if shift > 63 {
        return Err(Error::Corrupt("a shift exceeds 63 bits"));
    }
    let (mut words, mut ints) = ([0u64; FRAME_SAMPLES_MAX], [0i64; FRAME_SAMPLES_MAX]);
    let ints = &mut ints[..out.len()];
    stream::decode(reader, &mut words, ints)?;
    for (slot, int) in out.iter_mut().zip(ints) {
        *slot = f64::from_bits(from_ordered(*int, shift));
    }
    Ok(())
}

/// Magnitude shifted down; negative numbers as its complement, so -0.0 and 0.0 stay apart.
#[inline]
fn to_ordered(bits: u64, shift: u32) -> i64 {
    let magnitude = ((bits << 1 >> 1) >> shift) as i64;
    magnitude ^ (bits as i64 >> 63)
}

#[inline]
fn from_ordered(ordered: i64, shift: u32) -> u64 {
    let sign = ordered >> 63;
    ((ordered ^ sign) as u64) << shift | sign as u64 & 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, check};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(values in any_values()) {
            let mut bytes = Vec::new();
            encode(&values, &mut Scratch::default(), &mut bytes);
            check(&bytes, &values, decode);
        }

        #[test]
        fn sorts_like_the_floats(a: f64, b: f64) {
            let order = to_ordered(a.to_bits(), 0).cmp(&to_ordered(b.to_bits(), 0));
            prop_assert_eq!(order, a.total_cmp(&b), "the standard library's total order is the twin");
        }
    }

    #[test]
    fn former_f32_values_cost_four_bytes_at_most() {
        let values: Vec<f64> = (1..=128u32).map(|i| f64::from((i as f32).sqrt())).collect();
        let mut bytes = Vec::new();
        encode(&values, &mut Scratch::default(), &mut bytes);
        assert!(bytes.len() < 128 * 4, "{} bytes", bytes.len());
    }
}
