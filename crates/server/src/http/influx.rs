//! InfluxDB's writes: `POST /write` of version 1, `POST /api/v2/write` of 2.

use super::answer::{Answer, json_text};
use super::body::{BODY_TIME_MAX, Received, receive};
use super::context::{Context, Sending};
use super::form::Form;
use super::short::receive_short;
use crate::acl::User;
use crate::intake::{Report, Way};
use crate::observe::{Protocol, Route};
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use latewood_wire::influx::{Decoder, Precision};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Refused lines that an answer tells of; the others it counts.
const LINES_TOLD_MAX: usize = 10;

/// The parameters of version 1. `rp` and `consistency` mean nothing here.
#[derive(Deserialize)]
pub(super) struct V1 {
    db: Option<String>,
    precision: Option<String>,
    u: Option<String>,
    p: Option<String>,
}

/// The parameters of version 2. `org` means nothing here.
#[derive(Deserialize)]
pub(super) struct V2 {
    bucket: Option<String>,
    precision: Option<String>,
}

/// A write, whatever its version.
struct Write {
    precision: Precision,
    /// Name and value of the label for the database, where one is wanted.
    label: Option<(String, String)>,
}

/// `POST /write`.
pub(super) async fn write_v1(
    Sending(context): Sending,
    Query(parameters): Query<V1>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let write = Write {
        precision: precision(parameters.precision.as_deref())?,
        label: label(&context, parameters.db),
    };
    let given = (parameters.u.as_deref(), parameters.p.as_deref());
    take(context, write, headers, given, body).await
}

/// `POST /api/v2/write`.
pub(super) async fn write_v2(
    Sending(context): Sending,
    Query(parameters): Query<V2>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let write = Write {
        precision: precision(parameters.precision.as_deref())?,
        label: label(&context, parameters.bucket),
    };
    take(context, write, headers, (None, None), body).await
}

#[derive(Deserialize)]
pub(super) struct Statement {
    q: Option<String>,
}

/// `/query`: senders of version 1 begin with `CREATE DATABASE`, which is done
/// already, for there are none; some ask for them with `SHOW DATABASES` before.
/// Other statements are refused.
///
/// The statement stands in the path, or in a form.
pub(super) async fn query(
    path: Result<Query<Statement>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let text = match path.ok().and_then(|Query(statement)| statement.q) {
        Some(text) => Some(text),
        None => statement_of_form(&headers, body).await?,
    };
    let Some(text) = text else {
        return Err(Answer::bad("missing parameter q"));
    };
    let text = text.trim_start().to_ascii_lowercase();
    if text.starts_with("create database") {
        return Ok(json_text(&json!({"results": [{"statement_id": 0}]})).into_response());
    }
    if text.starts_with("show databases") {
        let none = json!({"name": "databases", "columns": ["name"], "values": []});
        let results = json!({"results": [{"statement_id": 0, "series": [none]}]});
        return Ok(json_text(&results).into_response());
    }
    let text = "InfluxQL is not supported; read with /api/v1/export or TS.RANGE";
    Err(Answer::bad(text))
}

async fn statement_of_form(headers: &HeaderMap, body: Body) -> Result<Option<String>, Answer> {
    let Some(form) = Form::of(headers) else {
        return Ok(None);
    };
    let body = receive_short(body, BODY_TIME_MAX).await?;
    let mut parameters = form.read(&body, usize::MAX)?.into_iter();
    let statement = parameters.find(|(name, _)| name == "q");
    Ok(statement.map(|(_, text)| text))
}

async fn take(
    context: Context,
    write: Write,
    headers: HeaderMap,
    given: (Option<&str>, Option<&str>),
    body: Body,
) -> Result<Response, Answer> {
    let (user, received) = receive(&context, &headers, given, body).await?;
    let worker = context.clone();
    let (report, whole) = context
        .block_in(&context.work.writers, move || {
            decode(&worker, &user, write, &received)
        })
        .await?;
    match whole {
        // What came before the damage is kept, as far as it is whole lines.
        Err(broken) => Err(broken.behind(&report)),
        Ok(()) => Ok(answer(&report)),
    }
}

/// Decodes and applies a body.
fn decode(
    context: &Context,
    user: &Arc<User>,
    write: Write,
    received: &Received,
) -> (Report, Result<(), Answer>) {
    let mut decoder = Decoder::new(write.precision);
    let mut scope = Vec::new();
    if let Some((name, value)) = &write.label {
        scope = value.clone().into_bytes();
        decoder = decoder.with_label(name.as_bytes(), value.as_bytes());
    }
    let way = Way::new(Protocol::Influx, Route::InfluxHttp);
    let (report, inflated) = context.work.take(context, way, &scope, user, |intake| {
        received.pieces(|piece, is_end| decoder.decode(piece, is_end, intake))
    });
    context.received(Protocol::Influx, *inflated.as_ref().unwrap_or(&0));
    (report, inflated.map(drop))
}

/// The answer to a body that was read to its end.
fn answer(report: &Report) -> Response {
    if let Some(answer) = Answer::failed(report) {
        return answer.into_response();
    }
    if report.refused() > 0 {
        return refused(report);
    }
    match report.texts {
        0 => StatusCode::NO_CONTENT.into_response(),
        texts => {
            let header = [("x-latewood-strings-not-stored", texts.to_string())];
            (StatusCode::NO_CONTENT, header).into_response()
        }
    }
}

/// 400 that names lines and counts what was dropped.
fn refused(report: &Report) -> Response {
    let first = || report.lines.iter().take(LINES_TOLD_MAX);
    let told: Vec<_> = first()
        .map(|line| format!("line {}: {}", line.number, line.text))
        .collect();
    let dropped = report.refused();
    let begin = if report.samples > 0 {
        "partial write: "
    } else {
        ""
    };
    let text = format!("{begin}{} dropped={dropped}", told.join("\n"));
    let line = report.lines.first().map_or(0, |line| line.number);
    let is_forbidden = report.samples == 0
        && report
            .lines
            .iter()
            .all(|line| line.reason == latewood_wire::intake::Reason::Permission);
    let (status, code) = if is_forbidden {
        (StatusCode::FORBIDDEN, "forbidden")
    } else {
        (StatusCode::BAD_REQUEST, "invalid")
    };
    let lines: Vec<_> = first()
        .map(|line| json!({"line": line.number, "error": line.text}))
        .collect();
    let body = json!({
        "code": code, "message": text, "error": text, "line": line, "lines": lines,
        "dropped": dropped,
    });
    (status, json_text(&body)).into_response()
}

fn precision(name: Option<&str>) -> Result<Precision, Answer> {
    let name = name.unwrap_or_default();
    Precision::parse(name).ok_or_else(|| {
        Answer::bad(format!(
            "invalid precision {name:?} (use n, ns, u, us, ms, s, m or h)"
        ))
    })
}

fn label(context: &Context, value: Option<String>) -> Option<(String, String)> {
    let name = context.shared.settings.senders.influx_db_label.clone()?;
    Some((name, value?))
}
