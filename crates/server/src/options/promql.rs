//! Options of queries in PromQL.

use super::kind::Kind;
use super::range::{
    PROMQL_LOOKBACK, PROMQL_MEMORY, PROMQL_QUERIES, PROMQL_SAMPLES, PROMQL_TIMEOUT,
};
use super::row::{Row, row};

pub(super) const ROWS: &[Row] = &[
    row("promql-lookback TIME", "5m")
        .is(Kind::Time(PROMQL_LOOKBACK, |of| &mut of.promql.lookback_ms))
        .help("How far back an instant selector of PromQL looks for a sample"),
    row("promql-timeout TIME", "2m")
        .is(Kind::Time(PROMQL_TIMEOUT, |of| &mut of.promql.timeout_ms))
        .help("Longest time that a query in PromQL may take"),
    row("promql-max-concurrency NUMBER", "20")
        .is(Kind::Number(PROMQL_QUERIES, |of| {
            &mut of.promql.queries_max
        }))
        .help("Queries in PromQL that run at a time; others wait"),
    row("promql-max-samples NUMBER", "50000000")
        .is(Kind::Number(PROMQL_SAMPLES, |of| {
            &mut of.promql.samples_max
        }))
        .help("Samples that a query in PromQL may load or return at a time"),
    row("promql-max-memory SIZE", "256mb")
        .is(Kind::Bytes(PROMQL_MEMORY, |of| &mut of.promql.memory_bytes))
        .help(
            "Memory that a query in PromQL may hold; all of them together hold at most four \
             times as much",
        ),
    row("promql-delayed-name-removal on|off", "off")
        .is(Kind::OnOff(|of| &mut of.promql.delays_name_removal))
        .help("Whether functions of PromQL keep the metric name until the query ends"),
];
