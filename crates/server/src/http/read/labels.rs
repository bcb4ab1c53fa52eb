//! `GET|POST /api/v1/labels` and `GET /api/v1/label/NAME/values`: which labels
//! there are, and which values one of them has.
//!
//! Without selectors and a span, the index answers by itself; with a span, series are read until all
//! that it tells is seen. Without selectors `__key__`, which depends on which series look the same, is
//! left out.

use super::asked::{Asked, Unreadable};
use super::envelope::answered;
use super::list::{List, put_text};
use super::parameters::{Parameters, Span};
use super::stream;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::labelled::{self, Named, PART_SERIES};
use crate::observe::Endpoint;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use latewood_engine::{Cancel, Error, ErrorKind};
use latewood_model::{Matcher, Test};
use latewood_wire::series_name::METRIC;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The handler of names.
pub(crate) async fn labels(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, None, request).await;
    answered(&context, Endpoint::Labels, result)
}

/// The handler of values.
pub(crate) async fn label_values(
    State(context): State<Context>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let result = match name {
        Ok(Path(name)) => {
            let name = unescape(&name).unwrap_or(name);
            if name.is_empty() {
                return nameless_values(State(context)).await;
            }
            answer(&context, Some(name), request).await
        }
        Err(_) => Err(Answer::bad("the label name is not UTF-8")),
    };
    answered(&context, Endpoint::LabelValues, result)
}

/// The handler of values of a label without a name.
pub(crate) async fn nameless_values(State(context): State<Context>) -> Response {
    let refused = Err(Answer::bad("invalid label name: \"\""));
    answered(&context, Endpoint::LabelValues, refused)
}

async fn answer(
    context: &Context,
    label: Option<String>,
    request: Request,
) -> Result<Response, Answer> {
    let endpoint = match label {
        Some(_) => Endpoint::LabelValues,
        None => Endpoint::Labels,
    };
    let (asked, parameters) = Asked::with_parameters(context, endpoint, request).await?;
    let limit = parameters.limit()?;
    let work = move || {
        let texts = texts(&asked, &parameters, label.as_deref())?;
        Ok((asked, texts))
    };
    let (asked, texts) = context.block_in(&context.work.readers, work).await??;
    let list = List::new(texts, limit, |text: &String, out| put_text(text, out));
    stream::respond(asked, stream::JSON, list, ()).await
}

/// Names, or the values of `label`, sorted, each once.
fn texts(
    asked: &Asked,
    parameters: &Parameters,
    label: Option<&str>,
) -> Result<Vec<String>, Answer> {
    let (mut selectors, span) = (parameters.selectors()?, parameters.span()?);
    let is_key = label == Some(labelled::KEY) && span.is_some();
    if selectors.is_empty() && !asked.is_restricted() && !is_key {
        match (of_all(asked, label, span), span) {
            (Ok(all), None) => return Ok(all.into_iter().collect()),
            (Ok(all), Some(span)) => {
                let found = seen_in(asked, label, span, &all)?;
                return Ok(found.into_iter().collect());
            }
            // Those of a span can be fewer.
            (Err(error), Some(_)) if error.kind() == ErrorKind::Limit => {}
            (Err(error), _) => return Err(Answer::engine(&error)),
        }
    }
    let is_all = selectors.is_empty();
    if is_all {
        // No matcher lets all series pass.
        selectors.push(Vec::new());
    }
    let mut named = asked.find(&selectors, span, Unreadable::PassOver)?;
    // What rests in files is read by the page.
    named.sort_unstable_by_key(|one| one.series.id);
    let mut found = BTreeSet::new();
    let mut named = named.into_iter().peekable();
    while named.peek().is_some() {
        note_fresh(asked, label, span, named.by_ref(), &mut found)?;
    }
    if is_all && label.is_none() {
        found.remove(labelled::KEY);
    }
    Ok(found.into_iter().collect())
}

