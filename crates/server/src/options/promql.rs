//! Options of queries in PromQL.

use super::kind::Kind;
use super::range::{
    PROMQL_LOOKBACK, PROMQL_MEMORY, PROMQL_QUERIES, PROMQL_SAMPLES, PROMQL_TIMEOUT,
};
use super::row::{Row, row};

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    row(
        "promql-lookback TIME",
        "5m",
        Kind::Time(PROMQL_LOOKBACK, |settings| &mut settings.promql.lookback_ms),
        "How far back an instant selector of PromQL looks for a sample",
    ),
    row(
        "promql-timeout TIME",
        "2m",
        Kind::Time(PROMQL_TIMEOUT, |settings| &mut settings.promql.timeout_ms),
        "Longest time that a query in PromQL may take",
    ),
    row(
        "promql-max-concurrency NUMBER",
        "20",
        Kind::Number(PROMQL_QUERIES, |settings| &mut settings.promql.queries_max),
        "Queries in PromQL that run at a time; others wait",
    ),
    row(
        "promql-max-samples NUMBER",
        "50000000",
        Kind::Number(PROMQL_SAMPLES, |settings| &mut settings.promql.samples_max),
        "Samples that a query in PromQL may load or return at a time",
    ),
    row(
        "promql-max-memory SIZE",
        "256mb",
        Kind::Bytes(PROMQL_MEMORY, |settings| &mut settings.promql.memory_bytes),
        "Memory that a query in PromQL may hold; all of them together hold at most four \
         times as much",
    ),
    row(
        "promql-delayed-name-removal on|off",
        "off",
        Kind::OnOff(|settings| &mut settings.promql.delays_name_removal),
        "Whether functions of PromQL keep the metric name until the query ends",
    ),
];
