//! What came by each protocol, for `/metrics` and INFO.

use super::Report;
use latewood_wire::intake::Reason;
use std::sync::atomic::{AtomicU64, Ordering};

/// A protocol whose senders name series by labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Protocol {
    /// InfluxDB line protocol.
    Influx,
    /// OpenTSDB, telnet and HTTP.
    OpenTsdb,
    /// Akumuli's own.
    Akumuli,
    /// Prometheus remote write and text exposition.
    Prometheus,
    /// OpenTelemetry.
    Otlp,
}

impl Protocol {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 5] = [
        Self::Influx,
        Self::OpenTsdb,
        Self::Akumuli,
        Self::Prometheus,
        Self::Otlp,
    ];

    /// The name by which it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Influx => "influx",
            Self::OpenTsdb => "opentsdb",
            Self::Akumuli => "akumuli",
            Self::Prometheus => "prometheus",
            Self::Otlp => "otlp",
        }
    }
}

/// The figures of every protocol.
#[derive(Debug, Default)]
pub(crate) struct Figures([Counters; Protocol::ALL.len()]);

/// Counters of one protocol since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Samples taken.
    pub(crate) samples: AtomicU64,
    /// Refused, by the number of the reason.
    pub(crate) refused: [AtomicU64; Reason::ALL.len()],
    /// Texts that were not stored.
    pub(crate) texts: AtomicU64,
    /// Samples merged by rounding down to milliseconds.
    pub(crate) merged: AtomicU64,
    /// Samples not applied because the database could not.
    pub(crate) failed: AtomicU64,
    /// Bytes received, uncompressed.
    pub(crate) bytes: AtomicU64,
}

impl Figures {
    /// The counters of `protocol`.
    pub(crate) fn of(&self, protocol: Protocol) -> &Counters {
        &self.0[protocol as usize]
    }
}

impl Counters {
    pub(super) fn add(&self, report: &Report) {
        let add = |counter: &AtomicU64, more: u64| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.samples, report.samples);
        add(&self.texts, report.texts);
        add(&self.merged, report.merged);
        add(&self.failed, report.failed);
        for (counter, more) in self.refused.iter().zip(report.refused) {
            add(counter, more);
        }
    }
}
