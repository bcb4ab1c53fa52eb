//! `POST /v1/metrics`, and `POST /api/v1/otlp/v1/metrics` as in Prometheus: OTLP over HTTP, in
//! protobuf or JSON.
//!
//! What is refused of a request that was read is a partial success, as the
//! protocol wants it: status 200, the number of data points and why. Where only what describes
//! a resource is refused, the number is 0, which makes it a warning. Errors
//! carry a `google.rpc.Status`; 503 means that sending it again will do.

use super::answer::Answer;
use super::body::{Received, decoded, receive};
use super::context::{Context, Sending};
use crate::acl::User;
use crate::intake::{Report, Way};
use crate::observe::{Protocol, Route};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use latewood_wire::otlp::{self, Decoder, Encoding};
use std::sync::Arc;

/// Bytes of a body that cannot take much memory, whatever it holds.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// Codes of gRPC.
const INVALID_ARGUMENT: i32 = 3;
const INTERNAL: i32 = 13;
const UNAVAILABLE: i32 = 14;
const UNAUTHENTICATED: i32 = 16;

/// The handler of both paths.
pub(super) async fn metrics(Sending(context): Sending, headers: HeaderMap, body: Body) -> Response {
    let taken = match encoding(&headers) {
        Some(encoding) => take(context, encoding, &headers, body).await,
        None => {
            let text = "Content-Type must be application/x-protobuf or application/json";
            Err(Answer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
        }
    };
    // Without a known type, JSON can be read by people at least.
    let encoding = encoding(&headers).unwrap_or(Encoding::Json);
    match taken {
        Ok(body) => respond(StatusCode::OK, encoding, body),
        Err(answer) => {
            let code = match answer.status {
                StatusCode::UNAUTHORIZED => UNAUTHENTICATED,
                StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
                status if status.is_server_error() => INTERNAL,
                _ => INVALID_ARGUMENT,
            };
            let status = otlp::status(encoding, code, &answer.text);
            // The headers of the common answer, Retry-After among them.
            let mut response = answer.into_response();
            let headers = response.headers_mut();
            headers.remove(header::CONTENT_LENGTH);
            headers.insert(header::CONTENT_TYPE, kind(encoding));
            *response.body_mut() = Body::from(status);
            response
        }
    }
}

async fn take(
    context: Context,
    encoding: Encoding,
    headers: &HeaderMap,
    body: Body,
) -> Result<Vec<u8>, Answer> {
    let (user, received) = receive(&context, headers, (None, None), body).await?;
    let worker = context.clone();
    context
        .block_in(&context.work.writers, move || {
            decode(&worker, &user, encoding, &received)
        })
        .await?
}

fn decode(
    context: &Context,
    user: &Arc<User>,
    encoding: Encoding,
    received: &Received,
) -> Result<Vec<u8>, Answer> {
    let body = received.unpacked()?;
    context.received(Protocol::Otlp, body.len() as u64);
    // The usual small ones may take what they take: there are few threads.
    let _memory = if body.len() > SMALL_BYTES_MAX {
        let bytes = otlp::weight(encoding, &body).map_err(Answer::bad)?;
        Some(decoded(context, bytes)?)
    } else {
        None
    };
    let request = otlp::read(encoding, &body).map_err(Answer::bad)?;
    let mut decoder = Decoder::new(&context.shared.settings.senders.otlp);
    let way = Way::new(Protocol::Otlp, Route::Otlp);
    let (report, ()) = context.work.take(context, way, b"", user, |intake| {
        decoder.decode(&request, intake);
    });
    match Answer::failed(&report) {
        Some(answer) => Err(answer),
        None => {
            let why = why(&report, decoder.warning());
            Ok(otlp::answer(encoding, report.refused_lines(), &why))
        }
    }
}

/// The first reason, and a warning about what was empty.
fn why(report: &Report, warning: Option<String>) -> String {
    // Of a data point, if any was refused.
    let told = report.told(2);
    let first = told.iter().find(|line| line.number > 0).or(told.first());
    let first = first.map(|line| line.text.clone());
    first
        .into_iter()
        .chain(warning)
        .collect::<Vec<_>>()
        .join("; ")
}

fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next()?.trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/x-protobuf" => Some(Encoding::Protobuf),
        "application/json" => Some(Encoding::Json),
        _ => None,
    }
}

fn kind(encoding: Encoding) -> HeaderValue {
    HeaderValue::from_static(match encoding {
        Encoding::Protobuf => "application/x-protobuf",
        Encoding::Json => "application/json",
    })
}

fn respond(status: StatusCode, encoding: Encoding, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, kind(encoding))], body).into_response()
}
