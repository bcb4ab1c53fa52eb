//! Refusals in the envelope of Prometheus' HTTP API.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// What a request came to, as its answer; a refusal is counted and put into
/// `{"status":"error","errorType":"bad_data","error":"..."}`.
pub(super) fn answered(
    context: &Context,
    endpoint: Endpoint,
    result: Result<Response, Answer>,
) -> Response {
    let answer = match result {
        Ok(response) => return response,
        Err(answer) => answer,
    };
    add(&context.shared.protocols.reads.of(endpoint).failed, 1);
    let body = json!({
        "status": "error", "errorType": answer.error_type.unwrap_or(error_type(answer.status)),
        "error": answer.text,
    });
    // The headers stay: what to try again and when, and who to be.
    let mut response = answer.into_response();
    *response.body_mut() = Body::from(format!("{body}\n"));
    response
}

/// The words of Prometheus, and two that it does not have.
fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        StatusCode::REQUEST_TIMEOUT => "timeout",
        status if status.is_client_error() => "bad_data",
        _ => "internal",
    }
}
