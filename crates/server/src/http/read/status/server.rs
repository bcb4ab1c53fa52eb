//! `GET /api/v1/status/server`: the server at one look, for who is on call.
//!
//! Counters stand as they are: who wants rates asks twice. It answers while the database is being
//! loaded and during CLIENT PAUSE, and has a place when readers have taken all of theirs. The
//! figures are those of INFO and `/metrics`; `docs/api-status.md` lists the fields.
//!
//! Tested by `tests/http/status.rs`.

mod nodes;
mod storage;
mod traffic;

use crate::base::clock::now_ms;
use crate::http::context::Context;
use crate::http::read::envelope::respond_in_thread;
use crate::observe::{Endpoint, process};
use crate::options;
use crate::state::Shared;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Who may run this command sees the settings.
const SETTINGS: &str = "config|get";

pub(crate) async fn server(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Server, request, |asked, parameters| {
        parameters.only(&[])?;
        let settings = asked.may_run(SETTINGS);
        Ok(report(&asked.context, settings))
    })
    .await
}

fn report(context: &Context, with_settings: bool) -> Value {
    let shared = &context.shared;
    let stats = shared.db.shown().stats();
    let memory = context.work.memory_by_part.look(shared);
    json!({
        "server": identity(shared),
        "state": state(shared),
        "clock": {
            "ahead_ms": shared.db.shown().clock_jump_ms(),
            "kept_from_ms": shared.db.shown().floor(),
        },
        "connections": traffic::connections(shared),
        "tls": tls(shared),
        "commands": traffic::commands(shared),
        "samples": traffic::samples(shared, &stats),
        "intake": traffic::intake(shared),
        "reads": traffic::reads(shared),
        "errors": traffic::errors(shared),
        "limits": traffic::limits(context, &stats),
        "requests": traffic::requests(context),
        "long_reads": long_reads(shared),
        "promql": {
            "running": context.work.registry.running(),
            "memory_used_bytes": context.work.query_memory.held_bytes(),
        },
        "memory": storage::memory(shared, &stats, &memory),
        "cluster": nodes::cluster(shared),
        "log": storage::log(shared, &stats),
        "remote": storage::remote(shared),
        "flushes": storage::flushes(&stats),
        "merges": storage::merges(shared),
        "disk": storage::disk(shared),
        "recovery": storage::recovery(shared),
        "backup": storage::backup(shared),
        "settings": with_settings.then(|| options::changed(&shared.runtime.current.lock())),
    })
}

fn identity(shared: &Shared) -> Value {
    let uptime = shared.lifetime.started.elapsed();
    let cpu = process::cpu();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "run_id": shared.observe.run_id,
        "process_id": std::process::id(),
        "time_ms": now_ms(),
        "uptime_ms": u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
        "directory": shared.db.shown().directory().display().to_string(),
        "threads": shared.settings.threads,
        "cpu_user_seconds": cpu.user_s,
        "cpu_system_seconds": cpu.system_s,
    })
}

fn state(shared: &Shared) -> Value {
    let (reads, writes) = (shared.pause.holds(false), shared.pause.holds(true));
    let loading = shared.db.is_loading().then(|| {
        let figures = shared.db.loading.figures();
        json!({
            "bytes_done": figures.bytes_done,
            "bytes_total": figures.bytes_total,
            "percent": figures.percent,
            "eta_seconds": figures.eta_s,
        })
    });
    let unready = shared.unready();
    let role = ["replica", "master"][usize::from(shared.is_owner())];
    json!({
        "role": role,
        "ready": unready.is_none(),
        "unready_reason": unready,
        "loading": loading,
        "writes_stopped": shared.db.shown().stats().halted,
        "out_of_memory": shared.db.shown().is_out_of_memory(),
        "writes_paused": writes.is_some(),
        "reads_paused": reads.is_some(),
    })
}

fn tls(shared: &Shared) -> Value {
    json!({
        "handshakes_failed": shared.tls.failed.load(Ordering::Relaxed),
        "certificate_expiry_s": shared.tls.in_force().map(|tls| tls.expiry_s),
    })
}

fn long_reads(shared: &Shared) -> Value {
    let (running, waiting) = shared.readers.counts();
    json!({
        "threads": shared.readers.threads(),
        "running": running,
        "waiting": waiting,
        "ended": shared.readers.ended.load(Ordering::Relaxed),
    })
}
