//! Values and refusals in the envelope of Prometheus' HTTP API.

use super::asked::{Asked, side};
use super::parameters::Parameters;
use super::stream::{self, JSON, PIECE_BYTES, Pieces};
use crate::http::answer::{Answer, json_text};
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

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

/// The same with a value whose making may block, or that may be long.
pub(super) async fn respond_in_thread<T: Into<Told>>(
    context: &Context,
    endpoint: Endpoint,
    request: Request,
    data: impl FnOnce(&Asked, &Parameters) -> Result<T, Answer> + Send + 'static,
) -> Response {
    let result = async {
        let asked = Asked::with_parameters(context, endpoint, request).await;
        let (asked, parameters) = asked?;
        let _waiting = asked.waiting();
        let work = move || {
            let data = data(&asked, &parameters)?;
            drop(parameters);
            let (_, text) = enveloped(data.into());
            // What it was made of is gone.
            asked.hold_only(text.len())?;
            Ok::<_, Answer>((asked, Text::from(text)))
        };
        let (asked, text) = context.block_in(side(context, endpoint), work).await??;
        stream::respond(asked, JSON, text, ()).await
    };
    answered(context, endpoint, result.await)
}

/// A text that is sent in pieces.
pub(super) struct Text {
    text: String,
    sent: usize,
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { text, sent: 0 }
    }
}

impl Pieces for Text {
    fn more(&mut self, _: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let end = self.text.len().min(self.sent + PIECE_BYTES);
        out.extend_from_slice(&self.text.as_bytes()[self.sent..end]);
        self.sent = end;
        Ok(end < self.text.len())
    }
}

pub(super) fn success(data: Value) -> Response {
    enveloped(data.into()).into_response()
}

/// A value, and what its reader must know about it.
pub(super) struct Told {
    pub(super) data: Value,
    pub(super) warnings: Vec<String>,
}

impl From<Value> for Told {
    fn from(data: Value) -> Self {
        let warnings = Vec::new();
        Self { data, warnings }
    }
}

fn enveloped(told: Told) -> ([(HeaderName, &'static str); 1], String) {
    let mut envelope = Map::new();
    // Moved: a copy of a long tree takes as much again.
    envelope.insert("data".to_owned(), told.data);
    envelope.insert("status".to_owned(), "success".into());
    if !told.warnings.is_empty() {
        envelope.insert("warnings".to_owned(), told.warnings.into());
    }
    json_text(&envelope)
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
