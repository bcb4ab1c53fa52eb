//! The sections of INFO.

use super::process::{self, Cpu};
use crate::command::auth::REDIS_VERSION;
use crate::command::config::first_port;
use crate::shared::{Shared, now_ms};
use latewood_engine::Stats;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// One line. Writing to a String cannot fail.
fn field(text: &mut String, name: &str, value: impl Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn server(text: &mut String, shared: &Shared) {
    let uptime_s = shared.started.elapsed().as_secs();
    field(text, "redis_version", REDIS_VERSION);
    field(text, "latewood_version", env!("CARGO_PKG_VERSION"));
    field(text, "redis_mode", "standalone");
    field(text, "os", process::system_name());
    field(text, "arch_bits", usize::BITS);
    field(text, "multiplexing_api", "epoll");
    field(text, "process_id", std::process::id());
    field(text, "tcp_port", first_port(shared));
    field(text, "server_time_usec", now_ms().saturating_mul(1000));
    field(text, "uptime_in_seconds", uptime_s);
    field(text, "uptime_in_days", uptime_s / 86_400);
    field(text, "io_threads_active", shared.settings.threads);
}

pub(super) fn clients(text: &mut String, shared: &Shared) {
    let limit = shared.runtime.connections_max.load(Ordering::Relaxed);
    field(text, "connected_clients", shared.connected());
    field(text, "maxclients", limit);
    field(text, "blocked_clients", 0);
}

pub(super) fn memory(text: &mut String, _: &Shared, stats: &Stats) {
    let series = stats.memory.total_bytes() as u64;
    let resident = process::resident();
    field(text, "used_memory", series + stats.key_map_bytes);
    field(text, "used_memory_rss", resident.now_bytes);
    field(text, "used_memory_peak", resident.peak_bytes);
    field(text, "used_memory_dataset", series);
    field(text, "total_system_memory", process::machine_memory_bytes());
    field(text, "maxmemory", 0);
    field(text, "maxmemory_policy", "noeviction");
    field(text, "mem_allocator", "libc");
}

pub(super) fn persistence(text: &mut String, shared: &Shared, stats: &Stats) {
    let wal = stats.wal.clone().unwrap_or_default();
    let status = if wal.halted.is_some() { "err" } else { "ok" };
    field(text, "loading", 0);
    field(text, "rdb_bgsave_in_progress", 0);
    field(
        text,
        "rdb_last_save_time",
        shared.last_save_s.load(Ordering::Relaxed),
    );
    field(text, "rdb_last_bgsave_status", status);
    field(text, "aof_enabled", u8::from(shared.settings.wal));
    field(text, "aof_rewrite_in_progress", 0);
    field(text, "aof_last_write_status", status);
    field(text, "aof_current_size", wal.bytes_on_disk);
}

pub(super) fn statistics(text: &mut String, shared: &Shared) {
    let counters = &shared.counters;
    field(
        text,
        "total_connections_received",
        count(&counters.connections),
    );
    field(text, "total_commands_processed", count(&counters.commands));
    field(text, "total_net_input_bytes", count(&counters.bytes_in));
    field(text, "total_net_output_bytes", count(&counters.bytes_out));
    field(
        text,
        "rejected_connections",
        count(&counters.connections_rejected),
    );
    field(text, "total_error_replies", count(&counters.errors));
    field(text, "timed_out_connections", count(&counters.timeouts));
    field(text, "evicted_keys", 0);
    field(text, "expired_keys", 0);
}

pub(super) fn cpu(text: &mut String, _: &Shared) {
    let Cpu { user_s, system_s } = process::cpu();
    field(text, "used_cpu_sys", format_args!("{system_s:.6}"));
    field(text, "used_cpu_user", format_args!("{user_s:.6}"));
}

pub(super) fn keyspace(text: &mut String, _: &Shared, stats: &Stats) {
    if stats.series > 0 {
        let series = stats.series;
        field(
            text,
            "db0",
            format_args!("keys={series},expires=0,avg_ttl=0"),
        );
    }
}

pub(super) fn latewood(text: &mut String, shared: &Shared, stats: &Stats) {
    let samples = stats.samples_in_order + stats.samples_late + stats.samples_duplicate;
    field(text, "durability", shared.settings.durability.name());
    field(text, "sync_interval_ms", shared.settings.sync_interval_ms);
    field(text, "series", stats.series);
    field(text, "series_created", stats.series_created);
    field(text, "samples_appended", samples);
    field(text, "samples_in_order", stats.samples_in_order);
    field(text, "samples_late", stats.samples_late);
    field(text, "samples_duplicate", stats.samples_duplicate);
    field(text, "samples_ignored", stats.samples_ignored);
    field(text, "samples_refused", stats.samples_refused);
    field(text, "late_samples_pending", stats.late_samples_pending);
    field(text, "settles", stats.settles);
    field(text, "settles_failed", stats.settles_failed);
    field(text, "samples_settled", stats.samples_settled);
    field(text, "memory_tail_bytes", stats.memory.tail_bytes);
    field(text, "memory_chunk_bytes", stats.memory.chunk_bytes);
    field(text, "memory_late_bytes", stats.memory.late_bytes);
    field(text, "memory_other_bytes", stats.memory.other_bytes);
    field(text, "memory_key_map_bytes", stats.key_map_bytes);
    log(text, shared, stats);
    recovery(text, shared);
}

fn log(text: &mut String, shared: &Shared, stats: &Stats) {
    field(text, "wal", if stats.wal.is_some() { "on" } else { "off" });
    let Some(wal) = &stats.wal else {
        return field(text, "halted", "no");
    };
    field(text, "wal_bytes_written", wal.bytes_written);
    field(text, "wal_groups", wal.groups);
    field(text, "wal_syncs", wal.syncs);
    field(text, "wal_last_sync_us", wal.last_sync_us);
    field(text, "wal_segments", wal.segments);
    field(text, "wal_bytes_on_disk", wal.bytes_on_disk);
    field(text, "wal_position", shared.db.position().0);
    field(text, "wal_durable_position", shared.db.durable_position().0);
    match &wal.halted {
        Some(reason) => field(text, "halted", reason.replace(['\r', '\n'], " ")),
        None => field(text, "halted", "no"),
    }
}

fn recovery(text: &mut String, shared: &Shared) {
    let recovery = shared.db.recovery();
    field(text, "recovery_samples", recovery.samples);
    field(text, "recovery_series", recovery.series);
    field(text, "recovery_groups", recovery.log.groups);
    field(text, "recovery_groups_dropped", recovery.log.groups_dropped);
    field(text, "recovery_clean", u8::from(recovery.log.clean));
    field(
        text,
        "recovery_duration_ms",
        recovery.duration_ns / 1_000_000,
    );
}
