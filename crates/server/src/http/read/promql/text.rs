//! What is answered from the text of a query alone.

use crate::http::answer::{Answer, json_text};
use crate::http::context::Context;
use crate::http::read::asked::Asked;
use crate::http::read::envelope::answered;
use crate::http::read::parameters::Parameters;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use latewood_promql::{parse as parsed, pretty, to_json};
use serde_json::{Value, json};

/// `GET|POST /api/v1/format_query`: the query in many lines.
pub(crate) async fn format(State(context): State<Context>, request: Request) -> Response {
    respond(&context, request, |parameters| {
        let expr = parsed(parameters.first("query"));
        let expr = expr.map_err(|error| Answer::parameter("query", error))?;
        Ok(pretty(&expr).into())
    })
    .await
}

/// `GET|POST /api/v1/parse_query`: the syntax tree of the query.
pub(crate) async fn parse(State(context): State<Context>, request: Request) -> Response {
    respond(&context, request, |parameters| {
        let expr = parsed(parameters.first("query"));
        let expr = expr.map_err(|error| Answer::parameter("query", error))?;
        Ok(to_json(&expr))
    })
    .await
}

/// `GET|POST /api/v1/query_exemplars`: none, since exemplars are not stored.
pub(crate) async fn exemplars(State(context): State<Context>, request: Request) -> Response {
    respond(&context, request, |parameters| {
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

async fn respond(
    context: &Context,
    request: Request,
    answer: impl FnOnce(&Parameters) -> Result<Value, Answer> + Send + 'static,
) -> Response {
    let result = async {
        let asked = Asked::with_parameters(context, Endpoint::Status, request).await;
        let (asked, parameters) = asked?;
        let work = move || (answer(&parameters), drop(asked)).0;
        let data = context.block_in(&context.work.readers, work).await??;
        Ok(json_text(&json!({"status": "success", "data": data})).into_response())
    };
    let result = result.await;
    answered(context, Endpoint::Status, result)
}
