//! What is read by each path, for `/metrics` and INFO.

use std::sync::atomic::{AtomicU64, Ordering};

/// A path that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Endpoint {
    /// `/api/v1/series`.
    Series,
    /// `/api/v1/labels`.
    Labels,
    /// `/api/v1/label/NAME/values`.
    LabelValues,
    /// `/api/v1/export`.
    Export,
    /// `/api/v1/read`.
    RemoteRead,
    /// `/api/v1/query`.
    Query,
    /// `/api/v1/query_range`.
    QueryRange,
    /// `/api/v1/explain`.
    Explain,
    /// What answers without reading series: `/api/v1/parse_query`, `/api/v1/status/...`.
    Status,
    /// `/api/v1/status/active_queries` and `top_queries`.
    Queries,
    /// `/api/v1/status/active_queries/ID/cancel`.
    Cancel,
    /// `/api/v1/status/flags`.
    Flags,
    /// `/api/v1/metadata`.
    Metadata,
    /// `/api/v1/status/server`.
    Server,
    /// `/api/v1/status/series`.
    SeriesStatus,
    /// `/api/v1/status/series/samples`.
    Samples,
    /// `/api/v1/status/keys`.
    Keys,
    /// `/api/v1/status/rules`.
    Rules,
    /// `/api/v1/status/lateness`.
    Lateness,
}

impl Endpoint {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 19] = [
        Self::Series,
        Self::Labels,
        Self::LabelValues,
        Self::Export,
        Self::RemoteRead,
        Self::Query,
        Self::QueryRange,
        Self::Explain,
        Self::Status,
        Self::Queries,
        Self::Cancel,
        Self::Flags,
        Self::Metadata,
        Self::Server,
        Self::SeriesStatus,
        Self::Samples,
        Self::Keys,
        Self::Rules,
        Self::Lateness,
    ];

    /// The name by which it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Labels => "labels",
            Self::LabelValues => "label_values",
            Self::Export => "export",
            Self::RemoteRead => "remote_read",
            Self::Query => "query",
            Self::QueryRange => "query_range",
            Self::Explain => "explain",
            Self::Status => "status",
            Self::Queries => "queries",
            Self::Cancel => "cancel",
            Self::Flags => "flags",
            Self::Metadata => "metadata",
            Self::Server => "server",
            Self::SeriesStatus => "series_status",
            Self::Samples => "samples",
            Self::Keys => "keys",
            Self::Rules => "rules",
            Self::Lateness => "lateness",
        }
    }

    /// The command of the Redis side that does the same: who may not run that
    /// one may not ask here.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Series => "ts.queryindex",
            Self::Labels | Self::LabelValues | Self::Metadata => "ts.querylabels",
            Self::Export
            | Self::RemoteRead
            | Self::Query
            | Self::QueryRange
            | Self::Explain
            | Self::Cancel => "ts.mrange",
            // Names of metrics and senders need more.
            Self::Status | Self::Lateness => "ping",
            // Texts of queries are as confidential as the arguments in the slow log.
            Self::Queries => "slowlog|get",
            Self::Flags => "config|get",
            Self::Server => "info",
            Self::SeriesStatus | Self::Rules => "ts.info",
            Self::Samples => "ts.range",
            Self::Keys => "scan",
        }
    }
}

/// The figures of every path.
#[derive(Debug, Default)]
pub(crate) struct Reads([ReadCounters; Endpoint::ALL.len()]);

/// Counters of one path since the start.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    /// Requests.
    pub(crate) requests: AtomicU64,
    /// Requests that were refused, or whose answer broke off by an error.
    pub(crate) failed: AtomicU64,
    /// Answers that the reader did not wait for, or took too slowly.
    pub(crate) cancelled: AtomicU64,
    /// Series, names or values returned.
    pub(crate) items: AtomicU64,
    /// Samples, or buckets of samples, returned.
    pub(crate) samples: AtomicU64,
    /// Bytes of answers.
    pub(crate) bytes: AtomicU64,
}

impl Reads {
    /// The counters of `endpoint`.
    pub(crate) fn of(&self, endpoint: Endpoint) -> &ReadCounters {
        &self.0[endpoint as usize]
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
