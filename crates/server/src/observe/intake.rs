//! What came by each protocol, for `/metrics` and INFO.

use super::ages::AgeCounters;
use latewood_model::named;
use latewood_wire::intake::Reason;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

named! {
    /// A protocol whose senders name series by labels.
    pub(crate) enum Protocol {
        /// InfluxDB line protocol.
        Influx => "influx",
        /// OpenTSDB, telnet and HTTP.
        OpenTsdb => "opentsdb",
        /// Akumuli's own.
        Akumuli => "akumuli",
        /// Prometheus remote write and text exposition.
        Prometheus => "prometheus",
        /// OpenTelemetry.
        Otlp => "otlp",
        /// Rows of rules.
        Rules => "rules",
    }
}

#[derive(Debug, Default)]
pub(crate) struct IntakeFigures([IntakeCounters; Protocol::ALL.len()]);

/// Counters of one protocol since the start.
#[derive(Debug, Default)]
pub(crate) struct IntakeCounters {
    /// Samples taken.
    pub(crate) samples: AtomicU64,
    /// Refused, by the number of the reason.
    pub(crate) refused: [AtomicU64; Reason::ALL.len()],
    /// Those of them that the engine counts as well.
    pub(crate) refused_by_engine: AtomicU64,
    /// When something was refused last, in milliseconds since the Unix epoch; 0 if never.
    pub(crate) last_refused_ms: AtomicI64,
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
    pub(crate) refusals: Warnings,
    pub(crate) failures: Warnings,
}

/// A warning that is logged at intervals.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// What it was not told of yet.
    untold: AtomicU64,
    /// When it was told last.
    told_ms: AtomicI64,
}

impl IntakeFigures {
    pub(crate) fn of(&self, protocol: Protocol) -> &IntakeCounters {
        &self.0[protocol as usize]
    }

    /// Refused by all protocols, without what the engine counts.
    pub(crate) fn refused_before_engine(&self) -> u64 {
        let refused = self.0.iter().map(|counters| {
            let by_engine = counters.refused_by_engine.load(Ordering::Relaxed);
            counters.refused().saturating_sub(by_engine)
        });
        refused.sum()
    }
}

impl IntakeCounters {
    /// Refused, for all reasons.
    pub(crate) fn refused(&self) -> u64 {
        let refused = self.refused.iter();
        refused.map(|times| times.load(Ordering::Relaxed)).sum()
    }
}

/// The least time between two lines of the log about refusals of a protocol.
const WARN_EVERY_MS: i64 = 10_000;

impl Warnings {
    /// Counts `more`; where it is time to tell the log, how many there were.
    pub(crate) fn due(&self, more: u64, now_ms: i64) -> Option<u64> {
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
