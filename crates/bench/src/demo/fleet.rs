//! The devices of the demo: every recording is played by many of them.

use super::weather::Recording;

/// What every key begins with.
const PREFIX: &str = "weather";

/// The devices and what each of them measures.
#[derive(Debug)]
pub(super) struct Fleet {
    recordings: Vec<Recording>,
    devices: Vec<Device>,
}

/// One device: a series of its own.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) key: String,
    recording: usize,
}

impl Fleet {
    /// `copies` devices for every recording.
    pub(super) fn new(recordings: Vec<Recording>, copies: usize) -> Self {
        let device = |copy: usize, recording: usize| {
            let Recording {
                station, measure, ..
            } = &recordings[recording];
            Device {
                key: format!("{PREFIX}:{station}:{measure}:{copy:04}"),
                recording,
            }
        };
        let devices = (1..=copies)
            .flat_map(|copy| (0..recordings.len()).map(move |recording| (copy, recording)))
            .map(|(copy, recording)| device(copy, recording))
            .collect();
        Fleet {
            recordings,
            devices,
        }
    }

    /// How many recordings are played.
    pub(super) fn recordings(&self) -> usize {
        self.recordings.len()
    }

    /// The devices; a device is named by its place here.
    pub(super) fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Station and measure of a device.
    pub(super) fn labels(&self, device: usize) -> (&str, &str) {
        let recording = &self.recordings[self.devices[device].recording];
        (&recording.station, &recording.measure)
    }

    /// What a device measures in the whole year.
    pub(super) fn samples(&self, device: usize) -> &[(i64, f64)] {
        &self.recordings[self.devices[device].recording].samples
    }

    /// Samples of all devices.
    pub(super) fn total(&self) -> u64 {
        let samples = |device| self.samples(device).len() as u64;
        (0..self.devices.len()).map(samples).sum()
    }
}
