//! The HTTP server: what other protocols send and read by HTTP, health and
//! figures.
//!
//! It runs on the runtime of the process, beside the event loops of the Redis side.
//! A request goes this way:
//!
//! ```text
//! serve    a connection within its limits of time, header and number
//!   refusal  the reason for a head that is not one
//!   browser  no request of a page of somebody else
//!   forward  writes go on to the owner of the log, if that is another node
//!   routes   the path, and who may take it (auth)
//!   permits  a place and memory, separate for writers and readers
//!   uploads  bodies on their way: the slow ones give way
//!   body     the bytes of the body
//!   work     a thread that may block: decoding and the engine, a few at a time
//! ```
//!
//! What is over a limit is refused with 413, 429 or 503 and, where it may be
//! tried again, `Retry-After`; nothing waits in a queue without an end. At the
//! end of the server requests under way are finished, for some seconds.
//!
//! Tested by `tests/http/`.

mod answer;
mod auth;
mod body;
mod browser;
mod console;
mod context;
mod encodings;
mod form;
mod forward;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod health;
mod influx;
mod metrics;
mod opentsdb;
mod otlp;
mod permits;
mod prometheus;
mod read;
mod refusal;
#[cfg(test)]
mod roles;
mod serve;
mod short;
mod stall;
mod uploads;
mod work;

use crate::rules::Manager;
use crate::state::{Http, Shared};
use answer::Answer;
use axum::Router;
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use context::Context;
use serve::STOP_MAX;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use work::Work;

/// The addresses that HTTP is served at.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// Of `--http`.
    pub(crate) plain: Option<TcpListener>,
    /// Of `--https`.
    pub(crate) tls: Option<TcpListener>,
}

/// Binds the address of `--http`; nothing where it is `off`, or where nobody
/// asked for it and another program, perhaps InfluxDB, has the port.
///
/// # Errors
/// A sentence that names the address.
pub(crate) fn bind(wanted: &Http) -> Result<Option<TcpListener>, String> {
    let Some(address) = wanted.address() else {
        return Ok(None);
    };
    match bind_at(address) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if *wanted == Http::Default => {
            tracing::warn!(address, %error, "HTTP is not served; --http sets its address");
            Ok(None)
        }
        Err(error) => Err(format!("cannot serve HTTP at {address}: {error}")),
    }
}

/// Binds the address of `--https`, if there is one.
///
/// # Errors
/// A sentence that names the address.
pub(crate) fn bind_tls(address: Option<&str>) -> Result<Option<TcpListener>, String> {
    let listener = address.map(|address| {
        let listener = bind_at(address);
        listener.map_err(|error| format!("cannot serve HTTPS at {address}: {error}"))
    });
    listener.transpose()
}

fn bind_at(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until `stop` says so; then finishes what is under way.
///
/// # Errors
/// If a listener cannot be registered with the runtime.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    rules: Arc<Manager>,
    listeners: Listeners,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (alive, mut ended) = mpsc::channel(1);
    let context = Context {
        work: Arc::new(Work::new(&shared.settings.promql)),
        shared,
        rules,
        certified: None,
        peer: Context::NOBODY,
        alive,
    };
    tokio::spawn(metrics::history::record(context.clone(), stop.clone()));
    serve::serve(context, listeners, stop).await?;
    // What still runs when its connection is gone.
    if timeout(STOP_MAX, ended.recv()).await.is_err() {
        tracing::warn!("some work of HTTP requests was not finished");
    }
    Ok(())
}

/// All paths.
pub(super) fn routes(context: Context) -> Router {
    Router::new()
        .route("/", get(console::home))
        .route("/console/{asset}", get(console::asset))
        .route("/query", either(influx::query))
        .route("/api/v1/read", post(read::read))
        .route("/api/v1/series", either(read::series))
        .route("/api/v1/labels", either(read::labels))
        .route("/api/v1/label/{name}/values", get(read::label_values))
        .route("/api/v1/label//values", get(read::nameless_values))
        .route("/api/v1/export", either(read::export))
        .route("/federate", get(read::federate))
        .merge(write_routes(&context))
        .merge(promql_routes())
        .merge(status_routes())
        .route("/ping", get(health::ping))
        .route("/health", get(health::health))
        .route("/metrics", get(metrics::metrics))
        .route("/-/healthy", get(health::healthy))
        .route("/-/ready", get(health::ready))
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_taken)
        .layer(from_fn(form::guard))
        .layer(from_fn_with_state(context.clone(), browser::guard))
        .with_state(context)
}

