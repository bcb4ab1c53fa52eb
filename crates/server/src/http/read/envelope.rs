//! Values and refusals in the envelope of Prometheus' HTTP API.

use super::asked::Asked;
use super::parameters::Parameters;
use crate::http::answer::{Answer, json_text};
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Answers a request with a value that is at hand: `{"data":...,"status":"success"}`.
pub(super) async fn respond(
    context: &Context,
    endpoint: Endpoint,
    request: Request,
    data: impl FnOnce(&Asked, &Parameters) -> Result<Value, Answer>,
) -> Response {
    let asked = Asked::with_parameters(context, endpoint, request).await;
    let result = asked.and_then(|(asked, parameters)| data(&asked, &parameters));
    answered(context, endpoint, result.map(success))
}

/// The same with a value whose making may block.
pub(super) async fn respond_in_thread(
    context: &Context,
    endpoint: Endpoint,
    request: Request,
    data: impl FnOnce(&Asked, &Parameters) -> Result<Value, Answer> + Send + 'static,
) -> Response {
    let result = async {
        let asked = Asked::with_parameters(context, endpoint, request).await;
        let (asked, parameters) = asked?;
        // As text, too: it may be long.
        let work = move || data(&asked, &parameters).map(success);
        context.block_in(&context.work.readers, work).await?
    };
    let result: Result<Response, Answer> = result.await;
    answered(context, endpoint, result)
}

fn success(data: Value) -> Response {
    json_text(&json!({"status": "success", "data": data})).into_response()
}

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
