//! What is answered from the text of a query alone.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::envelope::respond_in_thread;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::{parse as parsed, pretty, to_json};
use serde_json::json;

/// `GET|POST /api/v1/format_query`: the query in many lines.
pub(crate) async fn format(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |_, parameters| {
        let expr = parsed(parameters.first("query"));
        let expr = expr.map_err(|error| Answer::parameter("query", error))?;
        Ok(pretty(&expr).into())
    })
    .await
}

/// `GET|POST /api/v1/parse_query`: the syntax tree of the query.
pub(crate) async fn parse(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |_, parameters| {
        let expr = parsed(parameters.first("query"));
        let expr = expr.map_err(|error| Answer::parameter("query", error))?;
        Ok(to_json(&expr))
    })
    .await
}

/// `GET|POST /api/v1/query_exemplars`: none, since exemplars are not stored.
pub(crate) async fn exemplars(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |_, parameters| {
        let start_ms = parameters.time("start")?.unwrap_or(i64::MIN);
        let end_ms = parameters.time("end")?.unwrap_or(i64::MAX);
        if end_ms < start_ms {
            return Err(Answer::bad(
                "end timestamp must not be before start timestamp",
            ));
        }
        let expr = parsed(parameters.first("query"));
        expr.map_err(|error| Answer::bad(error.to_string()))?;
        Ok(json!([]))
    })
    .await
}
