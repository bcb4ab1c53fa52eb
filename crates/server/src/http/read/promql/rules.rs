//! Rows of recording rules that a query may read while late samples wait to be worked into them:
//! it waits for them where it is asked to, else it is warned of them.
//!
//! Tested by `tests/http/corrections.rs`.

use super::wanted::Wanted;
use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::rules::rfc3339_ms;
use axum::http::StatusCode;
use latewood_promql::engine::Query;
use latewood_promql::reads::{Reads, Window};
use latewood_promql::source::Matcher;
use std::time::Instant;

/// Rules of which a query is warned; of more their number.
const TOLD_MAX: usize = 10;

/// What a query is warned of, before it reads. One that asks for fresh rows waits for them. May
/// block.
///
/// # Errors
/// Where rows are not fresh in time, or cannot get so.
pub(super) fn look(
    asked: &Asked,
    wanted: &Wanted,
    query: &Query,
    deadline: Instant,
) -> Result<Vec<String>, Answer> {
    let (rules, shared) = (&asked.context.rules, asked.shared());
    if !rules.is_on() {
        return Ok(Vec::new());
    }
    // A query that cannot be prepared says so when it runs.
    let reads = Reads::of(query.expr(), &wanted.settings).unwrap_or_default();
    let span = span(&reads, wanted);
    let selectors = reads.reads.into_iter().map(|read| read.matchers);
    let selectors: Vec<Vec<Matcher>> = selectors.collect();
    if wanted.is_fresh {
        if !shared.is_owner() {
            let why = "this node does not own the log: its owner answers fresh=1";
            return Err(Answer::busy(why));
        }
        let waited = rules.wait_fresh(shared, &selectors, deadline);
        return waited.map(|()| Vec::new()).map_err(|why| {
            // It may name series that the user may not read.
            let why = if asked.may_read_all() {
                why
            } else {
                "rows of rules are not fresh yet".to_owned()
            };
            let mut answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE, why);
            answer.error_type = Some("timeout");
            answer
        });
    }
    let stale = rules.stale_rules(shared, &selectors).into_iter();
    let stale: Vec<_> = stale
        .filter(|(_, rows)| rows.is_none_or(|(from, to)| from <= span.1 && span.0 <= to))
        .collect();
    if !stale.is_empty() && !asked.may_read_all() {
        return Ok(vec![
            "rows of rules wait for late samples to be worked in".to_owned(),
        ]);
    }
    let warnings = stale.iter().take(TOLD_MAX).map(|(rule, rows)| match rows {
        Some((from, to)) => {
            let (from, to) = (rfc3339_ms(*from), rfc3339_ms(*to));
            format!("{rule}: rows from {from} to {to} wait for late samples to be worked in")
        }
        None => format!("{rule}: rows wait for late samples to be worked in"),
    });
    let mut warnings: Vec<String> = warnings.collect();
    if let Some(more) = stale.len().checked_sub(TOLD_MAX + 1) {
        let more = more + 1;
        warnings.push(format!("rows of {more} more rules wait for late samples"));
    }
    Ok(warnings)
}

/// The times that a query may read.
fn span(reads: &Reads, wanted: &Wanted) -> (i64, i64) {
    let times = &wanted.times;
    let spans = reads.reads.iter().map(|read| match read.window {
        Window::Moving {
            back_max_ms,
            back_min_ms,
        } => (
            times.start_ms.saturating_sub(back_max_ms),
            times.end_ms.saturating_sub(back_min_ms),
        ),
        Window::Fixed { after_ms, to_ms } => (after_ms, to_ms),
    });
    let all = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    all.unwrap_or((i64::MAX, i64::MIN))
}
