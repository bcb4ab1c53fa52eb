//! Series from CSV files of the Numenta Anomaly Benchmark and the like.
//!
//! A row is `2014-07-01 00:30:00,8127`; the time may have a fraction, or be milliseconds since 1970.
//! Rows that do not come after the one before are left out: a few files repeat an hour.

use std::io::Read;
use std::path::Path;

use latewood_wire::prometheus::time::parse_time;

use crate::base::error::{Doing, Error, Result};
use crate::base::files::files_below;

macro_rules! own {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../../data/nab/", $name, ".csv.gz")) as &[u8],
        )
    };
}
/// A few series of the benchmark, so that a measurement needs no network; see `data/README.md`.
const OWN: [(&str, &[u8]); 8] = [
    own!("ec2_cpu_utilization_5f5533"),
    own!("rds_cpu_utilization_e47b3b"),
    own!("ec2_network_in_257a54"),
    own!("ec2_disk_write_bytes_1ef3de"),
    own!("elb_request_count_8c0756"),
    own!("ec2_request_latency_system_failure"),
    own!("TravelTime_451"),
    own!("exchange-4_cpm_results"),
];

/// A series: milliseconds since 1970 and values, in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) samples: Vec<(i64, f64)>,
}

/// The series that come along.
pub(crate) fn own() -> Result<Vec<Recording>> {
    let of = |(name, bytes): &(&str, &[u8])| parse(name, &unpacked(bytes).doing(name)?);
    OWN.iter().map(of).collect()
}

/// The text of a file that `gzip` packed.
pub(crate) fn unpacked(bytes: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// The series of all CSV files below a folder.
pub(crate) fn read(dir: &Path) -> Result<Vec<Recording>> {
    let mut recordings = Vec::new();
    for path in files_below(dir) {
        if path.extension().is_some_and(|end| end == "csv") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path);
            let text = text.doing(format!("read {}", path.display()))?;
            recordings.push(parse(&name, &text)?);
        }
    }
    recordings.sort_by(|a, b| a.name.cmp(&b.name));
    if recordings.is_empty() {
        return Err(Error::new(format!("no CSV file below {}", dir.display())));
    }
    Ok(recordings)
}

fn parse(name: &str, text: &str) -> Result<Recording> {
    let mut samples: Vec<(i64, f64)> = Vec::new();
    for line in text.lines().skip(1) {
        let sample = line
            .split_once(',')
            .and_then(|(time, value)| Some((milliseconds(time)?, value.trim().parse().ok()?)));
        let sample = sample.ok_or_else(|| Error::new(format!("{name}: no sample: {line:?}")))?;
        if samples.last().is_none_or(|newest| sample.0 > newest.0) {
            samples.push(sample);
        }
    }
    let name = name.to_owned();
    Ok(Recording { name, samples })
}

/// Milliseconds since 1970 of `2014-07-01 00:30:00`, or of a number.
fn milliseconds(text: &str) -> Option<i64> {
    match text.split_once(' ') {
        Some((day, time)) => parse_time(&format!("{day}T{time}Z")).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let day = milliseconds("2000-02-29 23:59:59.500000");
        assert_eq!(day, Some(951_868_799_500));
        assert_eq!(milliseconds("1404172800000"), Some(1_404_172_800_000));
        assert_eq!(milliseconds("yesterday at noon"), None);
    }

    #[test]
    fn the_series_that_come_along_are_whole() {
        let all = own().unwrap();
        let whole = |recording: &&Recording| recording.samples.len() > 1_000;
        assert_eq!(all.iter().filter(whole).count(), 8);
        let first = (1_392_388_020_000, 51.846_000_000_000_004);
        assert_eq!(all[0].samples[0], first);
    }

    #[test]
    fn rows_that_go_back_are_left_out_and_rubbish_is_refused() {
        let recording = parse("a", "timestamp,value\n5,1\n4,2\n5,3\n6,4\n").unwrap();
        assert_eq!(recording.samples, [(5, 1.0), (6, 4.0)]);
        assert!(parse("a", "timestamp,value\n5\n").is_err());
    }
}
