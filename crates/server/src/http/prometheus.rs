//! What comes from Prometheus and its relatives: remote write, text, and lines of JSON and CSV.
//!
//! `POST /api/v1/write` takes both versions of remote write, told apart by
//! `Content-Type`. The statuses are those a sender must be able to rely on:
//! 204 for all kept; 400 where something was refused that would be refused
//! again (the rest is kept); 415 for another message or compression; 503 where
//! sending it again will do, which goes for nothing else.

use super::answer::Answer;
use super::body::{Encoding, Received, receive};
use super::context::{Context, Sending};
use super::form::{first, unknown};
use crate::acl::User;
use crate::intake::{EngineIntake, Report, Way};
use crate::observe::{Protocol, Route};
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use latewood_wire::prometheus::exposition::{self, Format};
use latewood_wire::prometheus::write::{Decoder, Version};
use latewood_wire::prometheus::{csv_lines, json_lines};
use std::sync::Arc;

/// Refusals an answer tells of; the others it counts.
const TOLD_MAX: usize = 10;

/// Bytes at the end of a text that are searched for `# EOF`.
const END_BYTES: usize = 256;

/// `POST /api/v1/write`.
pub(super) async fn write(Sending(context): Sending, headers: HeaderMap, body: Body) -> Response {
    let version = match version(&headers) {
        Ok(version) => version,
        Err(answer) => return answer.into_response(),
    };
    let (mut response, samples) = match take(context, version, &headers, body).await {
        Ok((response, samples)) => (response, samples),
        Err(answer) => (answer.into_response(), 0),
    };
    if version == Version::V2 {
        let written = [
            ("x-prometheus-remote-write-samples-written", samples),
            ("x-prometheus-remote-write-histograms-written", 0),
            ("x-prometheus-remote-write-exemplars-written", 0),
        ];
        for (name, count) in written {
            response
                .headers_mut()
                .insert(name, HeaderValue::from(count));
        }
    }
    response
}

/// `POST /api/v1/import/prometheus`.
pub(super) async fn import(
    Sending(context): Sending,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let named = format(&headers);
    let (user, received) = receive(&context, &headers, (None, None), body).await?;
    let worker = context.clone();
    let work = move || {
        let mut decoder = match named {
            Some(format) => exposition::Decoder::new(format),
            None => exposition::Decoder::new(format_of_end(&received)?).guessed(),
        };
        let decode = |piece: &[u8], is_end, intake: &mut _| decoder.decode(piece, is_end, intake);
        Ok::<_, Answer>(read(
            &worker,
            &user,
            (Route::TextImport, TEXT),
            &received,
            decode,
        ))
    };
    let (report, whole) = context.block_in(&context.work.writers, work).await??;
    whole.map_err(|broken| broken.behind(&report))?;
    Ok(answer(&report, "line"))
}

/// `POST /api/v1/import`: lines of JSON.
pub(super) async fn import_lines(
    Sending(context): Sending,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let mut decoder = json_lines::Decoder::default();
    let decode = move |piece: &[u8], is_end, intake: &mut _| decoder.decode(piece, is_end, intake);
    let label = LINES.to_vec();
    take_lines(context, (headers, body), Route::JsonImport, label, decode).await
}

/// `POST /api/v1/import/csv`: lines of CSV, of the columns that `format` tells.
pub(super) async fn import_csv(
    Sending(context): Sending,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    if let Some(name) = unknown(query.as_deref(), &["format"]) {
        let text = format!("unknown parameter {name:?}; expected format");
        return Err(Answer::bad(text));
    }
    let text = first(query.as_deref(), "format");
    let text = text.ok_or_else(|| Answer::bad("missing parameter format"))?;
    let format = text.parse::<csv_lines::Format>();
    let format = format.map_err(|error| Answer::parameter("format", error.to_string()))?;
    let mut decoder = csv_lines::Decoder::new(format);
    let decode = move |piece: &[u8], is_end, intake: &mut _| decoder.decode(piece, is_end, intake);
    // The same line means another series in another format.
    let label = [b"csv ", text.as_bytes()].concat();
    take_lines(context, (headers, body), Route::CsvImport, label, decode).await
}

/// Takes the samples that `decode` finds in the lines of a body.
async fn take_lines(
    context: Context,
    (headers, body): (HeaderMap, Body),
    route: Route,
    label: Vec<u8>,
    decode: impl FnMut(&[u8], bool, &mut EngineIntake) -> usize + Send + 'static,
) -> Result<Response, Answer> {
    let (user, received) = receive(&context, &headers, (None, None), body).await?;
    let worker = context.clone();
    let work = move || read(&worker, &user, (route, &label), &received, decode);
    let (report, whole) = context.block_in(&context.work.writers, work).await?;
    whole.map_err(|broken| broken.behind(&report))?;
    Ok(answer(&report, "line"))
}