/// Those of `all` that a series with a sample in `span` has. Reads no more series than show that.
fn seen_in(
    asked: &Asked,
    label: Option<&str>,
    span: Span,
    all: &BTreeSet<String>,
) -> Result<BTreeSet<String>, Answer> {
    let db = &asked.shared().db;
    let (mut found, mut failed) = (BTreeSet::new(), Ok(()));
    let mut take = |some| {
        let named = labelled::named(db, some, false, &mut |_| ControlFlow::Continue(()))?;
        let mut named = named.into_iter().peekable();
        while failed.is_ok() && named.peek().is_some() {
            failed = note_fresh(asked, label, Some(span), named.by_ref(), &mut found);
        }
        if label.is_none() && !all.contains(labelled::KEY) {
            // Only all series together tell which look the same.
            found.remove(labelled::KEY);
        }
        Ok(if failed.is_err() || all.is_subset(&found) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    };
    db.select_set(
        &[],
        Some((span.from_ms, span.to_ms)),
        Some(asked.unwanted()),
    )
    .and_then(|set| db.each_of(&set, Some(asked.unwanted()), &mut take))
    .map_err(|error| Answer::engine(&error))?;
    failed.map(|()| found)
}

/// Adds what the next series have that was not found so far, each if it has a sample in the span.
fn note_fresh(
    asked: &Asked,
    label: Option<&str>,
    span: Option<Span>,
    named: impl Iterator<Item = Named>,
    found: &mut BTreeSet<String>,
) -> Result<(), Answer> {
    let fresh = named.filter(|one| texts_of(one, label).any(|text| !found.contains(text)));
    let mut fresh: Vec<Named> = fresh.take(PART_SERIES).collect();
    if let Some(span) = span {
        asked.retain_in(&mut fresh, span)?;
    }
    let texts = fresh.iter().flat_map(|one| texts_of(one, label));
    found.extend(texts.map(str::to_owned));
    Ok(())
}

/// The names of a series, or its value of `label`.
fn texts_of<'a>(one: &'a Named, label: Option<&str>) -> impl Iterator<Item = &'a str> {
    one.labels
        .iter()
        .filter_map(move |(name, value)| match label {
            None => Some(name),
            Some(label) => (label == name).then_some(value),
        })
}

/// The same of all series there are, but for some that have no sample in the span.
fn of_all(
    asked: &Asked,
    label: Option<&str>,
    span: Option<Span>,
) -> Result<BTreeSet<String>, Error> {
    let (db, cancelled) = (&asked.shared().db, Some(asked.unwanted() as &dyn Cancel));
    let span = span.map(|span| (span.from_ms, span.to_ms));
    let text = |bytes: &[u8]| labelled::text(bytes).into_owned();
    let (metric, bytes_max) = (text(METRIC), db.reply_bytes_max());
    let stored = match label {
        None => db.label_names(&[], None, span, bytes_max, cancelled)?,
        Some(label) => db.label_values(label.as_bytes(), &[], None, span, bytes_max, cancelled)?,
    };
    let mut found: BTreeSet<_> = stored.iter().map(text).collect();
    match label {
        None if db.stats().series > 0 => {
            found.insert(metric);
        }
        Some(label) if *label == metric => {
            let without = [Matcher::new(METRIC, Test::Absent)];
            let without = match span {
                Some(span) => db.select_in(&without, span, cancelled)?,
                None => db.select_until(&without, cancelled)?,
            };
            let keys = without.iter().map(|series| text(&series.key));
            found.extend(keys.filter(|key| !key.is_empty()));
        }
        _ => {}
    }
    Ok(found)
}

/// A name as Prometheus 3 escapes those that it would not take in a path:
/// `U__service_2e_name` is `service.name`.
fn unescape(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix("U__")?;
    let mut name = String::new();
    while let Some((before, after)) = rest.split_once('_') {
        name.push_str(before);
        let (code, after) = after.split_once('_')?;
        match code {
            "" => name.push('_'),
            code => name.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?),
        }
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escaped_names_are_read_back_and_others_left() {
        for (text, name) in [
            ("U__service_2e_name", Some("service.name")),
            ("U__a__b", Some("a_b")),
            ("U___1F600_", Some("\u{1f600}")),
            ("U__", Some("")),
            ("U__a_b", None),
            ("U__a_zz_", None),
            ("U__a_d800_", None),
            ("plain_name", None),
        ] {
            assert_eq!(unescape(text).as_deref(), name, "{text}");
        }
    }
}
