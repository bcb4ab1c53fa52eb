//! `/api/v1/status/active_queries`, with `/cancel`, and `/api/v1/status/top_queries`.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::envelope::respond;
use crate::observe::Endpoint;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

/// Texts that are shown unless `topN` says otherwise.
const TOP: usize = 20;
/// Who may run this command may end queries of others.
const KILL: &str = "client|kill";

/// `GET /api/v1/status/active_queries`: the queries that run.
pub(crate) async fn active(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Queries, request, |asked, _| {
        Ok(asked.context.work.registry.active())
    })
    .await
}

/// `POST /api/v1/status/active_queries/ID/cancel`: ends a query of the same user, or of anybody
/// for who may run CLIENT KILL.
pub(crate) async fn cancel(
    State(context): State<Context>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    respond(&context, Endpoint::Cancel, request, |asked, _| {
        let registry = &asked.context.work.registry;
        let missing = || {
            let text = format!("no query {id} is running");
            Answer::new(StatusCode::NOT_FOUND, text)
        };
        let id: u64 = id.parse().map_err(|_| missing())?;
        let user = registry.user_of(id).ok_or_else(missing)?;
        let is_own = user.as_bytes() == asked.user_name();
        if !is_own && !asked.may_run(KILL) {
            let text = "permission to run CLIENT KILL is required to cancel queries of others";
            return Err(Answer::new(StatusCode::FORBIDDEN, text));
        }
        if registry.cancel(id) {
            Ok(Value::Null)
        } else {
            Err(missing())
        }
    })
    .await
}

/// `GET /api/v1/status/top_queries`: the queries that ran most often and longest.
pub(crate) async fn top(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Queries, request, |asked, parameters| {
        let most = parameters.number("topN")?.unwrap_or(TOP);
        Ok(asked.context.work.registry.top(most))
    })
    .await
}
