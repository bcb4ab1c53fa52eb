//! `GET|POST /api/v1/labels` and `GET /api/v1/label/NAME/values`: which labels
//! there are, and which values one of them has.
//!
//! Without selectors and a span, the index answers by itself. `__key__`, which
//! depends on which series look the same, is then left out.

use super::asked::{Asked, Unreadable};
use super::envelope::answered;
use super::list::{List, put_text};
use super::parameters::Parameters;
use super::stream;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::labelled;
use crate::observe::Endpoint;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use latewood_engine::{Db, Error};
use latewood_model::{Matcher, Test};
use latewood_wire::series_name::METRIC;
use std::collections::BTreeSet;

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
    if selectors.is_empty() && span.is_none() && !asked.is_restricted() {
        let found = of_all(&asked.shared().db, label).map_err(|error| Answer::engine(&error))?;
        return Ok(found.into_iter().collect());
    }
    if selectors.is_empty() {
        // No matcher lets all series pass.
        selectors.push(Vec::new());
    }
    let mut named = asked.find(&selectors, span, Unreadable::PassOver)?;
    if let Some(span) = span {
        asked.retain_in(&mut named, span)?;
    }
    let mut found = BTreeSet::new();
    for (name, value) in named.iter().flat_map(|one| one.labels.iter()) {
        let text = match label {
            None => name,
            Some(label) if label == name => value,
            Some(_) => continue,
        };
        if !found.contains(text) {
            found.insert(text.to_owned());
        }
    }
    Ok(found.into_iter().collect())
}

/// The same of all series there are.
fn of_all(db: &Db, label: Option<&str>) -> Result<BTreeSet<String>, Error> {
    let text = |bytes: &[u8]| labelled::text(bytes).into_owned();
    let metric = text(METRIC);
    let stored = match label {
        None => db.label_names(&[], None, db.reply_bytes_max(), None)?,
        Some(label) => db.label_values(label.as_bytes(), &[], None, db.reply_bytes_max(), None)?,
    };
    let mut found: BTreeSet<_> = stored.iter().map(text).collect();
    match label {
        None if db.stats().series > 0 => {
            found.insert(metric);
        }
        Some(label) if *label == metric => {
            let without = db.select(&[Matcher::new(METRIC, Test::Absent)])?;
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
