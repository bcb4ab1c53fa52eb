//! `GET /api/v1/status/tsdb`: how many series there are by metric, label and pair.
//!
//! With `match[]` of the series that match, with `focusLabel` also by the values of that label,
//! as in VictoriaMetrics, with `idleSince` also those without samples from that time on. Only
//! what the user may read is counted, `__key__` is not. Linear in the labels of the series.
//! Without `match[]` it holds each pair once, not the labels of each series; what it holds
//! counts as memory of requests while it grows.
//!
//! Tested by [`counts`], `tests/http/metadata.rs` and `tests/http/promql.rs`.

mod counts;

use super::asked::{Asked, Unreadable};
use super::envelope::{Text, answered};
use super::parameters::Parameters;
use super::stream;
use crate::http::answer::{Answer, json_text};
use crate::http::context::Context;
use crate::labelled::{Named, shown};
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use counts::{Counts, Lists};
use latewood_engine::{Db, Error, Extent, SeriesRef};
use latewood_promql::labels::Labels;
use serde_json::{Value, json};

/// Entries of each list, unless `limit` or `topN` says otherwise.
const TOP: usize = 10;
/// The most that may be asked for.
const TOP_MAX: usize = 10_000;
/// Series that are looked at together.
const PART_SERIES: usize = 1024;
/// Memory that is taken at a time.
const HELD_BYTES: usize = 1 << 20;
/// Memory of a shown entry for each byte of its name: as a value, as JSON, and in the answer.
const SHOWN_COPIES: usize = 4;

pub(crate) async fn cardinality(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Labels, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Labels, request).await?;
    let _waiting = asked.waiting();
    let work = move || {
        let data = data(&asked, &parameters)?;
        let text = json_text(&json!({"status": "success", "data": data})).1;
        drop(parameters);
        asked.hold_only(text.len())?;
        Ok((asked, Text::from(text)))
    };
    let (asked, text) = context.block_in(&context.work.readers, work).await??;
    stream::respond(asked, stream::JSON, text, ()).await
}

fn data(asked: &Asked, parameters: &Parameters) -> Result<Value, Answer> {
    let top = top(parameters)?;
    let selectors = parameters.selectors()?;
    let idle_since_ms = parameters.time("idleSince")?;
    let db = &asked.shared().db;
    let mut held_bytes = 0;
    // Whether it may hold `bytes` and goes on.
    let check = |bytes: usize| {
        while held_bytes < bytes {
            asked.hold_bytes(HELD_BYTES)?;
            held_bytes += HELD_BYTES;
        }
        asked.check_wanted()
    };
    let counts = if selectors.is_empty() {
        // No matcher lets all series pass.
        let found = asked.select(&[Vec::new()], None, Unreadable::PassOver)?;
        asked.hold_bytes(found.len() * size_of::<SeriesRef>())?;
        let looked_at = looked_at(
            db,
            found,
            |series| series,
            |series| {
                let labels = db.labels(series)?;
                Ok(labels.map(|labels| shown(&labels, &series.key)))
            },
        );
        Counts::of(looked_at, idle_since_ms, check)?
    } else {
        let named = asked.find(&selectors, None, Unreadable::PassOver)?;
        let labels = |one: &Named| Ok(Some(one.labels.clone()));
        let looked_at = looked_at(db, named, |one| &one.series, labels);
        Counts::of(looked_at, idle_since_ms, check)?
    };
    let lists = Lists::of(&counts, parameters.first("focusLabel"), top);
    asked.hold_bytes(lists.len_bytes() * SHOWN_COPIES)?;
    Ok(lists.shown(&counts))
}

/// How the series of `found` look, and how far they reach; those that are gone are left out.
fn looked_at<T>(
    db: &Db,
    mut found: Vec<T>,
    series: fn(&T) -> &SeriesRef,
    labels: impl Fn(&T) -> Result<Option<Labels>, Error>,
) -> impl Iterator<Item = Result<(Labels, Extent), Answer>> {
    found.sort_unstable_by_key(|one| series(one).id);
    let mut found = found.into_iter();
    let parts = std::iter::from_fn(move || {
        let part: Vec<T> = found.by_ref().take(PART_SERIES).collect();
        (!part.is_empty()).then_some(part)
    });
    parts.flat_map(move |part| {
        let refs: Vec<SeriesRef> = part.iter().map(|one| series(one).clone()).collect();
        let looked_at = part.iter().zip(db.extents(&refs));
        let looked_at = looked_at.filter_map(|(one, extent)| {
            let look = extent.and_then(|extent| Ok(labels(one)?.zip(extent)));
            let look = look.map_err(|error| Answer::of_series(&error, &series(one).key));
            look.transpose()
        });
        looked_at.collect::<Vec<_>>()
    })
}

/// How long the lists may be.
fn top(parameters: &Parameters) -> Result<usize, Answer> {
    let given = match parameters.first("limit") {
        "" => parameters.first("topN"),
        limit => limit,
    };
    match given.parse::<usize>() {
        _ if given.is_empty() => Ok(TOP),
        Ok(top) if (1..=TOP_MAX).contains(&top) => Ok(top),
        Ok(top) if top > TOP_MAX => Err(Answer::bad(format!("limit must not exceed {TOP_MAX}"))),
        _ => Err(Answer::bad("limit must be a positive number")),
    }
}
