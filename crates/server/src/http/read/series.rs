//! `GET|POST /api/v1/series`: the label sets of the series that match.

use super::asked::{Asked, Unreadable};
use super::envelope::answered;
use super::list::{List, put_text};
use super::stream;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::labelled::Named;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;

/// The handler.
pub(crate) async fn series(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Series, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Series, request).await?;
    let (span, limit) = (parameters.span()?, parameters.limit()?);
    let work = move || {
        let selectors = parameters.selectors_needed()?;
        let mut named = asked.find(&selectors, Unreadable::Refuse)?;
        if let Some(span) = span {
            asked.retain_in(&mut named, span)?;
        }
        Ok((asked, named))
    };
    let (asked, named) = context.block_in(&context.work.readers, work).await??;
    let list = List::new(named, limit, |one: &Named, out| {
        put_labels(one.labels.iter(), out)
    });
    stream::respond(asked, stream::JSON, list, ()).await
}

/// Appends `{"__name__":"up","job":"a"}`.
pub(super) fn put_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in labels.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_text(name, out);
        out.push(b':');
        put_text(value, out);
    }
    out.push(b'}');
}
