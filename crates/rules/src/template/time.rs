//! Times and durations in templates, with the methods of Go that rules use.

use latewood_promql::rfc3339;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// What stands for a part of a time in a layout of Go, longer before shorter.
const PARTS: [&str; 27] = [
    "January", "Monday", "-07:00", "Z07:00", "-0700", "Z0700", "2006", ".000", ".999", "Jan",
    "Mon", "MST", "_2", "01", "02", "03", "04", "05", "06", "15", "PM", "pm", "1", "2", "3", "4",
    "5",
];

/// A time in UTC, milliseconds.
pub(super) struct Time(pub(super) i64);

impl Time {
    /// The number at `from..to` of `2006-01-02T15:04:05Z`.
    fn number(&self, from: usize, to: usize) -> u32 {
        let text = rfc3339(self.0.div_euclid(1000));
        text.get(from..to)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0)
    }

    fn thousandths(&self) -> i64 {
        self.0.rem_euclid(1000)
    }

    fn weekday(&self) -> &'static str {
        DAYS[(self.0.div_euclid(86_400_000) + 4).rem_euclid(7) as usize]
    }

    fn month(&self) -> &'static str {
        MONTHS[(self.number(5, 7).clamp(1, 12) - 1) as usize]
    }

    /// The parts of a time by their names in Go.
    pub(super) fn part(&self, name: &str) -> Option<i64> {
        Some(match name {
            "Year" => i64::from(self.number(0, 4)),
            "Day" => i64::from(self.number(8, 10)),
            "Hour" => i64::from(self.number(11, 13)),
            "Minute" => i64::from(self.number(14, 16)),
            "Second" => i64::from(self.number(17, 19)),
            "Unix" => self.0.div_euclid(1000),
            "UnixMilli" => self.0,
            "UnixNano" => self.0.saturating_mul(1_000_000),
            _ => return None,
        })
    }

    /// As Go prints a time.
    pub(super) fn shown(&self) -> String {
        self.format("2006-01-02 15:04:05.999 -0700 MST")
    }

    /// As a layout of Go has it.
    pub(super) fn format(&self, layout: &str) -> String {
        let mut out = String::new();
        let mut rest = layout;
        while let Some(letter) = rest.chars().next() {
            let part = PARTS.iter().find(|part| rest.starts_with(**part));
            match part {
                Some(part) => {
                    self.push(&mut out, part);
                    rest = &rest[part.len()..];
                }
                None => {
                    out.push(letter);
                    rest = &rest[letter.len_utf8()..];
                }
            }
        }
        out
    }

    fn push(&self, out: &mut String, part: &str) {
        let hour = self.number(11, 13);
        let half = if hour.is_multiple_of(12) {
            12
        } else {
            hour % 12
        };
        let text = match part {
            "2006" => format!("{:04}", self.number(0, 4)),
            "06" => format!("{:02}", self.number(0, 4) % 100),
            "January" => self.month().to_owned(),
            "Jan" => self.month()[..3].to_owned(),
            "01" => format!("{:02}", self.number(5, 7)),
            "1" => self.number(5, 7).to_string(),
            "Monday" => self.weekday().to_owned(),
            "Mon" => self.weekday()[..3].to_owned(),
            "02" => format!("{:02}", self.number(8, 10)),
            "_2" => format!("{:2}", self.number(8, 10)),
            "2" => self.number(8, 10).to_string(),
            "15" => format!("{hour:02}"),
            "03" => format!("{half:02}"),
            "3" => half.to_string(),
            "04" => format!("{:02}", self.number(14, 16)),
            "4" => self.number(14, 16).to_string(),
            "05" => format!("{:02}", self.number(17, 19)),
            "5" => self.number(17, 19).to_string(),
            "PM" => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
            "pm" => (if hour < 12 { "am" } else { "pm" }).to_owned(),
            "MST" => "UTC".to_owned(),
            "-0700" => "+0000".to_owned(),
            "-07:00" => "+00:00".to_owned(),
            "Z0700" | "Z07:00" => "Z".to_owned(),
            ".000" => format!(".{:03}", self.thousandths()),
            // Without zeros at the end.
            _ => {
                let text = format!(".{:03}", self.thousandths());
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        };
        out.push_str(&text);
    }
}

/// As Go prints a duration: `30m0s`, `1.5s`, `20ms`.
pub(super) fn duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let decimal = |unit: u64| {
        let (whole, part) = (nanos / unit, nanos % unit);
        let width = unit.ilog10() as usize;
        let text = format!("{whole}.{part:0width$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => format!("{sign}{}\u{b5}s", decimal(1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(1_000_000)),
        _ => {
            let seconds = nanos / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let part = nanos % 1_000_000_000;
            let text = format!("{}.{part:09}", seconds % 60);
            let rest = text.trim_end_matches('0').trim_end_matches('.');
            match (hours, minutes) {
                (0, 0) => format!("{sign}{rest}s"),
                (0, _) => format!("{sign}{minutes}m{rest}s"),
                _ => format!("{sign}{hours}h{minutes}m{rest}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_in_go() {
        let time = Time(1_353_755_652_000);
        assert_eq!(
            time.format("Mon Jan 2 15:04:05 2006"),
            "Sat Nov 24 11:14:12 2012"
        );
        assert_eq!(time.format("02.01.06 3:04 PM"), "24.11.12 11:14 AM");
        assert_eq!(time.shown(), "2012-11-24 11:14:12 +0000 UTC");
        assert_eq!(
            Time(1_435_065_584_128).shown(),
            "2015-06-23 13:19:44.128 +0000 UTC"
        );
        assert_eq!(Time(-1000).shown(), "1969-12-31 23:59:59 +0000 UTC");
    }

    #[test]
    fn durations_print_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (20_000_000, "20ms"),
            (1_500_000_000, "1.5s"),
            (1_800_000_000_000, "30m0s"),
            (-3_661_000_000_000, "-1h1m1s"),
            (100_000_000_000, "1m40s"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }
}
