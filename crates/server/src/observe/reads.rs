//! What is read by each path, for `/metrics` and INFO.

use latewood_model::named;
use std::sync::atomic::{AtomicU64, Ordering};

named! {
    /// A path that reads.
    pub(crate) enum Endpoint {
        /// `/api/v1/series`.
        Series => "series",
        /// `/api/v1/labels`.
        Labels => "labels",
        /// `/api/v1/label/NAME/values`.
        LabelValues => "label_values",
        /// `/api/v1/export`.
        Export => "export",
        /// `/federate`.
        Federate => "federate",
        /// `/api/v1/read`.
        RemoteRead => "remote_read",
        /// `/api/v1/query`.
        Query => "query",
        /// `/api/v1/query_range`.
        QueryRange => "query_range",
        /// `/api/v1/explain`.
        Explain => "explain",
        /// What answers without reading series: `/api/v1/parse_query`, `/api/v1/status/...`.
        Status => "status",
        /// `/api/v1/status/active_queries` and `top_queries`.
        Queries => "queries",
        /// `/api/v1/status/active_queries/ID/cancel`.
        Cancel => "cancel",
        /// `/api/v1/status/flags`.
        Flags => "flags",
        /// `/api/v1/metadata`.
        Metadata => "metadata",
        /// `/api/v1/status/server`.
        Server => "server",
        /// `/api/v1/status/series`.
        SeriesStatus => "series_status",
        /// `/api/v1/status/series/samples`.
        Samples => "samples",
        /// `/api/v1/status/keys`.
        Keys => "keys",
        /// `/api/v1/status/rules`.
        Rules => "rules",
        /// `/api/v1/status/lateness`.
        Lateness => "lateness",
        /// `/api/v1/rules` and `/api/v1/alerts`.
        RuleGroups => "rule_groups",
        /// `/api/v1/rules/verify`.
        VerifyRules => "verify_rules",
        /// `/api/v1/rules/backfill`.
        Backfill => "backfill_rules",
        /// `/-/reload`.
        Reload => "reload",
        /// `/api/v1/admin/tsdb/delete_series` and `/api/v2/delete`.
        DeleteSeries => "delete_series",
    }
}

impl Endpoint {
    /// The command of the Redis side that does the same: who may not run that
    /// one may not ask here.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Series => "ts.queryindex",
            Self::Labels | Self::LabelValues | Self::Metadata => "ts.querylabels",
            Self::Federate => "ts.mget",
            Self::Export
            | Self::RemoteRead
            | Self::Query
            | Self::QueryRange
            | Self::Explain
            | Self::Cancel
            // Alerts hold labels and values of series.
            | Self::RuleGroups
            | Self::VerifyRules => "ts.mrange",
            Self::Reload | Self::Backfill => "config|set",
            // Names of metrics and senders need more.
            Self::Status | Self::Lateness => "ping",
            // Texts of queries are as confidential as the arguments in the slow log.
            Self::Queries => "slowlog|get",
            Self::Flags => "config|get",
            Self::Server => "info",
            Self::SeriesStatus | Self::Rules => "ts.info",
            Self::Samples => "ts.range",
            Self::DeleteSeries => "ts.del",
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
    pub(crate) fn of(&self, endpoint: Endpoint) -> &ReadCounters {
        &self.0[endpoint as usize]
    }
}

pub(crate) fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
