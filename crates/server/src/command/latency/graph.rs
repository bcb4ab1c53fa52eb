//! The picture of LATENCY GRAPH: one column for each delay, oldest left, as
//! high as the delay is long, and below it how long ago it was.

use crate::observe::History;

const ROWS: u64 = 4;
/// Columns shown; the newest delays.
const COLUMNS_MAX: usize = 80;

/// The picture at `now_s` of a history that is not empty.
pub(super) fn draw(name: &str, history: &History, now_s: i64) -> String {
    let skipped = history.delays.len().saturating_sub(COLUMNS_MAX);
    let delays: Vec<_> = history.delays.iter().skip(skipped).collect();
    let high = delays.iter().map(|d| d.duration_ms).max().unwrap_or(0);
    let low = delays.iter().map(|d| d.duration_ms).min().unwrap_or(0);
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        history.longest_ms,
        "-".repeat(COLUMNS_MAX)
    );
    let span = (high - low).max(1);
    let height = |ms: u64| 1 + (ms - low) * (2 * ROWS - 1) / span;
    for row in (0..ROWS).rev() {
        line(
            &mut text,
            delays.iter().map(|d| cell(height(d.duration_ms), row)),
        );
    }
    text.push('\n');
    let labels: Vec<Vec<char>> = delays
        .iter()
        .map(|d| age(now_s.saturating_sub(d.time_s)).chars().collect())
        .collect();
    let longest = labels.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..longest {
        line(
            &mut text,
            labels.iter().map(|label| *label.get(row).unwrap_or(&' ')),
        );
    }
    text
}

/// What a column of `height` half rows shows in a row.
fn cell(height: u64, row: u64) -> char {
    match height.saturating_sub(2 * row) {
        0 => ' ',
        1 => '_',
        2 if height == 2 * ROWS => '#',
        2 => 'o',
        _ => '|',
    }
}

fn line(text: &mut String, cells: impl Iterator<Item = char>) {
    let row: String = cells.collect();
    text.push_str(row.trim_end());
    text.push('\n');
}

/// Seconds as the largest whole unit.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3_600 => format!("{}m", s / 60),
        s @ 3_600..86_400 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Delay;

    #[test]
    fn columns_are_as_high_as_delays_are_long() {
        let delay = |time_s, duration_ms| Delay {
            time_s,
            duration_ms,
        };
        let history = History {
            delays: [delay(10, 1), delay(70, 5), delay(95, 8)].into(),
            longest_ms: 20,
        };
        let picture = draw("settle", &history, 100);
        let expected = "settle - high 8 ms, low 1 ms (all time high 20 ms)\n".to_owned()
            + &"-".repeat(80)
            + "\n  #\n _|\n ||\n_||\n\n135\nm0s\n s\n";
        assert_eq!(picture, expected);
    }

    #[test]
    fn one_delay_is_a_picture_too() {
        let history = History {
            delays: [Delay {
                time_s: 5,
                duration_ms: 3,
            }]
            .into(),
            longest_ms: 3,
        };
        assert!(draw("command", &history, 90_000).ends_with("\n_\n\n1\nd\n"));
    }
}
