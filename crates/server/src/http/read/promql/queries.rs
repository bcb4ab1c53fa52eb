//! `/api/v1/status/active_queries`, with `/cancel`, and `/api/v1/status/top_queries`.

use crate::http::answer::{Answer, json_text};
use crate::http::context::Context;
use crate::http::read::asked::Asked;
use crate::http::read::envelope::answered;
use crate::observe::Endpoint;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Texts that are shown unless `topN` says otherwise.
const TOP: usize = 20;
/// Who may run this command may end queries of others.
const KILL: &str = "client|kill";

/// `GET /api/v1/status/active_queries`: the queries that run.
pub(crate) async fn active(State(context): State<Context>, request: Request) -> Response {
    let result = async {
        let asked = Asked::with_parameters(&context, Endpoint::Queries, request).await?;
        drop(asked);
        Ok(success(context.work.registry.active()))
    };
    let result = result.await;
    answered(&context, Endpoint::Queries, result)
}

/// `POST /api/v1/status/active_queries/ID/cancel`: ends a query of the same user, or of anybody
/// for who may run CLIENT KILL.
pub(crate) async fn cancel(
    State(context): State<Context>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let result = async {
        let asked = Asked::with_parameters(&context, Endpoint::Query, request).await;
        let (asked, _) = asked?;
        let registry = &context.work.registry;
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
        match registry.cancel(id) {
            true => Ok(success(Value::Null)),
            false => Err(missing()),
        }
    };
    let result = result.await;
    answered(&context, Endpoint::Queries, result)
}

/// `GET /api/v1/status/top_queries`: the queries that ran most often and longest.
pub(crate) async fn top(State(context): State<Context>, request: Request) -> Response {
    let result = async {
        let asked = Asked::with_parameters(&context, Endpoint::Queries, request).await;
        let (_, parameters) = asked?;
        let most = parameters.number("topN")?.unwrap_or(TOP);
        Ok(success(context.work.registry.top(most)))
    };
    let result = result.await;
    answered(&context, Endpoint::Queries, result)
}

fn success(data: Value) -> Response {
    json_text(&json!({"status": "success", "data": data})).into_response()
}
