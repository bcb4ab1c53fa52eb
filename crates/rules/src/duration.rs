//! Durations as Prometheus writes them in files: `1h30m`, `0`.

/// Units from the longest, with their milliseconds, and whether one is written only where nothing
/// smaller is left: 90d is easier to read than 12w6d.
const UNITS: [(&str, u64, bool); 7] = [
    ("y", 365 * 24 * 3_600_000, true),
    ("w", 7 * 24 * 3_600_000, true),
    ("d", 24 * 3_600_000, false),
    ("h", 3_600_000, false),
    ("m", 60_000, false),
    ("s", 1000, false),
    ("ms", 1, false),
];
/// Go counts durations in nanoseconds of 63 bits.
const MILLIS_MAX: u64 = i64::MAX as u64 / 1_000_000;

/// The milliseconds of a duration, not negative.
///
/// # Errors
/// In the words of Prometheus.
pub fn parse(text: &str) -> Result<i64, String> {
    match text {
        "0" => return Ok(0),
        "" => return Err("empty duration string".to_owned()),
        _ => {}
    }
    let invalid = || format!("not a valid duration string: {text:?}");
    let (mut rest, mut millis, mut first_unit) = (text, 0_u64, 0);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest
            .bytes()
            .take_while(|byte| !byte.is_ascii_digit())
            .count();
        let unit = &rest[..letters];
        rest = &rest[letters..];
        if unit.is_empty() {
            return Err(invalid());
        }
        let Some(at) = UNITS.iter().position(|(name, ..)| *name == unit) else {
            return Err(format!("unknown unit {unit:?} in duration {text:?}"));
        };
        if at < first_unit {
            return Err(invalid());
        }
        first_unit = at + 1;
        millis = millis.saturating_add(count.saturating_mul(UNITS[at].1));
        if millis > MILLIS_MAX {
            return Err("duration out of range".to_owned());
        }
    }
    // At most `MILLIS_MAX`.
    Ok(millis as i64)
}

/// A duration of milliseconds as Prometheus prints it.
pub fn shown(millis: i64) -> String {
    let mut rest = millis.unsigned_abs();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = if millis < 0 { "-" } else { "" }.to_owned();
    for (unit, length, only_whole) in UNITS {
        if only_whole && !rest.is_multiple_of(length) {
            continue;
        }
        if rest >= length {
            text.push_str(&format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed() {
        for (text, millis, printed) in [
            ("0", 0, "0s"),
            ("1m", 60_000, "1m"),
            ("90d", 90 * 86_400_000, "90d"),
            ("1w", 7 * 86_400_000, "1w"),
            ("8d", 8 * 86_400_000, "8d"),
            ("1h30m5s7ms", 5_405_007, "1h30m5s7ms"),
            ("120s", 120_000, "2m"),
        ] {
            assert_eq!(parse(text), Ok(millis), "{text}");
            assert_eq!(shown(millis), printed);
        }
        for (text, why) in [
            ("", "empty duration string"),
            ("1", "not a valid duration string: \"1\""),
            ("-1m", "not a valid duration string: \"-1m\""),
            ("1m1h", "not a valid duration string: \"1m1h\""),
            ("1m1m", "not a valid duration string: \"1m1m\""),
            ("1x", "unknown unit \"x\" in duration \"1x\""),
            ("1.5h", "unknown unit \".\" in duration \"1.5h\""),
            ("300y", "duration out of range"),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()), "{text}");
        }
    }
}
