//! InfluxDB's writes: `POST /write` of version 1, `POST /api/v2/write` of 2, `POST /api/v3/write_lp` of 3.

use super::answer::{Answer, json_text};
use super::body::{BODY_TIME_MAX, Received, receive};
use super::context::{Context, Sending};
use super::form::{Form, first};
use super::short::receive_short;
use crate::acl::User;
use crate::intake::{Report, Way};
use crate::observe::{Protocol, Route};
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use latewood_wire::influx::{Decoder, Precision};
use serde_json::json;
use std::sync::Arc;

/// Refused lines that an answer tells of; the others it counts.
const LINES_TOLD_MAX: usize = 10;

/// A write, whatever its version.
struct Write {
    precision: Precision,
    /// Name and value of the label for the database, where one is wanted.
    label: Option<(String, String)>,
    /// An answer about refused lines also has them as version 3 does.
    is_v3: bool,
}

/// `POST /write`. `rp` and `consistency` mean nothing here.
pub(super) async fn write_v1(
    Sending(context): Sending,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let first = |name| first(query.as_deref(), name);
    let write = Write {
        precision: precision(first("precision"))?,
        label: label(&context, first("db")),
        is_v3: false,
    };
    let (user, password) = (first("u"), first("p"));
    let given = (user.as_deref(), password.as_deref());
    take(context, write, headers, given, body).await
}

/// `POST /api/v2/write`. `org` means nothing here.
pub(super) async fn write_v2(
    Sending(context): Sending,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let first = |name| first(query.as_deref(), name);
    let write = Write {
        precision: precision(first("precision"))?,
        label: label(&context, first("bucket")),
        is_v3: false,
    };
    take(context, write, headers, (None, None), body).await
}

/// `POST /api/v3/write_lp`. `no_sync` means nothing here: writes are acknowledged as `--durability` says.
pub(super) async fn write_v3(
    Sending(context): Sending,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let first = |name| first(query.as_deref(), name);
    let unit = first("precision").unwrap_or_default();
    let precision = Precision::parse_v3(&unit).ok_or_else(|| {
        Answer::bad(format!(
            "invalid precision {unit:?} (use auto, ns, us, ms, s, nanosecond, microsecond, millisecond \
             or second)"
        ))
    })?;
    let truth = |name| match first(name).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(Answer::bad(format!(
            "invalid {name} {other:?} (use true or false)"
        ))),
    };
    truth("no_sync")?;
    if truth("accept_partial")? == Some(false) {
        let text = "accept_partial=false is not supported: the valid lines of a request are stored";
        return Err(Answer::bad(text));
    }
    let write = Write {
        precision,
        label: label(&context, first("db")),
        is_v3: true,
    };
    take(context, write, headers, (None, None), body).await
}

/// `/query`: senders of version 1 begin with `CREATE DATABASE`, which is done
/// already, for there are none; some ask for them with `SHOW DATABASES` before.
/// Other statements are refused.
///
/// The statement stands in the path, or in a form.
pub(super) async fn query(
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let text = match first(query.as_deref(), "q") {
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
    let (worker, is_v3) = (context.clone(), write.is_v3);
    let (report, whole) = context
        .block_in(&context.work.writers, move || {
            decode(&worker, &user, write, &received)
        })
        .await?;
    match whole {
        // What came before the damage is kept, as far as it is whole lines.
        Err(broken) => Err(broken.behind(&report)),
        Ok(()) => Ok(answer(&report, is_v3)),
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
fn answer(report: &Report, is_v3: bool) -> Response {
    if let Some(answer) = Answer::failed(report) {
        return answer.into_response();
    }
    if report.refused() > 0 {
        return refused(report, is_v3);
    }
    match report.texts {
        0 => StatusCode::NO_CONTENT.into_response(),
        texts => {
            let header = [("x-latewood-strings-not-stored", texts.to_string())];
            (StatusCode::NO_CONTENT, header).into_response()
        }
    }
}

/// 400 that names lines and counts what was dropped: lines, and refusals, of which a line can have
/// one for each field.
fn refused(report: &Report, is_v3: bool) -> Response {
    let first = report.told(LINES_TOLD_MAX);
    let told: Vec<_> = first
        .iter()
        .map(|line| format!("line {}: {}", line.number, line.text))
        .collect();
    let dropped = report.refused_lines();
    let begin = if report.samples > 0 {
        "partial write: "
    } else {
        ""
    };
    let text = format!("{begin}{} dropped={dropped}", told.join("\n"));
    let line = first.first().map_or(0, |line| line.number);
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
    let lines: Vec<_> = first
        .iter()
        .map(|line| json!({"line": line.number, "error": line.text}))
        .collect();
    let mut body = json!({
        "code": code, "message": text, "error": text, "line": line, "lines": lines,
        "dropped": dropped, "refused": report.refused(),
    });
    if is_v3 {
        let data = first
            .iter()
            .map(|line| json!({"line_number": line.number, "error_message": line.text}));
        body["data"] = data.collect();
    }
    (status, json_text(&body)).into_response()
}

fn precision(name: Option<String>) -> Result<Precision, Answer> {
    let name = name.unwrap_or_default();
    Precision::parse(&name).ok_or_else(|| {
        Answer::bad(format!(
            "invalid precision {name:?} (use n, ns, u, us, ms, s, m or h)"
        ))
    })
}

fn label(context: &Context, value: Option<String>) -> Option<(String, String)> {
    let name = context.shared.settings.senders.influx_db_label.clone()?;
    Some((name, value?))
}
