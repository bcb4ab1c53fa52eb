//! The sections of INFO about the process and its data.

use super::source::{Source, bytes_field, field};
use crate::base::clock::now_ms;
use crate::clients::{ClientInfo, Flag};
use crate::command::auth::{mode, module_version, redis_version};
use crate::command::config::first_port;
use crate::command::memory::clients_bytes;
use crate::command::persistence::last_save_s;
use crate::observe::process::{self, Cpu};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn server(text: &mut String, source: &Source<'_>) {
    let shared = source.shared;
    let uptime_s = shared.lifetime.started.elapsed().as_secs();
    let executable = std::env::current_exe().unwrap_or_default();
    field(text, "redis_version", redis_version(source.compatibility));
    field(text, "latewood_version", env!("CARGO_PKG_VERSION"));
    field(text, "redis_mode", mode(shared));
    field(text, "os", process::system_name());
    field(text, "arch_bits", usize::BITS);
    field(text, "multiplexing_api", "epoll");
    field(text, "process_id", std::process::id());
    field(text, "run_id", &shared.observe.run_id);
    field(text, "tcp_port", first_port(shared));
    field(text, "server_time_usec", now_ms().saturating_mul(1000));
    field(text, "uptime_in_seconds", uptime_s);
    field(text, "uptime_in_days", uptime_s / 86_400);
    field(text, "executable", executable.display());
    field(text, "io_threads_active", shared.settings.threads);
}

pub(super) fn clients(text: &mut String, source: &Source<'_>) {
    let shared = source.shared;
    let limit = shared.runtime.connections_max.load(Ordering::Relaxed);
    field(text, "connected_clients", shared.clients.count());
    field(text, "maxclients", limit);
    field(
        text,
        "blocked_clients",
        shared.clients.blocked.load(Ordering::Relaxed),
    );
    let clients = shared.clients.all();
    let count = |flag| {
        clients
            .iter()
            .filter(|client| client.figures.has(flag))
            .count()
    };
    field(text, "pubsub_clients", count(Flag::Subscriber));
    let watched = |client: &&Arc<ClientInfo>| client.figures.watched.load(Ordering::Relaxed) > 0;
    field(
        text,
        "watching_clients",
        clients.iter().filter(watched).count(),
    );
}

pub(super) fn memory(text: &mut String, source: &Source<'_>) {
    let memory = source.memory();
    let used = memory.total_bytes() as u64;
    let dataset = memory.series.total_bytes() as u64;
    let resident = process::resident();
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    bytes_field(text, "used_memory", used);
    bytes_field(text, "used_memory_rss", resident.now_bytes);
    bytes_field(text, "used_memory_peak", resident.peak_bytes);
    let peak = percent(resident.now_bytes, resident.peak_bytes);
    field(text, "used_memory_peak_perc", format_args!("{peak:.2}%"));
    field(text, "used_memory_overhead", used - dataset);
    field(text, "used_memory_dataset", dataset);
    let share = percent(dataset, used);
    field(
        text,
        "used_memory_dataset_perc",
        format_args!("{share:.2}%"),
    );
    let machine = process::machine_memory_bytes();
    bytes_field(text, "total_system_memory", machine);
    bytes_field(text, "maxmemory", source.stats().budget.limit_bytes);
    field(text, "maxmemory_policy", "noeviction");
    let ratio = resident.now_bytes as f64 / used.max(1) as f64;
    field(text, "mem_fragmentation_ratio", format_args!("{ratio:.2}"));
    let beyond = i128::from(resident.now_bytes) - i128::from(used);
    field(text, "mem_fragmentation_bytes", beyond);
    field(text, "mem_clients_normal", clients_bytes(source.shared));
    field(text, "mem_aof_buffer", memory.log_buffer_bytes);
    let allocator = if cfg!(feature = "jemalloc") {
        "jemalloc"
    } else {
        "libc"
    };
    field(text, "mem_allocator", allocator);
}

pub(super) fn persistence(text: &mut String, source: &Source<'_>) {
    let shared = source.shared;
    let wal = source.stats().log.clone().unwrap_or_default();
    let status = if source.stats().halted.is_some() {
        "err"
    } else {
        "ok"
    };
    let flush = &source.stats().flush;
    let saved_s = last_save_s(shared, source.stats());
    // A flush alone saves nothing of a log in Kafka.
    let has_failed = match shared.remote() {
        Some(remote) => remote.checkpoints.last_error.is_some(),
        None => flush.last_error.is_some(),
    };
    let flushed = ["ok", "err"][usize::from(has_failed)];
    let unsaved = shared.db.shown().position().0 - shared.db.shown().durable_position().0;
    field(text, "loading", u8::from(shared.db.is_loading()));
    if shared.db.is_loading() {
        let figures = shared.db.loading.figures();
        let percent = figures.percent;
        field(text, "loading_start_time", shared.db.loading.began_s);
        field(text, "loading_total_bytes", figures.bytes_total);
        field(text, "loading_loaded_bytes", figures.bytes_done);
        field(text, "loading_loaded_perc", format_args!("{percent:.2}"));
        field(text, "loading_eta_seconds", figures.eta_s);
    }
    field(text, "async_loading", 0);
    field(text, "rdb_changes_since_last_save", unsaved);
    field(text, "rdb_bgsave_in_progress", u8::from(flush.in_progress));
    field(text, "rdb_last_save_time", saved_s);
    field(text, "rdb_last_bgsave_status", flushed);
    let last_s = flush.last_ns / 1_000_000_000;
    field(text, "rdb_last_bgsave_time_sec", last_s);
    field(text, "rdb_saves", flush.flushes);
    field(text, "aof_enabled", u8::from(shared.settings.wal));
    field(text, "aof_rewrite_in_progress", 0);
    field(text, "aof_last_write_status", status);
    field(text, "aof_current_size", wal.bytes_on_disk);
}

pub(super) fn cpu(text: &mut String, _: &Source<'_>) {
    let Cpu { user_s, system_s } = process::cpu();
    field(text, "used_cpu_sys", format_args!("{system_s:.6}"));
    field(text, "used_cpu_user", format_args!("{user_s:.6}"));
}

pub(super) fn modules(text: &mut String, source: &Source<'_>) {
    let version = module_version(source.compatibility);
    let line =
        format!("name=timeseries,ver={version},api=1,filters=0,usedby=[],using=[],options=[]");
    field(text, "module", line);
}

pub(super) fn keyspace(text: &mut String, source: &Source<'_>) {
    let keys = source.stats().series;
    if keys > 0 {
        let stats = source.stats();
        let (expires, avg_ttl) = (stats.series_expiring, stats.average_ttl_ms);
        let line = format!("keys={keys},expires={expires},avg_ttl={avg_ttl}");
        field(text, "db0", line);
    }
}
