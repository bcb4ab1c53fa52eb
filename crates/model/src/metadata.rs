//! What senders say of metrics.

/// What a sender says of a metric; `None` where it does not say anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told<'a> {
    /// One of [`METRIC_KINDS`].
    pub kind: Option<&'a str>,
    /// What it counts or measures.
    pub help: Option<&'a str>,
    /// Its unit.
    pub unit: Option<&'a str>,
}

/// The types of metrics, by their numbers in remote write.
pub const METRIC_KINDS: [&str; 8] = [
    "unknown",
    "counter",
    "gauge",
    "histogram",
    "gaugehistogram",
    "summary",
    "info",
    "stateset",
];
