//! Decimals blurred by arithmetic: mantissa, and how many ULPs the value is off.
//!
//! 46.833999999999996 is 46.834 less one unit in the last place: the result of a
//! mean or a unit conversion. No decimal exponent holds it, but the mantissa
//! 46834 and the residual -1 do. Values that are not decimals get a huge
//! residual, which patching absorbs, so every input round-trips.
//!
//! Layout: exponent byte; mantissas (`stream`); zigzag residuals (`pfor`).

use super::Scratch;
use crate::powers::{EXPONENT_MAX, MANTISSA_LIMIT, power_of_ten};
use crate::varint::{Reader, unzigzag, zigzag};
use crate::{Error, FRAME_SAMPLES_MAX, pfor, stream};

/// Residuals up to this many ULPs count as arithmetic noise.
const NOISE_ULPS: u64 = 64;

/// The smallest exponent at which most of a small sample is a few ULPs off a decimal.
pub(crate) fn guess_exponent(values: &[f64]) -> Option<u8> {
    const PROBES: usize = 16;
    let stride = values.len().div_ceil(PROBES);
    let near = |value: &f64, exponent: u8| {
        let (mantissa, residual) = split(*value, power_of_ten(exponent));
        residual.unsigned_abs() <= NOISE_ULPS && mantissa.abs() < MANTISSA_LIMIT / 8.0
    };
    (0..=EXPONENT_MAX).find(|exponent| {
        let probes = values.iter().step_by(stride);
        let total = probes.len();
        probes.filter(|value| near(value, *exponent)).count() * 8 >= total * 7
    })
}

/// Appends any values at `exponent`.
pub(crate) fn encode(values: &[f64], exponent: u8, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let scale = power_of_ten(exponent);
    let (ints, residuals) = (
        &mut scratch.ints[..values.len()],
        &mut scratch.floats[..values.len()],
    );
    let mut previous = 0.0;
    for ((slot, residual), value) in ints.iter_mut().zip(residuals.iter_mut()).zip(values) {
        let (mut mantissa, mut off) = split(*value, scale);
        if mantissa.is_nan() {
            mantissa = previous;
            off = value.to_bits().wrapping_sub((mantissa / scale).to_bits()) as i64;
        }
        previous = mantissa;
        *slot = mantissa as i64;
        *residual = f64::from_bits(zigzag(off));
    }
    out.push(exponent);
    stream::encode(
        ints,
        scratch.words.as_mut_slice(),
        &mut scratch.attempt,
        out,
    );
    let words = &mut scratch.words[..values.len()];
    words
        .iter_mut()
        .zip(residuals)
        .for_each(|(word, residual)| *word = residual.to_bits());
    pfor::encode(words, out);
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let exponent = reader.u8()?;
    if exponent > EXPONENT_MAX {
        return Err(Error::Corrupt("a decimal exponent exceeds 22"));
    }
    let scale = power_of_ten(exponent);
    let (mut words, mut ints) = ([0u64; FRAME_SAMPLES_MAX], [0i64; FRAME_SAMPLES_MAX]);
    let (words, ints) = (&mut words[..out.len()], &mut ints[..out.len()]);
    stream::decode(reader, words, ints)?;
    pfor::decode(reader, words)?;
    for ((slot, mantissa), residual) in out.iter_mut().zip(ints).zip(words) {
        *slot = join(*mantissa as f64, scale, unzigzag(*residual));
    }
    Ok(())
}

/// Nearest mantissa and residual; a NaN mantissa if there is none below 2^51.
#[inline]
fn split(value: f64, scale: f64) -> (f64, i64) {
    let scaled = value * scale;
    if scaled.abs() < MANTISSA_LIMIT {
        // Adding zero turns -0.0, which an integer cannot hold, into 0.0.
        let mantissa = scaled.round_ties_even() + 0.0;
        return (
            mantissa,
            value.to_bits().wrapping_sub((mantissa / scale).to_bits()) as i64,
        );
    }
    (f64::NAN, i64::MAX)
}

#[inline]
fn join(mantissa: f64, scale: f64, residual: i64) -> f64 {
    f64::from_bits((mantissa / scale).to_bits().wrapping_add_signed(residual))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, bits, check};
    use proptest::prelude::*;

    /// The twin: one value at a time.
    fn naive_decode(bytes: &[u8], count: usize) -> Vec<f64> {
        let mut reader = Reader::new(bytes);
        // Exact, which `powi` is not on every target.
        let scale: f64 = format!("1e{}", reader.u8().unwrap()).parse().unwrap();
        let (mut words, mut mantissas) = (vec![0; count], vec![0; count]);
        stream::decode(&mut reader, &mut words, &mut mantissas).unwrap();
        let residual = |index| unzigzag(pfor::get(&mut reader.clone(), count, index).unwrap());
        let value = |index: usize| {
            let decimal = (mantissas[index] as f64 / scale).to_bits() as i128;
            f64::from_bits((decimal + i128::from(residual(index))) as u64)
        };
        (0..count).map(value).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values(), exponent in 0u8..=22) {
            let exponent = guess_exponent(&values).unwrap_or(exponent);
            let mut bytes = Vec::new();
            encode(&values, exponent, &mut Scratch::default(), &mut bytes);
            check(&bytes, &values, decode);
            prop_assert_eq!(bits(&naive_decode(&bytes, values.len())), bits(&values));
        }
    }

    #[test]
    fn noise_of_a_mean_costs_little() {
        let values: Vec<f64> = (0..128)
            .map(|i| f64::from(40_000 + i * 37 % 1000) * 0.001 + 0.003)
            .collect();
        assert_eq!(guess_exponent(&values), Some(3));
        let mut bytes = Vec::new();
        encode(&values, 3, &mut Scratch::default(), &mut bytes);
        assert!(bytes.len() < 128 * 2, "{} bytes", bytes.len());
    }
}
