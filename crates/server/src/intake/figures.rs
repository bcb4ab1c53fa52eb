//! What came by each protocol, for `/metrics` and INFO.

use super::Report;
use super::ages::AgeCounters;
use latewood_wire::intake::Reason;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

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
    /// Samples by age.
    pub(crate) ages: AgeCounters,
    refusals: Warnings,
    failures: Warnings,
}

/// Something the log is told of now and then.
#[derive(Debug, Default)]
struct Warnings {
    /// What it was not told of yet.
    untold: AtomicU64,
    /// When it was told last.
    told_ms: AtomicI64,
}

impl Figures {
    /// The counters of `protocol`.
    pub(crate) fn of(&self, protocol: Protocol) -> &Counters {
        &self.0[protocol as usize]
    }
}

/// The least time between two lines of the log about refusals of a protocol.
const WARN_EVERY_MS: i64 = 10_000;

impl Warnings {
    /// Counts `more`; where it is time to tell the log, how many there were.
    fn due(&self, more: u64, now_ms: i64) -> Option<u64> {
        let untold = self.untold.fetch_add(more, Ordering::Relaxed) + more;
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        // Of two at the same moment, one tells.
        let is_time = now_ms.saturating_sub(told_ms) >= WARN_EVERY_MS
            && self
                .told_ms
                .compare_exchange(told_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_time.then(|| {
            self.untold.fetch_sub(untold, Ordering::Relaxed);
            untold
        })
    }
}

impl Counters {
    /// Tells the log of the first refusal of a report, with key and timestamp
    /// where it has them, of what kept samples from being applied, and of how
    /// many there were since the last time.
    pub(super) fn warn(&self, report: &Report, protocol: Protocol, now_ms: i64) {
        let protocol = protocol.name();
        if let Some(line) = report.lines.first()
            && let Some(refused) = self.refusals.due(report.refused(), now_ms)
        {
            tracing::warn!(
                protocol,
                reason = line.reason.name(),
                first = line.text,
                refused,
                "samples were refused"
            );
        }
        if let Some(error) = &report.failure
            && let Some(failed) = self.failures.due(report.failed, now_ms)
        {
            tracing::warn!(protocol, %error, failed, "samples were not applied");
        }
    }

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
        self.ages.add(&report.ages);
        for (counter, more) in self.refused.iter().zip(report.refused) {
            add(counter, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_now_and_then_of_all_since_the_last_time() {
        let warnings = Warnings::default();
        let told: Vec<_> = [
            (1, 0),
            (2, 1),
            (3, 9_999),
            (4, 10_000),
            (5, 10_001),
            (6, 30_000),
        ]
        .map(|(more, after_ms)| warnings.due(more, 1_700_000_000_000 + after_ms))
        .into();
        assert_eq!(told, [Some(1), None, None, Some(9), None, Some(11)]);
    }
}
