//! The devices of the demo, and the real measurements they play: hourly weather of three airports
//! of New York in 2013.
//!
//! The data comes from a weather agency and may be redistributed; `data/README.md` says more.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::error::{Doing, Error, Result};
use crate::workload::recordings::unpacked;

/// The measurements, compressed, so that the demo needs no file and no network.
const CSV_GZ: &[u8] = include_bytes!("../../../../data/nyc-weather-2013.csv.gz");

/// One measured quantity of one station.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) station: String,
    pub(super) measure: String,
    samples: Vec<(i64, f64)>,
}

/// The devices and what each of them measures; a device is named by its place.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) recordings: Vec<Recording>,
    pub(super) devices: Vec<Device>,
}

/// One device: a series of its own.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) key: String,
    /// One more than its place among those that play the same recording.
    pub(super) copy: usize,
    recording: usize,
}

impl Fleet {
    /// `copies` devices for every recording.
    pub(super) fn new(copies: usize) -> Result<Self> {
        let text = unpacked(CSV_GZ).doing("unpack the weather data")?;
        let recordings = parse(&text)?;
        let device = |at: usize| {
            let (copy, recording) = (at / recordings.len() + 1, at % recordings.len());
            let Recording {
                station, measure, ..
            } = &recordings[recording];
            Device {
                key: format!("weather:{station}:{measure}:{copy:04}"),
                copy,
                recording,
            }
        };
        Ok(Fleet {
            devices: (0..copies * recordings.len()).map(device).collect(),
            recordings,
        })
    }

    /// How many stations there are.
    pub(super) fn stations(&self) -> usize {
        let stations = self.recordings.iter().map(|one| &one.station);
        stations.collect::<BTreeSet<_>>().len()
    }

    pub(super) fn recording(&self, device: usize) -> &Recording {
        &self.recordings[self.devices[device].recording]
    }

    /// What a device measures in the whole year.
    pub(super) fn samples(&self, device: usize) -> &[(i64, f64)] {
        &self.recording(device).samples
    }

    pub(super) fn total(&self) -> u64 {
        let samples = |device| self.samples(device).len() as u64;
        (0..self.devices.len()).map(samples).sum()
    }
}

/// All recordings; hours at which a station reported nothing are left out.
fn parse(text: &str) -> Result<Vec<Recording>> {
    let doing = "read the weather data";
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let header = table.headers().doing(doing)?.clone();
    let mut all: BTreeMap<(String, usize), Vec<(i64, f64)>> = BTreeMap::new();
    for row in table.deserialize() {
        let (station, seconds, values): (String, i64, Vec<Option<f64>>) = row.doing(doing)?;
        for (at, value) in values.into_iter().enumerate() {
            let key = (station.clone(), at + 2);
            let samples = all.entry(key).or_default();
            samples.extend(value.map(|value| (seconds * 1000, value)));
        }
    }
    let recording = |((station, at), samples): ((String, usize), Vec<(i64, f64)>)| {
        let measure = header[at].to_owned();
        if !samples.is_sorted_by(|a, b| a.0 < b.0) {
            let what = format!("{measure} of {station} is not in order");
            return Err(Error::new(what));
        }
        Ok(Recording {
            station,
            measure,
            samples,
        })
    };
    all.into_iter().map(recording).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_data_is_whole_and_damage_is_named() {
        let recordings = Fleet::new(1).unwrap().recordings;
        assert_eq!(recordings.len(), 18);
        assert!(recordings.iter().all(|r| r.samples.len() > 7_000));
        let first = &recordings[0];
        assert_eq!((&*first.station, &*first.measure), ("EWR", "temp"));
        assert_eq!(first.samples[0], (1_357_020_000_000, 39.02));
        let head = "station,unix_seconds,temp\n";
        let good = parse(&format!("{head}A,1,2.5\nA,2,\nA,3,4\n")).unwrap();
        assert_eq!(good[0].samples, [(1000, 2.5), (3000, 4.0)]);
        for rows in ["A,x,1\n", "A,1,warm\n", "A,2,1\nA,1,1\n"] {
            assert!(parse(&format!("{head}{rows}")).is_err(), "{rows}");
        }
    }
}
