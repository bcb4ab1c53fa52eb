//! One f64 in as few bytes as it needs.
//!
//! A byte `d` of 0 to 22 is followed by a zigzag varint mantissa, to be divided
//! by 10^d; the byte 255 by the eight raw bytes. Used for statistics,
//! constants and dictionaries. Bit-exact, NaN payloads and -0.0 included.

use crate::Error;
use crate::powers::{EXPONENT_MAX, mantissa_of, power_of_ten};
use crate::varint::{Reader, put_varint, varint_len, zigzag};

const RAW: u8 = 255;

/// Appends `value` in 2 to 9 bytes.
pub(crate) fn put(value: f64, out: &mut Vec<u8>) {
    for exponent in 0..=EXPONENT_MAX {
        let Some(mantissa) = mantissa_of(value, power_of_ten(exponent)) else {
            continue;
        };
        let folded = zigzag(mantissa);
        if varint_len(folded) < 8 {
            out.push(exponent);
            put_varint(folded, out);
            return;
        }
        break;
    }
    out.push(RAW);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

/// Reads what [`put`] wrote.
pub(crate) fn get(reader: &mut Reader<'_>) -> Result<f64, Error> {
    match reader.u8()? {
        RAW => Ok(f64::from_bits(reader.u64()?)),
        exponent @ 0..=EXPONENT_MAX => Ok(reader.zigzag()? as f64 / power_of_ten(exponent)),
        _ => Err(Error::Corrupt("unknown form of a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(value: f64) -> (f64, usize) {
        let mut bytes = Vec::new();
        put(value, &mut bytes);
        let mut reader = Reader::new(&bytes);
        let back = get(&mut reader).unwrap();
        assert!(reader.rest().is_empty());
        (back, bytes.len())
    }

    proptest! {
        #[test]
        fn every_bit_pattern_comes_back(bits: u64, mantissa in -100_000i64..100_000, exponent in 0u8..8) {
            let value = f64::from_bits(bits);
            prop_assert_eq!(round_trip(value).0.to_bits(), bits);
            let decimal = mantissa as f64 / power_of_ten(exponent);
            let (back, len) = round_trip(decimal);
            prop_assert_eq!(back.to_bits(), decimal.to_bits());
            prop_assert!(len <= 4, "{} takes {} bytes", decimal, len);
        }
    }

    #[test]
    fn special_values_come_back() {
        for value in [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE / 8.0,
            f64::MAX,
        ] {
            assert_eq!(round_trip(value).0.to_bits(), value.to_bits());
        }
    }
}