async fn take(
    context: Context,
    version: Version,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Response, u64), Answer> {
    if !matches!(Encoding::of(headers)?, Encoding::Snappy | Encoding::Zstd) {
        let text = "remote write requires Content-Encoding: snappy or zstd";
        return Err(Answer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let (user, received) = receive(&context, headers, (None, None), body).await?;
    let worker = context.clone();
    let work = move || read_message(&worker, &user, version, &received);
    let (report, whole) = context.block_in(&context.work.writers, work).await??;
    let response = match whole {
        Ok(()) => answer(&report, "series"),
        Err(why) => Answer::bad(why).behind(&report).into_response(),
    };
    Ok((response, report.samples))
}

fn read_message(
    context: &Context,
    user: &Arc<User>,
    version: Version,
    received: &Received,
) -> Result<(Report, Result<(), String>), Answer> {
    let message = received.unpacked()?;
    context.received(Protocol::Prometheus, message.len() as u64);
    let way = Way::new(Protocol::Prometheus, Route::RemoteWrite);
    let (report, decoded) = context.work.take(context, way, WRITE, user, |intake| {
        Decoder::new().decode(version, &message, intake)
    });
    Ok((report, decoded.map(drop).map_err(|error| error.to_string())))
}

/// Keeps the series met in messages apart from those met in text, since the
/// same bytes could mean another series.
const WRITE: &[u8] = b"write";
const TEXT: &[u8] = b"text";
const LINES: &[u8] = b"json";

/// The format of a text that `Content-Type` names, if it names one.
fn format(headers: &HeaderMap) -> Option<Format> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next()?.to_ascii_lowercase();
    match kind.as_str() {
        "application/openmetrics-text" => Some(Format::OpenMetrics),
        "text/plain" if parts.any(|part| part.starts_with("version=")) => Some(Format::Prometheus),
        _ => None,
    }
}

/// The format that the end of a text tells. What is compressed is inflated once for it, before any
/// sample is stored; only its end is held.
///
/// # Errors
/// 400 and 413 as for [`Received::pieces`]; 400 for an end that is nearly that of OpenMetrics.
fn format_of_end(received: &Received) -> Result<Format, Answer> {
    let mut tail = Vec::new();
    received.pieces(|piece, _| {
        tail.extend_from_slice(&piece[piece.len().saturating_sub(END_BYTES)..]);
        tail.drain(..tail.len().saturating_sub(END_BYTES));
        piece.len()
    })?;
    Format::of_end(&tail).map_err(Answer::bad)
}

/// Takes the samples that `decode` finds in the pieces of a body; `label` keeps the series that are met
/// apart from those of other routes.
fn read(
    context: &Context,
    user: &Arc<User>,
    (route, label): (Route, &[u8]),
    received: &Received,
    mut decode: impl FnMut(&[u8], bool, &mut EngineIntake) -> usize,
) -> (Report, Result<(), Answer>) {
    let way = Way::new(Protocol::Prometheus, route);
    let (report, inflated) = context.work.take(context, way, label, user, |intake| {
        received.pieces(|piece, is_end| decode(piece, is_end, intake))
    });
    context.received(Protocol::Prometheus, *inflated.as_ref().unwrap_or(&0));
    (report, inflated.map(drop))
}

/// Which message `Content-Type` names; version 1 where it names none.
fn version(headers: &HeaderMap) -> Result<Version, Answer> {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let mut parts = text
        .unwrap_or("application/x-protobuf")
        .split(';')
        .map(str::trim);
    let is_protobuf = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-protobuf"));
    let message = parts.find_map(|part| part.strip_prefix("proto="));
    match message.map(|name| name.trim_matches('"')) {
        None | Some("prometheus.WriteRequest") if is_protobuf => Ok(Version::V1),
        Some("io.prometheus.write.v2.Request") if is_protobuf => Ok(Version::V2),
        _ => Err(Answer::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type must be application/x-protobuf, with proto=prometheus.WriteRequest or \
             proto=io.prometheus.write.v2.Request",
        )),
    }
}

/// The answer to what was read to its end; `unit` is what its numbers count.
fn answer(report: &Report, unit: &str) -> Response {
    if let Some(answer) = Answer::failed(report) {
        return answer.into_response();
    }
    if report.refused() == 0 {
        return StatusCode::NO_CONTENT.into_response();
    }
    let told = report.told(TOLD_MAX);
    let told: Vec<_> = told
        .iter()
        .map(|line| format!("{unit} {}: {}", line.number, line.text))
        .collect();
    let (kept, refused) = (report.samples, report.refused());
    let text = format!("{refused} refused, {kept} kept\n{}", told.join("\n"));
    Answer::bad(text).into_response()
}
