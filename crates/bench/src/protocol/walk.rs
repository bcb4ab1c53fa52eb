//! A part of the fleet in Akumuli's protocol: a message of three lines for each sample.

use std::io::Write;

use super::common;
use crate::base::error::Result;
use crate::workload::sensors::{self, Part};

const METRIC: &str = "sensor";
/// Bytes that are handed on at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The last sample of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Last {
    pub(crate) series: u64,
    pub(crate) timestamp_ms: i64,
    pub(crate) value: f64,
}

/// Brings `rounds` samples of every series to `take`, piece by piece, and says which the last is.
pub(crate) fn write(
    part: &mut Part,
    rounds: u32,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Option<Last>> {
    let series: Vec<String> = (0..part.len()).map(|at| line(part.number(at))).collect();
    let mut text = Vec::with_capacity(PIECE_BYTES + 1_024);
    let mut last = None;
    for _ in 0..rounds {
        for (at, series) in series.iter().enumerate() {
            let (timestamp_ms, hundredths) = part.next(at);
            text.extend_from_slice(series.as_bytes());
            // Writing to a Vec cannot fail.
            let (whole, rest) = (hundredths / 100, hundredths % 100);
            let _ = write!(text, ":{timestamp_ms}000000\r\n+{whole}.{rest:02}\r\n");
            if text.len() >= PIECE_BYTES {
                take(&text)?;
                text.clear();
            }
            last = Some(Last {
                series: part.number(at),
                timestamp_ms,
                value: sensors::number(hundredths),
            });
        }
    }
    take(&text)?;
    Ok(last)
}

/// The key under which Latewood keeps a series.
pub(crate) fn key(number: u64) -> Result<String> {
    let labels = sensors::labels(number);
    common::key(METRIC, labels.iter().map(|(name, value)| (name, value)))
}

fn line(number: u64) -> String {
    let labels = sensors::labels(number).map(|(name, value)| format!(" {name}={value}"));
    format!("+{METRIC}{}\r\n", labels.concat())
}

#[cfg(test)]
mod tests {
    use latewood_wire::akumuli::Writer;
    use latewood_wire::testing::Collected;

    use super::*;
    use crate::base::error::Doing;
    use crate::protocol::tests::lines;
    use crate::workload::sensors::Plan;

    #[test]
    fn a_part_is_read_back_with_its_last_sample_at_the_end() {
        let plan = Plan {
            series: 25,
            rounds: 8,
            late_percent: 20.0,
            reverse: false,
            seed: 9,
        };
        let (mut intake, mut keys) = (Collected::default(), Vec::new());
        for mut part in plan.parts(3) {
            let mut text = Vec::new();
            let take = |piece: &[u8]| text.write_all(piece).doing("take");
            let last = write(&mut part, 8, take).unwrap().unwrap();
            let mut writer = Writer::new();
            for (line, number) in lines(&text).zip(1..) {
                writer.line(line, number, &mut intake);
            }
            let read = intake.samples.last().unwrap();
            assert_eq!(read.0, key(last.series).unwrap());
            assert_eq!((read.1.ms, read.2), (last.timestamp_ms, last.value));
            keys.extend((0..part.len()).map(|at| key(part.number(at)).unwrap()));
        }
        assert_eq!(intake.refused, []);
        assert_eq!(intake.samples.len(), 25 * 8);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 25, "every series has a name of its own");
    }
}
