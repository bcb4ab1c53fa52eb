//! `POST /api/v2/delete` of InfluxDB 2: the samples from `start` to `stop` of the series of a bucket that
//! match a predicate ([`Deletion`]).
//!
//! Series are found by the labels that `/api/v2/write` gives them: the bucket is a label only with
//! `--influx-db-label`. All else is as in `delete_series`: permissions, log, and what an error in between
//! leaves. Where the metrics of a measurement are not known to be of it, nothing is deleted, and
//! likewise where neither bucket nor predicate select anything.
//!
//! Tested by `tests/http/influx_delete.rs`.

use super::asked::{Asked, Unreadable};
use super::delete_series::delete_found;
use super::parameters::Span;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::form::first;
use crate::labelled::Named;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use latewood_wire::influx::Deletion;
use latewood_wire::selector::{Matcher, SELECTOR_BYTES_MAX, Test};
use latewood_wire::series_name::METRIC;

/// Bytes of a body: the longest predicate with every byte escaped, and two times.
const BODY_BYTES_MAX: usize = 8 * SELECTOR_BYTES_MAX;

pub(crate) async fn influx_delete(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    result.unwrap_or_else(|answer| {
        let counters = context.shared.protocols.reads.of(Endpoint::DeleteSeries);
        add(&counters.failed, 1);
        answer.into_response()
    })
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (head, body) = request.into_parts();
    let asked = Asked::begin(context, Endpoint::DeleteSeries, &head.headers, body).await?;
    let bucket = first(head.uri.query(), "bucket").filter(|bucket| !bucket.is_empty());
    let bucket =
        bucket.ok_or_else(|| Answer::bad("missing parameter bucket (bucketID is not known)"))?;
    let body = asked.received.unpacked_within(BODY_BYTES_MAX)?;
    let bad = |error| Answer::bad(format!("{error}"));
    let deletion = Deletion::parse(&body).map_err(bad)?;
    let mut matchers = deletion.matchers().map_err(bad)?;
    if let Some(label) = &context.shared.settings.senders.influx_db_label {
        let test = Test::Equal(bucket.as_bytes().into());
        matchers.push(Matcher::new(label.as_bytes(), test));
    }
    if matchers.iter().all(|matcher| matcher.passes(b"")) {
        let text = "the predicate selects nothing, and without --influx-db-label the series of a \
                    bucket are not known; name a measurement or a tag";
        return Err(Answer::bad(text));
    }
    drop(body);
    context.ready(true)?;
    let work = move || {
        let span = Span {
            from_ms: deletion.from_ms,
            to_ms: deletion.to_ms,
        };
        if span.to_ms < span.from_ms {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let named = asked.find(&[matchers], None, Unreadable::Refuse)?;
        let named = only_clear(&asked, &deletion, named, span)?;
        delete_found(&asked, named, Some(span))
    };
    context.block_in(&context.work.writers, work).await?
}

/// Without those that could be of another measurement and have no sample in the span.
///
/// # Errors
/// 400 where one has.
fn only_clear(
    asked: &Asked,
    deletion: &Deletion,
    named: Vec<Named>,
    span: Span,
) -> Result<Vec<Named>, Answer> {
    let is_unclear = |one: &Named| deletion.is_unclear(one.labels.get_bytes(METRIC));
    let (mut unclear, clear): (Vec<_>, _) = named.into_iter().partition(is_unclear);
    asked.retain_in(&mut unclear, span)?;
    let Some(one) = unclear.first() else {
        return Ok(clear);
    };
    let metric = String::from_utf8_lossy(one.labels.get_bytes(METRIC));
    Err(Answer::bad(format!(
        "the metric '{metric}' may be of another measurement: measurement and field are joined by '_'; \
         nothing was deleted: add AND _field=\"...\" to the predicate for each field, or delete by \
         /api/v1/admin/tsdb/delete_series"
    )))
}
