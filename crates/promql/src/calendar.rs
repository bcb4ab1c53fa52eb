//! Dates of seconds since 1970, UTC, over the whole range of 64 bits.
//!
//! Seconds out of that range are its lower end, as in Prometheus on x86. Tested against dates that
//! Go printed.

/// The function of this name, of seconds since 1970.
pub(crate) fn by_name(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "minute" => |seconds| (of_day(seconds) / 60 % 60) as f64,
        "hour" => |seconds| (of_day(seconds) / 3600) as f64,
        "day_of_week" => |seconds| ((absolute(seconds) / DAY + 3) % 7) as f64,
        "day_of_month" => |seconds| date(seconds).day as f64,
        "day_of_year" => |seconds| day_of_year(&date(seconds)) as f64,
        "days_in_month" => |seconds| days_in_month(&date(seconds)) as f64,
        "month" => |seconds| date(seconds).month as f64,
        "year" => |seconds| date(seconds).year as f64,
        _ => return None,
    })
}

/// A time as RFC 3339 writes it.
pub fn rfc3339(seconds: i64) -> String {
    let seconds = seconds as f64;
    let (date, of_day) = (date(seconds), of_day(seconds));
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        date.year,
        date.month,
        date.day,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
    )
}

const DAY: u64 = 24 * 3600;
/// Days of four centuries.
const ERA: u64 = 146_097;
/// Years from 1 March of the earliest year that counts to 1 March of year 0: a multiple of 400, so
/// that all seconds of 64 bits are counted without a sign.
const YEARS_BEFORE: i64 = 292_277_022_400;
/// Seconds from that day to 1970; 1 March of year 0 is 719,468 days before.
const BEFORE_1970: i64 = (YEARS_BEFORE / 400 * ERA as i64 + 719_468) * DAY as i64;

struct Date {
    year: i64,
    month: u64,
    day: u64,
}

/// Seconds since the earliest year.
fn absolute(seconds: f64) -> u64 {
    let out = seconds.is_nan() || seconds >= 9_223_372_036_854_775_808.0;
    let seconds = if out { i64::MIN } else { seconds as i64 };
    seconds.wrapping_add(BEFORE_1970) as u64
}

fn of_day(seconds: f64) -> u64 {
    absolute(seconds) % DAY
}

/// Years begin on 1 March, so that a leap day is the last of its year.
fn date(seconds: f64) -> Date {
    let days = absolute(seconds) / DAY;
    let (era, of_era) = (days / ERA, days % ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let (month, next_year) = match month_from_march {
        0..=9 => (month_from_march + 3, 0),
        _ => (month_from_march - 9, 1),
    };
    Date {
        year: (era * 400 + year_of_era) as i64 - YEARS_BEFORE + next_year,
        month,
        day: of_year - (153 * month_from_march + 2) / 5 + 1,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(month: u64, year: i64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_in_month(date: &Date) -> u64 {
    month_length(date.month, date.year)
}

fn day_of_year(date: &Date) -> u64 {
    let before = 1..date.month;
    date.day
        + before
            .map(|month| month_length(month, date.year))
            .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] = [
        "year",
        "month",
        "day_of_month",
        "day_of_week",
        "day_of_year",
        "days_in_month",
        "hour",
        "minute",
    ];
    /// Seconds and what Prometheus answers, in the order of the names.
    const DATES: &[(f64, [f64; 8])] = &[
        (0.0, [1970.0, 1.0, 1.0, 4.0, 1.0, 31.0, 0.0, 0.0]),
        (-1.0, [1969.0, 12.0, 31.0, 3.0, 365.0, 31.0, 23.0, 59.0]),
        (951782400.5, [2000.0, 2.0, 29.0, 2.0, 60.0, 29.0, 0.0, 0.0]),
        (
            951868799.0,
            [2000.0, 2.0, 29.0, 2.0, 60.0, 29.0, 23.0, 59.0],
        ),
        (1709164800.0, [2024.0, 2.0, 29.0, 4.0, 60.0, 29.0, 0.0, 0.0]),
        (
            4107542399.0,
            [2100.0, 2.0, 28.0, 0.0, 59.0, 28.0, 23.0, 59.0],
        ),
        (-62135596800.0, [1.0, 1.0, 1.0, 1.0, 1.0, 31.0, 0.0, 0.0]),
        (
            -62167219201.0,
            [-1.0, 12.0, 31.0, 5.0, 365.0, 31.0, 23.0, 59.0],
        ),
        (1e12, [33658.0, 9.0, 27.0, 5.0, 270.0, 30.0, 1.0, 46.0]),
        (
            -1e15,
            [-31686769.0, 6.0, 29.0, 0.0, 180.0, 30.0, 22.0, 13.0],
        ),
        (
            9e18,
            [285198648531.0, 4.0, 21.0, 6.0, 111.0, 30.0, 16.0, 0.0],
        ),
        (
            -9e18,
            [-285198644592.0, 9.0, 12.0, 1.0, 256.0, 30.0, 8.0, 0.0],
        ),
        (
            f64::NAN,
            [292277026596.0, 12.0, 4.0, 0.0, 339.0, 31.0, 15.0, 30.0],
        ),
        (
            f64::INFINITY,
            [292277026596.0, 12.0, 4.0, 0.0, 339.0, 31.0, 15.0, 30.0],
        ),
        (
            f64::NEG_INFINITY,
            [292277026596.0, 12.0, 4.0, 0.0, 339.0, 31.0, 15.0, 30.0],
        ),
        (
            1795492485.0,
            [2026.0, 11.0, 24.0, 2.0, 328.0, 30.0, 3.0, 54.0],
        ),
    ];

    #[test]
    fn dates_are_those_of_go() {
        for (seconds, answers) in DATES {
            for (name, answer) in NAMES.iter().zip(answers) {
                let found = by_name(name).expect("a function")(*seconds);
                assert_eq!(found, *answer, "{name}({seconds})");
            }
        }
    }
}
