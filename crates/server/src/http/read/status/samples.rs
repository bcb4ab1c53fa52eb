//! `GET /api/v1/status/series/samples`: samples of one series as they are stored, a page at a time,
//! oldest first, with a mark at those that are late and still wait in memory.
//!
//! Tested by `tests/http/status.rs`.

use super::series::named;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::asked::{Asked, raw};
use crate::http::read::envelope::respond_in_thread;
use crate::http::read::parameters::Span;
use crate::labelled::text;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_engine::query::Columns;
use latewood_engine::{RangeQuery, SeriesRef};
use latewood_promql::number::plain;
use serde_json::{Value, json};

/// Samples of a page, unless `limit` says otherwise, and at most.
const SAMPLES: usize = 1_000;
const SAMPLES_MAX: usize = 10_000;
/// Memory of a sample: as values of JSON, and in the answer.
const SAMPLE_BYTES: usize = 512;

pub(crate) async fn samples(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Samples, request, |asked, parameters| {
        parameters.only(&["key", "match[]", "start", "end", "limit"])?;
        let limit = parameters.limit_within(SAMPLES, SAMPLES_MAX)?;
        let everything = Span {
            from_ms: 0,
            to_ms: i64::MAX,
        };
        let span = parameters.span()?.unwrap_or(everything);
        page(asked, &named(asked, parameters)?, span, limit)
    })
    .await
}

fn page(asked: &Asked, series: &SeriesRef, span: Span, limit: usize) -> Result<Value, Answer> {
    asked.hold_bytes(limit * SAMPLE_BYTES)?;
    let db = &asked.shared().db;
    let failed = |error| Answer::of_series(&error, &series.key);
    let query = RangeQuery {
        // One more tells whether there are others.
        count: Some(limit as u64 + 1),
        ..raw(span)
    };
    let mut rows = Columns::default();
    db.prepare(std::slice::from_ref(series), &query);
    let view = {
        let _shared_lock = asked.shared().exec_lock.share_beside_loops();
        db.view(&series.key, &query).map_err(failed)?
    };
    view.run(&query, &mut rows).map_err(failed)?;
    let next = rows.timestamps.get(limit).copied();
    rows.timestamps.truncate(limit);
    let late = match (rows.timestamps.first(), rows.timestamps.last()) {
        (Some(&first), Some(&last)) => db.late_timestamps(&series.key, first, last),
        _ => Ok(Vec::new()),
    };
    let late = late.map_err(failed)?;
    add(&asked.counters().samples, rows.timestamps.len());
    let samples = rows.timestamps.iter().zip(&rows.values);
    let samples = samples.map(|(at, value)| {
        let is_late = late.binary_search(at).is_ok();
        json!([at, plain(*value), is_late])
    });
    Ok(json!({
        "key": text(&series.key),
        "samples": samples.collect::<Value>(),
        "next_start": next.map(|at| format!("{}.{:03}", at / 1000, at % 1000)),
    }))
}
