//! `GET /metrics`: the figures of INFO in Prometheus' text format, 0.0.4.
//!
//! Every name begins with `latewood_`, but for those of rules and notifications, which are
//! Prometheus' own (`rules`); counters end in `_total`, times are in
//! seconds, sizes in bytes. `docs/metrics.md` lists the names; a test compares
//! it, the dashboard and the alert rules with what is served. Source of the
//! format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

mod engine;
pub(super) mod history;
mod nodes;
mod rules;
pub(super) mod senders;
#[cfg(test)]
mod tests;
mod text;

use crate::http::context::Context;
use crate::observe::process;
use crate::state::Shared;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use latewood_engine::DbMemory;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use text::{Kind, Text, figures};

/// How old the memory by part may be: to sum it up, every series is looked at.
const MEMORY_AGE_MAX: Duration = Duration::from_secs(60);

/// The memory by part, as it was some time ago.
#[derive(Default)]
pub(crate) struct MemoryByPart(Mutex<Option<(Instant, DbMemory)>>);

/// `GET /metrics`.
pub(super) async fn metrics(State(context): State<Context>, headers: HeaderMap) -> Response {
    if let Err(answer) = context.user(&headers, (None, None)) {
        return answer.into_response();
    }
    let worker = context.clone();
    match context.block(move || text_of(&worker)).await {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(answer) => answer.into_response(),
    }
}

/// All figures, those of rules among them. May block.
fn text_of(context: &Context) -> String {
    let memory = context.work.memory_by_part.look(&context.shared);
    let mut text = report(&context.shared, &memory);
    text.push_str(&rules::report(&context.rules));
    text
}

impl MemoryByPart {
    /// The memory by part, at most a minute old.
    pub(super) fn look(&self, shared: &Shared) -> DbMemory {
        let mut last = self.0.lock();
        match &*last {
            Some((when, memory)) if when.elapsed() < MEMORY_AGE_MAX => *memory,
            _ => {
                let memory = shared.db.shown().memory();
                *last = Some((Instant::now(), memory));
                memory
            }
        }
    }
}

/// All figures.
fn report(shared: &Shared, memory: &DbMemory) -> String {
    let mut text = Text::default();
    process(&mut text, shared);
    connections(&mut text, shared);
    senders::report(&mut text, shared);
    senders::reads(&mut text, shared);
    limits(&mut text, shared);
    let stats = shared.db.shown().stats();
    engine::ingest(&mut text, &stats);
    engine::memory(&mut text, shared, &stats, memory);
    engine::log(&mut text, shared, &stats);
    nodes::report(&mut text, shared);
    engine::flush(&mut text, &stats);
    engine::merges(&mut text, &shared.db.shown().merge_stats());
    engine::disk(&mut text, shared);
    engine::recovery(&mut text, shared);
    engine::stages(&mut text, shared);
    text.finish()
}

fn process(text: &mut Text, shared: &Shared) {
    let version = env!("CARGO_PKG_VERSION");
    text.family("build_info", Kind::Gauge, "Version as a label; always 1.");
    text.labelled(&[("version", version)], 1);
    figures! { text;
        gauge "uptime_seconds" "Time since start."
            = shared.lifetime.started.elapsed().as_secs_f64();
        gauge "ready" "1 once the data is loaded." = u8::from(!shared.db.is_loading());
    }
    let cpu = process::cpu();
    text.family(
        "cpu_seconds_total",
        Kind::Counter,
        "CPU time of the process.",
    );
    text.labelled(&[("mode", "user")], cpu.user_s);
    text.labelled(&[("mode", "system")], cpu.system_s);
    figures! { text;
        gauge "resident_bytes" "Resident memory of the process." = process::resident().now_bytes;
        counter "commands_total" "Commands of the Redis protocol."
            = count(&shared.counters.commands);
        gauge "backup_in_progress" "1 while a backup is made."
            = u8::from(shared.jobs.is_backing_up());
    }
}

fn connections(text: &mut Text, shared: &Shared) {
    let (redis, by_listener) = (&shared.counters, shared.connections_by_listener());
    text.family("connections", Kind::Gauge, "Open connections.");
    for listener in &by_listener {
        text.labelled(&[("listener", listener.name)], listener.open);
    }
    text.family("connections_total", Kind::Counter, "Connections accepted.");
    for listener in &by_listener {
        text.labelled(&[("listener", listener.name)], listener.accepted);
    }
    let help = "Connections refused by a limit or by protected mode.";
    text.family("connections_rejected_total", Kind::Counter, help);
    for listener in &by_listener {
        let rejected = listener.rejected.count;
        text.labelled(&[("listener", listener.name)], rejected);
    }
    figures! { text;
        counter "tls_handshakes_failed_total" "Connections that ended before they were encrypted."
            = count(&shared.tls.failed);
        gauge "tls_certificate_expiry_timestamp_seconds"
            "When the certificate of the ports with TLS expires; 0 without one."
            = shared.tls.in_force().map_or(0, |tls| tls.expiry_s);
    }
    let help = "Bytes read and written over the Redis protocol.";
    text.family("network_bytes_total", Kind::Counter, help);
    text.labelled(&[("direction", "in")], count(&redis.bytes_in));
    text.labelled(&[("direction", "out")], count(&redis.bytes_out));
}

/// What was refused because it was over a limit.
fn limits(text: &mut Text, shared: &Shared) {
    text.family(
        "limit_refused_total",
        Kind::Counter,
        "Series, keys, labels, queries, replies and clients' memory refused by a limit.",
    );
    for (limit, refused) in shared.refused_by_limit() {
        text.labelled(&[("limit", limit)], refused.count);
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
