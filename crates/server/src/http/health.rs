//! Whether the server is there, in the ways that senders and operators ask.

use super::answer::json_text;
use super::context::Context;
use super::form::first;
use crate::state::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `/ping` of InfluxDB: 204, or the version where `verbose` asks for it.
pub(super) async fn ping(RawQuery(query): RawQuery) -> Response {
    let headers = [
        ("x-influxdb-build", "Latewood"),
        ("x-influxdb-version", VERSION),
    ];
    match first(query.as_deref(), "verbose").as_deref() {
        None | Some("false") => (StatusCode::NO_CONTENT, headers).into_response(),
        Some(_) => (headers, json_text(&json!({"version": VERSION}))).into_response(),
    }
}

/// `/health` of InfluxDB 2.
pub(super) async fn health(State(context): State<Context>) -> Response {
    let (status, word, message) = match context.shared.unready() {
        None => (
            StatusCode::OK,
            "pass",
            "ready for queries and writes".to_owned(),
        ),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, "fail", why),
    };
    let checks: Vec<_> = quarantine(&context.shared).into_iter().collect();
    let checks = checks
        .iter()
        .map(|message| json!({"name": "quarantine", "status": "fail", "message": message}));
    let body = json!({
        "name": "latewood", "status": word, "message": message,
        "checks": checks.collect::<Vec<_>>(), "version": VERSION,
    });
    (status, json_text(&body)).into_response()
}

/// What an operator has to look at although all is served.
fn quarantine(shared: &Shared) -> Option<String> {
    let count = shared.db.shown().doubts().len();
    (count > 0).then(|| {
        format!(
            "{count} damaged files are in quarantine and not accepted: samples may be missing, \
             and overwritten or deleted ones visible again; see LATEWOOD QUARANTINE ACCEPT"
        )
    })
}

/// `/`: what this server is, for programs.
pub(super) fn home() -> String {
    format!(
        "Latewood {VERSION}, a time-series database.\n\n\
         /health   whether it takes reads and writes\n\
         /metrics  its figures, for Prometheus\n\n\
         What can be written and read here is in docs/protocols.md, which comes with the server.\n"
    )
}

/// `/-/healthy`: the process answers. A node of a cluster names its role.
pub(super) async fn healthy(State(context): State<Context>) -> Response {
    let text = "Latewood is healthy.\n";
    match context.shared.node.get() {
        Some(node) => ([("latewood-role", node.role().name())], text).into_response(),
        None => text.into_response(),
    }
}

/// `/-/ready`: 503 while the database is loading or writes are refused.
pub(super) async fn ready(State(context): State<Context>) -> Response {
    match context.shared.unready() {
        None => {
            let warning = quarantine(&context.shared);
            let warning = warning.map_or_else(String::new, |why| format!("Warning: {why}.\n"));
            format!("Latewood is ready.\n{warning}").into_response()
        }
        Some(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("Latewood: {why}.\n"),
        )
            .into_response(),
    }
}
