//! What is answered from the text of a query alone.
//!
//! A tree takes much more memory than its text. The factors were measured with texts of many shapes:
//! at most 155 bytes for each byte of text, 101 for a copy of which texts are shared, 1,007 as values
//! of JSON and 192 as its text. Tested by `tests/http/promql_answers.rs`.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::asked::Asked;
use crate::http::read::envelope::respond_in_thread;
use crate::http::read::parameters::Parameters;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::tree::Expr;
use latewood_promql::{QUERY_BYTES_MAX, parse as parsed_text, pretty, to_json};
use serde_json::{Value, json};

/// Bytes for each byte of a query's text: of its tree and a copy.
pub(super) const TREE_BYTES: usize = 384;
/// The same of what is kept until the query was answered.
pub(super) const PLAN_BYTES: usize = 128;
/// The same of a tree as JSON.
const JSON_BYTES: usize = 1536;

/// Bytes of a text whose tree may be asked for: a query may be longer, but not for users who may do
/// no more than PING.
const SHOWN_BYTES_MAX: usize = 32 << 10;

/// The tree of the parameter `query`; takes `each_bytes` of memory for each byte of its text.
fn parsed(asked: &Asked, parameters: &Parameters, each_bytes: usize) -> Result<Expr, Answer> {
    let text = parameters.first("query");
    if text.len() > SHOWN_BYTES_MAX {
        let wrong = format!("more than {SHOWN_BYTES_MAX} bytes of text");
        return Err(Answer::parameter("query", wrong));
    }
    asked.hold_bytes(text.len() * each_bytes)?;
    parsed_text(text).map_err(|error| Answer::parameter("query", error))
}

/// `GET|POST /api/v1/format_query`: the query in many lines.
pub(crate) async fn format(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |asked, parameters| {
        let expr = parsed(asked, parameters, TREE_BYTES)?;
        Ok(Value::from(pretty(&expr)))
    })
    .await
}

/// `GET|POST /api/v1/parse_query`: the syntax tree of the query.
pub(crate) async fn parse(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |asked, parameters| {
        let expr = parsed(asked, parameters, JSON_BYTES)?;
        Ok(to_json(&expr))
    })
    .await
}

/// `GET|POST /api/v1/query_exemplars`: none, since exemplars are not stored.
pub(crate) async fn exemplars(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Status, request, |asked, parameters| {
        let start_ms = parameters.time("start")?.unwrap_or(i64::MIN);
        let end_ms = parameters.time("end")?.unwrap_or(i64::MAX);
        if end_ms < start_ms {
            return Err(Answer::bad(
                "end timestamp must not be before start timestamp",
            ));
        }
        let text = parameters.first("query");
        asked.hold_bytes(text.len().min(QUERY_BYTES_MAX) * TREE_BYTES)?;
        parsed_text(text).map_err(|error| Answer::bad(error.to_string()))?;
        Ok(json!([]))
    })
    .await
}
