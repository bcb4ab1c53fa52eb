//! What Prometheus' API says of the server itself: `/api/v1/status/...`, `features`, and the lists of
//! targets, which are empty here because Latewood does not scrape.
//!
//! `version` is the version of Prometheus whose language and API are spoken; Latewood's own is the
//! revision. There is no `features` in it: Grafana takes a server that has it for Mimir.
//!
//! Tested by `tests/http/promql.rs`.

pub(in crate::http) mod keys;
pub(in crate::http) mod rules;
pub(in crate::http) mod samples;
pub(in crate::http) mod series;
pub(in crate::http) mod server;

use super::envelope::respond;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::options;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::function::FUNCTIONS;
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of Prometheus that is spoken.
const PROMETHEUS: &str = "3.16.0";

/// `GET /api/v1/status/buildinfo`.
pub(crate) async fn build(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Status, request, |_, _| {
        Ok(json!({
            "version": PROMETHEUS,
            "revision": concat!("latewood-", env!("CARGO_PKG_VERSION")),
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        }))
    })
    .await
}

/// `GET /api/v1/status/runtimeinfo`.
pub(crate) async fn runtime(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Status, request, |asked, _| {
        let shared = asked.shared();
        let (read_ms, rules_read) = asked.context.rules.last_read();
        let now = SystemTime::now();
        let started = now.checked_sub(shared.lifetime.started.elapsed());
        let retention = match shared.db.retention_ms() {
            0 => "unlimited".to_owned(),
            retention_ms => format!("{}s", retention_ms / 1000),
        };
        Ok(json!({
            "startTime": rfc3339(started.unwrap_or(now)),
            "serverTime": rfc3339(now),
            "reloadConfigSuccess": rules_read,
            "lastConfigTime": crate::rules::rfc3339_ms(read_ms),
            "corruptionCount": 0,
            "GOMAXPROCS": shared.settings.threads,
            "storageRetention": retention,
        }))
    })
    .await
}

/// `GET /api/v1/status/flags`: the options, as CONFIG GET shows them.
pub(crate) async fn flags(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Flags, request, |asked, _| {
        let mut settings = asked.shared().runtime.current.lock().clone();
        let rows = options::all().filter(|row| row.is_shown() && row.name() != "requirepass");
        let flags = rows.map(|row| (row.name().to_owned(), row.kind.show(&mut settings).into()));
        Ok(Value::Object(flags.collect()))
    })
    .await
}

/// `GET /api/v1/features`: what of PromQL and the API there is.
pub(crate) async fn features(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Status, request, |asked, _| {
        let functions = FUNCTIONS
            .iter()
            .map(|function| (function.name.to_owned(), true.into()));
        let functions: Map<String, Value> = functions.collect();
        let delays = asked.shared().settings.promql.delays_name_removal;
        Ok(json!({
            "api": {
                "label_values_match": true,
                "query_stats": true,
                "query_warnings": true,
                "time_range_labels": true,
                "time_range_series": true,
            },
            "promql": {
                "anchored": true,
                "at_modifier": true,
                "bool": true,
                "by": true,
                "delayed_name_removal": delays,
                "duration_expr": true,
                "experimental_functions": true,
                "fill": true,
                "group_left": true,
                "group_right": true,
                "ignoring": true,
                "negative_offset": true,
                "offset": true,
                "on": true,
                "per_query_lookback_delta": true,
                "smoothed": true,
                "subqueries": true,
                "without": true,
            },
            "promql_functions": functions,
        }))
    })
    .await
}

/// `GET /api/v1/targets`.
pub(crate) async fn targets(State(context): State<Context>, request: Request) -> Response {
    let data = json!({"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}});
    respond(&context, Endpoint::Status, request, |_, _| Ok(data)).await
}

/// `GET /api/v1/targets/metadata`: of targets, of which there are none.
pub(crate) async fn target_metadata(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Status, request, |_, _| Ok(json!([]))).await
}

/// `GET /api/v1/scrape_pools`.
pub(crate) async fn scrape_pools(State(context): State<Context>, request: Request) -> Response {
    let data = json!({"scrapePools": []});
    respond(&context, Endpoint::Status, request, |_, _| Ok(data)).await
}

/// `GET /api/v1/status/config`: what a file of Prometheus would say of the rules. Nothing is scraped.
pub(crate) async fn config(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Flags, request, |asked, _| {
        let rules = asked.shared().runtime.current.lock().rules.clone();
        let mut yaml = format!("global:\n  evaluation_interval: {}ms\n", rules.interval_ms);
        // A text of JSON is one of YAML.
        let text = |text: &str| Value::from(text).to_string();
        let external = rules.external_labels.iter();
        let external: Vec<_> = external.filter_map(|pair| pair.split_once('=')).collect();
        if !external.is_empty() {
            yaml.push_str("  external_labels:\n");
        }
        for (name, value) in external {
            yaml.push_str(&format!("    {}: {}\n", text(name), text(value)));
        }
        if !rules.files.is_empty() {
            yaml.push_str("rule_files:\n");
        }
        for file in &rules.files {
            yaml.push_str(&format!("- {}\n", text(file)));
        }
        Ok(json!({ "yaml": yaml }))
    })
    .await
}

fn rfc3339(time: SystemTime) -> String {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    latewood_promql::rfc3339(i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX))
}
