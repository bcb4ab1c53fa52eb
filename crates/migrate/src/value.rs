//! Values to text and back, bit for bit.

use latewood_wire::number::parse_f64;

/// Parses a number, an infinity, or a NaN with optional bits.
pub(crate) fn parse_value(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("nan:") {
        Some(bits) => {
            let bits = u64::from_str_radix(bits, 16).ok()?;
            Some(f64::from_bits(bits)).filter(|value| value.is_nan())
        }
        None => parse_f64(text).map(|value| if value.is_nan() { f64::NAN } else { value }),
    }
}

/// The shortest text that parses back to the same bits.
pub(crate) fn value_text(value: f64) -> String {
    if value.is_nan() {
        return if value.to_bits() == f64::NAN.to_bits() {
            "nan".to_owned()
        } else {
            format!("nan:{:016x}", value.to_bits())
        };
    }
    let plain = value.to_string();
    let scientific = format!("{value:e}");
    if scientific.len() < plain.len() {
        scientific
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_back_and_overflow_is_refused() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        for value in [stale, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            let read = parse_value(value_text(value).as_bytes());
            assert_eq!(read.map(f64::to_bits), Some(value.to_bits()));
        }
        let read = parse_value(b"-nan").or(parse_value(b"NaN"));
        assert_eq!(read.map(f64::to_bits), Some(f64::NAN.to_bits()));
        assert_eq!(parse_value(b"1e999").or(parse_value(b"-1e999")), None);
    }
}
