//! `GET|POST /api/v1/series`: the label sets of the series that match.

use super::asked::{Asked, Unreadable};
use super::envelope::answered;
use super::list::{List, put_text};
use super::stream;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::labelled::Named;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::labels::Labels;

pub(crate) async fn series(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Series, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Series, request).await?;
    let (span, limit) = (parameters.span()?, parameters.limit()?);
    let work = move || {
        let selectors = parameters.selectors_needed()?;
        let mut named = asked.find(&selectors, span, Unreadable::Refuse)?;
        if let Some(span) = span {
            asked.retain_in(&mut named, span)?;
        }
        Ok((asked, named))
    };
    let (asked, named) = context.block_in(&context.work.readers, work).await??;
    let list = List::new(named, limit, |one: &Named, out| {
        put_labels(&one.labels, out)
    });
    stream::respond(asked, stream::JSON, list, ()).await
}

/// Appends `{"__name__":"up","job":"a"}`.
pub(super) fn put_labels(labels: &Labels, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in labels.bytes().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_bytes(name, out);
        out.push(b':');
        put_bytes(value, out);
    }
    out.push(b'}');
}

/// Appends UTF-8 as JSON has it.
fn put_bytes(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |plain, &byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    if text.iter().fold(true, is_plain) {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    } else {
        put_text(&String::from_utf8_lossy(text), out);
    }
}
