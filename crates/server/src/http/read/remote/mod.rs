//! `POST /api/v1/read`: remote read, as a Prometheus server asks it.
//!
//! The request is a `prometheus.ReadRequest`, compressed with snappy. The
//! answer is in the form that the reader accepts first: whole, or in frames of
//! chunks. Series come in the order of their labels; one without samples in
//! the span is left out.

mod sampled;
mod streamed;

use super::asked::{Asked, Unreadable, raw};
use super::envelope::answered;
use super::parameters::Span;
use super::stream;
use super::walk::{Job, Walk};
use crate::http::answer::Answer;
use crate::http::body::Encoding;
use crate::http::context::Context;
use crate::observe::Endpoint;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use latewood_promql::compile_pattern;
use latewood_wire::prometheus::read::{Form, Request};
use std::slice;
use streamed::Frames;

/// Bytes of a request, uncompressed.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// Samples of a series that are read at a time.
const PART_SAMPLES: usize = 16 << 10;

pub(crate) async fn read(
    State(context): State<Context>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let result = answer(&context, &headers, body).await;
    answered(&context, Endpoint::RemoteRead, result)
}

async fn answer(context: &Context, headers: &HeaderMap, body: Body) -> Result<Response, Answer> {
    let asked = Asked::begin(context, Endpoint::RemoteRead, headers, body).await?;
    check(&asked, headers)?;
    let work = move || {
        let message = asked.received.unpacked_within(REQUEST_BYTES_MAX)?;
        let request = Request::read(&message, compile_pattern)
            .map_err(|error| Answer::bad(error.to_string()))?;
        let jobs = jobs(&asked, &request)?;
        // The patterns of the request are not kept while the answer goes out.
        Ok((asked, request.form, request.queries.len(), jobs))
    };
    let (asked, form, queries, jobs) = context.block_in(&context.work.readers, work).await??;
    let walk = Walk::new(jobs, PART_SAMPLES);
    match form {
        Form::StreamedXorChunks => {
            let kind = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
            stream::respond(asked, kind, Frames::new(walk), ()).await
        }
        Form::Samples => {
            let _waiting = asked.waiting();
            let work = move || {
                let message = sampled::message(&asked, walk, queries)?;
                Ok((asked, message))
            };
            let (asked, message) = context.block_in(&context.work.readers, work).await??;
            let head = [
                (header::CONTENT_ENCODING, HeaderValue::from_static("snappy")),
                (header::CONTENT_LENGTH, message.len_bytes().into()),
            ];
            let mut response =
                stream::respond(asked, "application/x-protobuf", message, ()).await?;
            response.headers_mut().extend(head);
            Ok(response)
        }
    }
}

/// Refuses what cannot be such a request by its head.
fn check(asked: &Asked, headers: &HeaderMap) -> Result<(), Answer> {
    let refused = |text: &str| Err(Answer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    let kind = headers
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.as_bytes());
    let is_protobuf = kind.is_none_or(|kind| kind.starts_with(b"application/x-protobuf"));
    if !is_protobuf {
        return refused("Content-Type must be application/x-protobuf: a prometheus.ReadRequest");
    }
    match asked.received.encoding {
        Encoding::Snappy => Ok(()),
        _ => refused("remote read requires Content-Encoding: snappy"),
    }
}

/// What is read of each series of each query.
fn jobs(asked: &Asked, request: &Request) -> Result<Vec<Job>, Answer> {
    let mut jobs = Vec::new();
    for (number, query) in request.queries.iter().enumerate() {
        let span = Span {
            from_ms: query.from_ms.max(0),
            to_ms: query.to_ms,
        };
        let named = asked.find(
            slice::from_ref(&query.matchers),
            Some(span),
            Unreadable::Refuse,
        )?;
        jobs.extend(named.into_iter().map(|named| Job {
            named,
            number,
            query: raw(span),
        }));
    }
    Ok(jobs)
}
