//! Lengths of time in text: `90d`, `12h`, `30m`, `10s`,
//! `500ms`; a bare number is milliseconds.

use std::str::FromStr;

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) u64);

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.find(|letter: char| !letter.is_ascii_digit());
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let factor = UNITS.iter().find(|(name, _)| *name == unit);
        let parts = number.parse::<u64>().ok().zip(factor);
        parts
            .and_then(|(number, (_, factor))| number.checked_mul(*factor))
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a length of time such as 90d, 12h or 500ms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_from_milliseconds_to_weeks() {
        for (text, milliseconds) in [
            ("0", 0),
            ("1500", 1_500),
            ("1500ms", 1_500),
            ("10s", 10_000),
            ("30m", 1_800_000),
            ("12h", 43_200_000),
            ("90d", 7_776_000_000),
            ("1w", 604_800_000),
        ] {
            assert_eq!(text.parse(), Ok(Age(milliseconds)), "{text}");
        }
        for text in ["", "d", "-1", "1.5h", "3 d", "1y", "99999999999999999w"] {
            assert!(text.parse::<Age>().is_err(), "{text} was taken");
        }
    }
}