/// A handler of GET and POST.
fn either<T: 'static>(handler: impl Handler<T, Context>) -> MethodRouter<Context> {
    get(handler.clone()).post(handler)
}

/// The paths that write.
fn write_routes(context: &Context) -> Router<Context> {
    Router::new()
        .route("/write", post(influx::write_v1))
        .route("/api/v2/write", post(influx::write_v2))
        .route("/api/v3/write_lp", post(influx::write_v3))
        .route("/api/put", post(opentsdb::put))
        .route("/api/v1/write", post(prometheus::write))
        .route("/api/v1/import", post(prometheus::import_lines))
        .route("/api/v1/import/csv", post(prometheus::import_csv))
        .route("/api/v1/import/prometheus", post(prometheus::import))
        .route(
            "/api/v1/admin/tsdb/delete_series",
            post(read::delete_series).put(read::delete_series),
        )
        .route("/api/v2/delete", post(read::influx_delete))
        .route("/v1/metrics", post(otlp::metrics))
        .route("/api/v1/otlp/v1/metrics", post(otlp::metrics))
        .route_layer(from_fn_with_state(context.clone(), forward::guard))
}

/// The paths of PromQL.
fn promql_routes() -> Router<Context> {
    use read::promql::handlers as promql;
    Router::new()
        .route("/api/v1/query", either(promql::query))
        .route("/api/v1/query_range", either(promql::query_range))
        .route("/api/v1/explain", either(promql::explain))
        .route("/api/v1/query_exemplars", either(promql::exemplars))
        .route("/api/v1/format_query", either(promql::format))
        .route("/api/v1/parse_query", either(promql::parse))
        .route("/api/v1/status/active_queries", get(promql::active))
        .route(
            "/api/v1/status/active_queries/{id}/cancel",
            post(promql::cancel),
        )
        .route("/api/v1/status/top_queries", get(promql::top))
}

/// What Prometheus' API says of the server.
fn status_routes() -> Router<Context> {
    use read::status;
    Router::new()
        .route("/api/v1/status/buildinfo", get(status::build))
        .route("/api/v1/status/runtimeinfo", get(status::runtime))
        .route("/api/v1/status/flags", get(status::flags))
        .route("/api/v1/status/server", get(status::server::server))
        .route("/api/v1/status/series", get(status::series::series))
        .route(
            "/api/v1/status/series/samples",
            get(status::samples::samples),
        )
        .route("/api/v1/status/keys", get(status::keys::keys))
        .route("/api/v1/status/rules", get(status::rules::rules))
        .route("/api/v1/status/tsdb", get(read::cardinality))
        .route("/api/v1/status/lateness", get(read::lateness))
        .route("/api/v1/features", get(status::features))
        .route("/api/v1/metadata", get(read::metadata))
        .route("/api/v1/rules", get(read::groups::rules))
        .route("/api/v1/rules/verify", post(read::corrections::verify))
        .route("/api/v1/rules/backfill", post(read::corrections::backfill))
        .route("/api/v1/alerts", get(read::groups::alerts))
        .route("/api/v1/alertmanagers", get(read::groups::alertmanagers))
        .route(
            "/-/reload",
            post(read::groups::reload).put(read::groups::reload),
        )
        .route("/api/v1/targets", get(status::targets))
        .route("/api/v1/targets/metadata", get(status::target_metadata))
        .route("/api/v1/scrape_pools", get(status::scrape_pools))
        .route("/api/v1/status/config", get(status::config))
}

/// Bytes of a path that are shown.
const SHOWN_BYTES_MAX: usize = 200;

async fn nothing_there(uri: Uri) -> Answer {
    let path = shown(&uri);
    let text = format!(
        "no such path: {path}; see /metrics, /api/v1/query and /api/v1/export; to write, /write, \
         /api/v1/write, /v1/metrics, /api/put, /api/v1/import, /api/v1/import/csv and \
         /api/v1/import/prometheus"
    );
    Answer::new(StatusCode::NOT_FOUND, text)
}

/// Which methods are taken says the header `Allow`.
async fn not_taken(method: Method, uri: Uri) -> Answer {
    let text = format!("{} does not support {method}", shown(&uri));
    Answer::new(StatusCode::METHOD_NOT_ALLOWED, text)
}

/// A path is ASCII, so it can be cut anywhere.
fn shown(uri: &Uri) -> &str {
    let path = uri.path();
    path.get(..SHOWN_BYTES_MAX).unwrap_or(path)
}
