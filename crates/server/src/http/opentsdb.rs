//! `POST /api/put` of OpenTSDB: a point or an array of points in JSON.
//!
//! Good points are kept where others are refused. Every request is answered
//! once its points are in the log, so that `sync` changes nothing.

use super::answer::{Answer, json_text};
use super::body::{Received, decoded, receive};
use super::context::{Context, Sending};
use super::form::first;
use crate::acl::User;
use crate::intake::{Report, Way};
use crate::observe::{Protocol, Route};
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use latewood_wire::opentsdb::{Writer, json};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What the answer to hold; by their presence, with or without a value.
pub(super) struct Parameters {
    summary: Option<String>,
    details: Option<String>,
}

/// `POST /api/put`.
pub(super) async fn put(
    Sending(context): Sending,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Answer> {
    let first = |name| first(query.as_deref(), name);
    let parameters = Parameters {
        summary: first("summary"),
        details: first("details"),
    };
    let (user, received) = receive(&context, &headers, (None, None), body).await?;
    let worker = context.clone();
    context
        .block_in(&context.work.writers, move || {
            decode(&worker, &user, &parameters, &received)
        })
        .await?
}

fn decode(
    context: &Context,
    user: &Arc<User>,
    parameters: &Parameters,
    received: &Received,
) -> Result<Response, Answer> {
    let body = received.unpacked()?;
    context.received(Protocol::OpenTsdb, body.len() as u64);
    let _memory = decoded(context, json::weight(&body))?;
    let points = match json::points(&body) {
        Ok(points) if points.is_empty() => {
            return Ok(refused("No datapoints found in content", ""));
        }
        Ok(points) => points,
        Err(error) => {
            return Ok(refused(
                "Unable to parse the given JSON",
                &error.to_string(),
            ));
        }
    };
    let way = Way::new(Protocol::OpenTsdb, Route::OpenTsdbHttp);
    let (report, ()) = context.work.take(context, way, b"", user, |intake| {
        let mut writer = Writer::new();
        for (number, point) in (1..).zip(&points) {
            json::put(&mut writer, point, number, intake);
        }
    });
    if let Some(answer) = Answer::failed(&report) {
        return Err(answer);
    }
    let wants_details = parameters.details.is_some();
    if !wants_details && parameters.summary.is_none() {
        return Ok(match report.refused() {
            0 => StatusCode::NO_CONTENT.into_response(),
            _ => refused(
                "One or more data points had errors",
                "Please append \"details\" to the put request",
            ),
        });
    }
    let summary = Summary {
        errors: wants_details.then(|| details(&report, &points)),
        failed: report.refused(),
        success: report.samples,
    };
    let status = match report.refused() {
        0 => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    Ok((status, json_text(&summary)).into_response())
}

/// What the answer says of points.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<Refusal<'a>>>,
    failed: u64,
    success: u64,
}

/// A refused point as it was sent, which may be of any size, and why.
#[derive(Serialize)]
struct Refusal<'a> {
    datapoint: &'a RawValue,
    error: &'a str,
}

/// The refused points; the first of very many.
fn details<'a>(report: &'a Report, points: &[&'a RawValue]) -> Vec<Refusal<'a>> {
    let told = report.lines.iter().filter_map(|line| {
        let datapoint = *points.get((line.number as usize).checked_sub(1)?)?;
        let error = &line.text;
        Some(Refusal { datapoint, error })
    });
    told.collect()
}

/// 400 as OpenTSDB words it.
fn refused(message: &str, details: &str) -> Response {
    let mut error = json!({"code": 400, "message": message});
    if !details.is_empty() {
        error["details"] = details.into();
    }
    (StatusCode::BAD_REQUEST, json_text(&json!({"error": error}))).into_response()
}
