//! Numbers of bytes in text: `512mb`, `1GiB`, `1048576`.
//!
//! As in Redis `k`, `m` and `g` are powers of ten, `kb`, `mb` and `gb` powers
//! of 1024; `KiB`, `MiB`, `GiB` and `TiB` are accepted too.

use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1_000_000_000_000),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|letter: char| !letter.is_ascii_digit());
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let unit = unit.trim_start().to_ascii_lowercase();
        let factor = UNITS.iter().find(|(name, _)| *name == unit);
        let bytes = number.parse::<u64>().ok().zip(factor);
        bytes
            .and_then(|(number, (_, factor))| number.checked_mul(*factor))
            .map(Self)
            .ok_or_else(|| format!("{text:?}: argument must be a memory value such as 512mb"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_redis_in_any_case() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1_048_576),
            ("1k", 1000),
            ("1KB", 1024),
            ("512mb", 512 << 20),
            ("64 MiB", 64 << 20),
            ("2g", 2_000_000_000),
            ("2Gb", 2 << 30),
            ("1tib", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "mb", "-1", "1.5gb", "12 apples", "99999999tb", "1 2"] {
            assert!(text.parse::<Size>().is_err(), "{text} was taken");
        }
    }
}
