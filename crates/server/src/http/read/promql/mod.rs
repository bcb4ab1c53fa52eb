//! PromQL over HTTP, as Prometheus 3.16 answers it.
//!
//! ```text
//! wanted      parameters of a query, in the order and the words of Prometheus
//!   views     the series that it reads, each at one moment
//!   rules     rows of rules among them that are not right yet
//!   result    its answer, piece by piece (rows, json, refusal)
//!   explained what its parts did, instead of a result
//! registry    queries that run, and those that took most
//! text        what is answered from the text of a query alone
//! ```
//!
//! A query runs on a thread that may block, one of `--promql-max-concurrency`; its columns are
//! computed by threads that all queries share. An instant query that was quick the last time, with a
//! short answer, is tried on the thread of its connection alone: what looks whether it goes on ends it
//! after two milliseconds, and then it runs as others do. It ends when its time is over, its peer
//! leaves, or somebody cancels it, also while it waits for a thread. Between two pieces of its answer
//! it holds no thread, and its time stands still: the reader has the time that it has for any answer.
//!
//! Tested by `tests/http/promql*.rs`, and beside Prometheus by `tests/promql`.

mod explained;
mod json;
mod queries;
mod refusal;
mod registry;
mod result;
mod rows;
mod rules;
mod text;
mod views;
mod wanted;

pub(crate) use registry::Registry;

pub(crate) mod handlers {
    //! The handlers.
    pub(crate) use super::queries::{active, cancel, top};
    pub(crate) use super::text::{exemplars, format, parse};
    pub(crate) use super::{explain, query, query_range};
}

use super::asked::Asked;
use super::envelope::answered;
use super::stream;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use explained::Explained;
use result::Answering;
use std::sync::Arc;
use wanted::Wanted;

/// `GET|POST /api/v1/query`: the value at one time.
pub(crate) async fn query(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, Endpoint::Query, request).await;
    answered(&context, Endpoint::Query, result)
}

/// `GET|POST /api/v1/query_range`: values at the steps of a span.
pub(crate) async fn query_range(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, Endpoint::QueryRange, request).await;
    answered(&context, Endpoint::QueryRange, result)
}

/// `GET|POST /api/v1/explain`: what the parts of a query do; a range query where `start`, `end` or
/// `step` is given.
pub(crate) async fn explain(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, Endpoint::Explain, request).await;
    answered(&context, Endpoint::Explain, result)
}

async fn answer(
    context: &Context,
    endpoint: Endpoint,
    request: Request,
) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, endpoint, request).await?;
    let is_range = match endpoint {
        Endpoint::QueryRange => true,
        Endpoint::Explain => {
            let mut names = ["start", "end", "step"].iter();
            names.any(|name| !parameters.first(name).is_empty())
        }
        _ => false,
    };
    let wanted = Wanted::read(&parameters, context, is_range)?;
    let listed = context.work.registry.begin(
        asked.user_name(),
        &wanted.text,
        wanted.times,
        wanted.longest,
    );
    let left = Left(Arc::clone(&listed.running));
    match endpoint {
        Endpoint::Explain => {
            let explained = Explained::new(wanted, listed);
            stream::respond(asked, stream::JSON, explained, left).await
        }
        _ => {
            let answering = Answering::new(wanted, listed);
            stream::respond(asked, stream::JSON, answering, left).await
        }
    }
}

/// Cancels a query whose peer leaves.
struct Left(Arc<registry::Running>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
