//! Writes that come to a node which does not own the log: they are passed on to the owner, once.
//!
//! The body is taken in whole, within the limits of all writes (`permits.rs`, `uploads.rs`), by a
//! user whom this node knows; then it is sent to the HTTP address that the owner tells, with the
//! headers that say who the sender is and what the body is. The owner's answer is the answer.
//!
//! Invariants: a request is passed on once, as the header `Latewood-Forwarded` says, whose value is
//! the epoch in which the owner was known. Nothing is sent again: while no connection is made,
//! nothing was written, and the sender is told to try again; from the first byte on, nobody knows
//! whether it was, and the sender is told so, as not all that is written twice is written once.
//!
//! An address that begins with `https://` is asked over TLS; its certificate is checked as that of
//! an object store is: against the authorities of the system, or of `SSL_CERT_FILE`.
//!
//! Tested by `http/roles.rs`.

use super::answer::Answer;
use super::body::{BODY_BYTES_MAX, BODY_TIME_MAX, receive_in};
use super::context::Context;
use super::form::first;
use crate::acl::User;
use crate::state::Redirect;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, retry};
use std::error::Error;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The epoch of the owner that a node passed a request on to.
const FORWARDED: HeaderName = HeaderName::from_static("latewood-forwarded");
/// How long the owner may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Bytes of an owner's answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What the owner must know of a request beside its body.
const SENT: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::USER_AGENT,
    HeaderName::from_static("x-prometheus-remote-write-version"),
];
/// What senders look for in an answer.
const ANSWERED: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("x-latewood-strings-not-stored"),
    HeaderName::from_static("x-prometheus-remote-write-samples-written"),
    HeaderName::from_static("x-prometheus-remote-write-histograms-written"),
    HeaderName::from_static("x-prometheus-remote-write-exemplars-written"),
];

/// Makes a connection for each request: one that was open before may be gone, and nothing is sent
/// twice to find that out.
static CLIENT: LazyLock<Result<Client, String>> = LazyLock::new(|| {
    latewood_tls::install_provider();
    let client = Client::builder()
        .no_proxy()
        .http1_only()
        .redirect(Policy::none())
        .retry(retry::never())
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_MAX)
        .timeout(BODY_TIME_MAX)
        .build();
    client.map_err(|error| reason(&error))
});

/// Serves a write where this node owns the log; passes it on otherwise.
pub(super) async fn guard(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    match context.shared.takes_writes() {
        Ok(()) if is_of_later_epoch(&context, request.headers()) => {
            let text = "this node has lost the log, and will hear of it: send the write again";
            Answer::busy(text).into_response()
        }
        Ok(()) => next.run(request).await,
        Err(to) => {
            let answered = pass_on(&context, &to, request).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        }
    }
}

async fn pass_on(context: &Context, to: &Redirect, request: Request) -> Result<Response, Answer> {
    let (head, body) = request.into_parts();
    if head.headers.contains_key(FORWARDED) {
        let text = format!("another node passed this write on to one that takes none; {to}");
        return Err(Answer::busy(text));
    }
    let owner = match to {
        Redirect::Owner(owner) if !owner.http.is_empty() => &owner.http,
        _ => return Err(Answer::busy(format!("this node takes no writes; {to}"))),
    };
    let user = sender(context, &head)?;
    let permits = &context.work.writers;
    let received = receive_in(permits, &user, &head.headers, body, BODY_BYTES_MAX).await?;
    let scheme = if owner.contains("://") { "" } else { "http://" };
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{scheme}{owner}{path}");
    let client = CLIENT.as_ref();
    let client = client.map_err(|why| Answer::busy(format!("cannot pass the write on: {why}")))?;
    let mut wanted = HeaderMap::new();
    for name in SENT {
        if let Some(value) = head.headers.get(&name) {
            wanted.insert(name, value.clone());
        }
    }
    wanted.insert(FORWARDED, HeaderValue::from(epoch(context)));
    let (bytes, _place) = received.into_bytes();
    let sending = client.post(url).headers(wanted).body(bytes).send();
    let answer = sending.await.map_err(|error| failed(owner, &error))?;
    answered(owner, answer).await
}

/// Who sends, as far as this node knows: the owner sees no certificate.
fn sender(context: &Context, head: &Parts) -> Result<Arc<User>, Answer> {
    // Only version 1 of InfluxDB's writes names a user there.
    let query = head.uri.query().filter(|_| head.uri.path() == "/write");
    let [name, password] = ["u", "p"].map(|name| first(query, name));
    let given = (name.as_deref(), password.as_deref());
    let names_itself = head.headers.contains_key(header::AUTHORIZATION) || name.is_some();
    if context.certified.is_some() && !names_itself {
        return Err(Answer::busy(
            "a user whom a certificate names cannot be passed on: write to the owner of the log",
        ));
    }
    context.user(&head.headers, given)
}

/// The newest epoch that this node knows.
fn epoch(context: &Context) -> u64 {
    let node = context.shared.node.get();
    node.and_then(|node| node.standing().epoch).unwrap_or(0)
}

/// Whether a node passed a request on to an owner of an epoch that this one does not know yet.
fn is_of_later_epoch(context: &Context, headers: &HeaderMap) -> bool {
    let text = headers.get(FORWARDED).and_then(|value| value.to_str().ok());
    let told: Option<u64> = text.and_then(|text| text.parse().ok());
    told.is_some_and(|told| told > epoch(context))
}

/// What became of a request to `owner` that has no answer.
fn failed(owner: &str, error: &reqwest::Error) -> Answer {
    let why = reason(error);
    Answer::busy(if error.is_connect() {
        format!("cannot reach {owner}, which owns the log: {why}; nothing was written")
    } else {
        format!("unknown: {owner} was sent the write and did not answer whether it took it: {why}")
    })
}

/// The answer of `owner` as this node's.
async fn answered(owner: &str, mut answer: reqwest::Response) -> Result<Response, Answer> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX {
        // Its status tells what became of the write.
        let Ok(Some(piece)) = answer.chunk().await else {
            break;
        };
        body.extend_from_slice(&piece);
    }
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = answer.status();
    for name in ANSWERED {
        if let Some(value) = answer.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    tracing::debug!(owner, status = %answer.status(), "passed a write on");
    Ok(response)
}

/// The error at the bottom, as those above only name the request.
fn reason(error: &reqwest::Error) -> String {
    let mut bottom: &(dyn Error + 'static) = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    latewood_tls::with_hint(bottom)
}
