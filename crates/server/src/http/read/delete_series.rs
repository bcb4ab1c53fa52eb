//! `POST|PUT /api/v1/admin/tsdb/delete_series`: the samples from `start` to `end` of every series that
//! matches; without both times the series themselves. `dry_run=true` counts, and deletes nothing.
//!
//! Parameters and the empty answer 204 are those of Prometheus. The effect is not: it is there at
//! once, exact to the millisecond, and logged as TS.DEL and DEL are. Whoever asks must be allowed to
//! run these on every series that matches, and none may belong to a rule file: else nothing is
//! deleted. Series are deleted one after the other, each at a moment of its own; an error in between
//! says how many are done. The client's leaving does not end it.
//!
//! Tested by `tests/http/delete_series.rs`.

use super::asked::{Asked, Unreadable, raw};
use super::envelope::{answered, success};
use super::parameters::{Parameters, Span};
use super::walk::{Job, Next, Walk};
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::intake::{InPause, enter, removal};
use crate::labelled::Named;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use latewood_engine::{Durability, Position, shown_key};
use serde_json::json;

/// Rows of a series that are counted at a time.
const PART_ROWS: usize = 10_000;

pub(crate) async fn delete_series(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::DeleteSeries, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let endpoint = Endpoint::DeleteSeries;
    let (asked, parameters) = Asked::with_parameters(context, endpoint, request).await?;
    parameters.only(&["match[]", "start", "end", "dry_run"])?;
    let (span, is_dry) = (parameters.span()?, is_dry(&parameters)?);
    if span.is_some_and(|span| span.to_ms < span.from_ms) {
        return Err(Answer::bad("end is before start"));
    }
    if !is_dry {
        context.ready(true)?;
    }
    let work = move || {
        let selectors = parameters.selectors_needed()?;
        let named = asked.find(&selectors, None, Unreadable::Refuse)?;
        if is_dry {
            check(&asked, &named, span)?;
            return count(&asked, named, span);
        }
        delete_found(&asked, named, span)
    };
    context.block_in(&context.work.writers, work).await?
}

fn is_dry(parameters: &Parameters) -> Result<bool, Answer> {
    match parameters.first("dry_run") {
        "" | "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        other => {
            let text = format!("expected true or false, got {other:?}");
            Err(Answer::parameter("dry_run", text))
        }
    }
}

/// The command that does the same to one series.
fn command(span: Option<Span>) -> &'static str {
    match span {
        Some(_) => "ts.del",
        None => "del",
    }
}

/// Deletes all of these, or nothing where one may not be: 204.
pub(super) fn delete_found(
    asked: &Asked,
    mut named: Vec<Named>,
    span: Option<Span>,
) -> Result<Response, Answer> {
    check(asked, &named, span)?;
    // What rests in files is read by the page.
    named.sort_unstable_by_key(|one| one.series.id);
    delete(asked, &named, span)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Refuses to begin what could not be ended.
fn check(asked: &Asked, named: &[Named], span: Option<Span>) -> Result<(), Answer> {
    asked.demand(command(span))?;
    for Named { series, .. } in named {
        asked.demand_change(command(span), &series.key)?;
    }
    let keys = named.iter().map(|named| &*named.series.key);
    removal::owned(asked.shared(), keys).map_or(Ok(()), |text| Err(Answer::bad(text)))
}

/// Deletes, and waits for the disk where the server promises that.
fn delete(asked: &Asked, named: &[Named], span: Option<Span>) -> Result<(), Answer> {
    let (shared, mut written) = (asked.shared(), Position::default());
    let deleted = delete_each(asked, named, span, &mut written);
    if shared.settings.durability == Durability::Sync && written != Position::default() {
        let synced = shared.db.sync_to(written);
        synced.map_err(|error| {
            let mut answer = Answer::engine(&error);
            if let Err(before) = &deleted {
                answer.text = format!("{}; not on disk: {}", before.text, answer.text);
            }
            answer
        })?;
    }
    deleted?;
    let (series, command) = (named.len(), command(span));
    tracing::info!(series, command, "series were deleted by a selector");
    Ok(())
}

/// One after the other; `written` is how far, also where it ends early.
fn delete_each(
    asked: &Asked,
    named: &[Named],
    span: Option<Span>,
    written: &mut Position,
) -> Result<(), Answer> {
    let shared = asked.shared();
    let times = span.map(|span| (span.from_ms, span.to_ms));
    for (done, Named { series, .. }) in named.iter().enumerate() {
        let behind = |mut answer: Answer| {
            let total = named.len();
            let key = shown_key(&series.key);
            answer.text += &format!("; of {total} series {done} are done, '{key}' is not");
            answer
        };
        let _pass = enter(shared, InPause::Refuse)
            .map_err(|failure| behind(Answer::busy(failure.to_string())))?;
        let deleted = removal::delete(shared, &series.key, times)
            .map_err(|error| behind(Answer::of_series(&error, &series.key)))?;
        *written = deleted.1.max(*written);
    }
    Ok(())
}

/// What would be deleted.
fn count(asked: &Asked, named: Vec<Named>, span: Option<Span>) -> Result<Response, Answer> {
    let span = span.unwrap_or(Span {
        from_ms: 0,
        to_ms: i64::MAX,
    });
    let all = named.len();
    let jobs = named.into_iter().map(|named| Job {
        named,
        number: 0,
        query: raw(span),
    });
    let mut walk = Walk::new(jobs.collect(), PART_ROWS);
    let (mut series, mut samples) = (0u64, 0u64);
    loop {
        asked.check_wanted()?;
        match walk.next(asked)? {
            Next::Part(part) => {
                series += u64::from(part.is_first);
                samples += part.timestamps.len() as u64;
            }
            Next::Nothing => {}
            Next::End => break,
        }
    }
    Ok(success(json!({
        "series": all,
        "seriesWithSamples": series,
        "samples": samples,
    })))
}
