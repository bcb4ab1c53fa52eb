//! The section `latewood` of INFO: ingest, settling, the log, recovery.

use super::source::{Source, field};
use crate::base::clock::now_ms;
use crate::command::merge::fields;
use crate::observe::{Endpoint, Protocol};
use crate::state::{RemoteFigures, Shared};
use latewood_engine::Stats;
use std::sync::atomic::{AtomicU64, Ordering};

/// How late samples came in the last hour.
fn lateness(text: &mut String, shared: &Shared) {
    let sum = shared.observe.lateness.last_hour(now_ms());
    field(text, "late_1h_samples", sum.late);
    field(text, "late_1h_age_p99_ms", sum.age_ms(0.99));
    field(text, "late_1h_age_max_ms", sum.max_ms);
    field(text, "late_1h_delay_p99_ms", sum.delay_ms(0.99));
    field(text, "late_1h_delay_p999_ms", sum.delay_ms(0.999));
}

pub(super) fn latewood(text: &mut String, source: &Source<'_>) {
    let (shared, stats) = (source.shared, source.stats());
    let samples = stats.samples_in_order + stats.samples_late + stats.samples_duplicate;
    field(text, "durability", shared.settings.durability.name());
    field(text, "sync_interval_ms", shared.settings.sync_interval_ms);
    field(text, "series", stats.series);
    field(text, "parked_series", stats.series_parked);
    field(text, "series_created", stats.series_created);
    field(text, "series_ended", stats.series_ended);
    field(text, "samples_appended", samples);
    field(text, "samples_in_order", stats.samples_in_order);
    field(text, "samples_late", stats.samples_late);
    field(text, "samples_duplicate", stats.samples_duplicate);
    field(text, "samples_ignored", stats.samples_ignored);
    field(text, "samples_refused", stats.samples_refused);
    limits(text, shared);
    field(text, "late_samples_pending", stats.late_samples_pending);
    lateness(text, shared);
    field(text, "settles", stats.settles);
    field(text, "settles_failed", stats.settles_failed);
    field(text, "samples_settled", stats.samples_settled);
    field(text, "samples_rewritten", stats.samples_rewritten);
    field(text, "rules_made", stats.rules_made);
    field(text, "rules_failed", stats.rules_failed);
    let memory = source.memory();
    field(text, "memory_tail_bytes", memory.series.tail_bytes);
    field(text, "memory_chunk_bytes", memory.series.chunk_bytes);
    field(text, "memory_late_bytes", memory.series.late_bytes);
    field(text, "memory_other_bytes", memory.series.other_bytes);
    field(text, "memory_key_map_bytes", memory.key_map_bytes);
    field(text, "memory_index_bytes", memory.index_bytes);
    field(text, "memory_parked_bytes", memory.parked_bytes);
    field(text, "memory_metadata_bytes", memory.metadata_bytes);
    let remembered = shared.protocols.remembered.len_bytes();
    field(text, "memory_senders_bytes", remembered);
    let lateness_bytes = shared.observe.lateness.len_bytes();
    field(text, "memory_lateness_bytes", lateness_bytes);
    let budget = &stats.budget;
    field(text, "memory_budget_bytes", budget.limit_bytes);
    field(text, "memory_anonymous_bytes", budget.used_bytes);
    field(text, "memory_anonymous_peak_bytes", budget.peak_bytes);
    field(text, "memory_unflushed_bytes", budget.head_bytes);
    field(text, "memory_stalls", budget.stalls);
    field(text, "memory_stalled_ms", budget.stalled_ns / 1_000_000);
    field(text, "memory_refused", budget.refused.count);
    let budget = shared.db.shown().disk_budget_stats();
    field(text, "disk_budget_bytes", budget.budget_bytes);
    field(text, "disk_used_bytes", budget.used_bytes);
    field(text, "disk_stalls", budget.stalls);
    field(text, "disk_stalled_ms", budget.stalled_ns / 1_000_000);
    field(text, "disk_refused", budget.refused.count);
    field(text, "kept_from", shared.db.shown().floor());
    field(text, "clock_jump_ms", shared.db.shown().clock_jump_ms());
    field(text, "label_pairs", stats.label_pairs);
    field(text, "metadata_metrics", stats.metadata.metrics);
    field(text, "metadata_left_out", stats.metadata.left_out);
    flushes(text, stats);
    merges(text, shared);
    log(text, shared, stats);
    recovery(text, shared);
    backups(text, shared);
    senders(text, shared);
    readers(text, shared);
    let (running, waiting) = shared.readers.counts();
    let ended = shared.readers.ended.load(Ordering::Relaxed);
    field(text, "long_reads", ended);
    field(text, "long_reads_running", running);
    field(text, "long_reads_waiting", waiting);
}

/// What came by other protocols, for those that were used.
fn senders(text: &mut String, shared: &Shared) {
    let open = shared.protocols.http.open.load(Ordering::Relaxed);
    field(text, "http_connections", open);
    for (name, listener) in shared.protocols.lines.all() {
        let open = listener.open.load(Ordering::Relaxed);
        field(text, &format!("{name}_connections"), open);
    }
    for protocol in Protocol::ALL {
        let (counters, name) = (shared.protocols.intake.of(protocol), protocol.name());
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let refused = counters.refused();
        let (samples, bytes) = (load(&counters.samples), load(&counters.bytes));
        if samples + bytes + refused == 0 {
            continue;
        }
        field(text, &format!("intake_{name}_samples"), samples);
        field(text, &format!("intake_{name}_bytes"), bytes);
        field(text, &format!("intake_{name}_refused"), refused);
        for (what, counter) in [
            ("strings", &counters.texts),
            ("merged", &counters.merged),
            ("failed", &counters.failed),
        ] {
            field(text, &format!("intake_{name}_{what}"), load(counter));
        }
    }
}

/// What was read over HTTP, for the paths that were asked.
fn readers(text: &mut String, shared: &Shared) {
    for endpoint in Endpoint::ALL {
        let (counters, name) = (shared.protocols.reads.of(endpoint), endpoint.name());
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        if load(&counters.requests) == 0 {
            continue;
        }
        for (what, counter) in [
            ("requests", &counters.requests),
            ("failed", &counters.failed),
            ("cancelled", &counters.cancelled),
            ("items", &counters.items),
            ("samples", &counters.samples),
            ("bytes", &counters.bytes),
        ] {
            field(text, &format!("read_{name}_{what}"), load(counter));
        }
    }
}

/// What was refused because it was over a limit.
fn limits(text: &mut String, shared: &Shared) {
    for (limit, refused) in shared.refused_by_limit() {
        field(text, &format!("refused_{limit}"), refused.count);
    }
}

fn flushes(text: &mut String, stats: &Stats) {
    let flush = &stats.flush;
    field(text, "flushes", flush.flushes);
    field(text, "flushes_failed", flush.failed);
    match &flush.last_error {
        Some(error) => field(text, "flush_last_error", one_line(error)),
        None => field(text, "flush_last_error", "none"),
    }
    field(text, "flush_samples", flush.samples);
    field(text, "flush_bytes_written", flush.bytes_written);
    field(text, "flush_last_ms", flush.last_ns / 1_000_000);
    field(text, "flush_total_ms", flush.total_ns / 1_000_000);
}

fn merges(text: &mut String, shared: &Shared) {
    let stats = shared.db.shown().merge_stats();
    for (name, value) in fields(&stats) {
        field(text, &format!("merge_{name}"), value);
    }
    let amplification = format!("{:.2}", stats.write_amplification());
    field(text, "merge_write_amplification", amplification);
    match &stats.failure {
        Some(failure) => field(text, "merge_failure", one_line(failure)),
        None => field(text, "merge_failure", "none"),
    }
}

fn log(text: &mut String, shared: &Shared, stats: &Stats) {
    field(text, "wal", if stats.log.is_some() { "on" } else { "off" });
    let halted = stats.halted.as_deref().unwrap_or("no");
    field(text, "halted", one_line(halted));
    let Some(wal) = &stats.log else { return };
    field(text, "wal_bytes_written", wal.bytes_written);
    field(text, "wal_groups", wal.groups);
    field(text, "wal_syncs", wal.syncs);
    field(text, "wal_last_sync_us", wal.last_sync_us);
    field(text, "wal_segments", wal.segments);
    field(text, "wal_rolls", wal.rolls);
    field(text, "wal_bytes_on_disk", wal.bytes_on_disk);
    field(text, "wal_position", shared.db.shown().position().0);
    field(
        text,
        "wal_durable_position",
        shared.db.shown().durable_position().0,
    );
    field(text, "wal_unsynced_ms", wal.unsynced_ms.unwrap_or(0));
    remote(text, shared.remote().as_ref());
}

fn remote(text: &mut String, remote: Option<&RemoteFigures>) {
    field(text, "wal_remote", u8::from(remote.is_some()));
    let Some(remote) = remote else { return };
    let checkpoints = &remote.checkpoints;
    field(text, "wal_remote_epoch", remote.epoch);
    field(text, "wal_remote_queued_bytes", remote.queued_bytes);
    field(text, "wal_remote_bytes", remote.log_bytes);
    let reads_wait = u8::from(remote.lacks_lease);
    field(text, "wal_remote_reads_wait", reads_wait);
    field(text, "wal_remote_written_bytes", remote.written_bytes);
    field(text, "checkpoints", checkpoints.saved);
    field(text, "checkpoints_failed", checkpoints.failed);
    let error = checkpoints.last_error.as_deref().unwrap_or("none");
    field(text, "checkpoint_last_error", one_line(error));
    field(text, "checkpoint_last_ms", checkpoints.last_ms);
    let (at_s, bytes) = match &checkpoints.newest {
        Some(newest) => (newest.made_at_ms / 1000, newest.bytes),
        None => (0, 0),
    };
    field(text, "checkpoint_uploaded_bytes", remote.uploaded_bytes);
    field(text, "checkpoint_interval_bytes", remote.interval_bytes);
    field(text, "checkpoint_last_save_time", at_s);
    field(text, "checkpoint_bytes", bytes);
    field(text, "disk_cache_bytes", remote.cache.bytes);
    field(text, "disk_cache_limit_bytes", remote.cache.bytes_max);
    field(text, "disk_cache_evictions", remote.cache.evictions);
    field(text, "disk_cache_evicted_bytes", remote.cache.evicted_bytes);
}

/// A field has one line.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

fn recovery(text: &mut String, shared: &Shared) {
    let recovery = shared.db.shown().recovery();
    field(text, "recovery_samples", recovery.samples);
    field(text, "recovery_series", recovery.series);
    field(text, "recovery_groups", recovery.log.groups);
    field(text, "recovery_groups_dropped", recovery.log.groups_dropped);
    let lost: u64 = recovery.log.holes.iter().map(|hole| hole.groups).sum();
    field(text, "recovery_log_holes", recovery.log.holes.len());
    field(text, "recovery_groups_lost", lost);
    field(text, "recovery_samples_orphaned", recovery.samples_orphaned);
    let displaced = recovery.series_displaced.len();
    field(text, "recovery_series_displaced", displaced);
    field(text, "recovery_blocks_lost", recovery.blocks_lost.len());
    field(
        text,
        "recovery_blocks_damaged",
        recovery.blocks_damaged.len(),
    );
    field(text, "quarantined_files", recovery.quarantined.len());
    field(
        text,
        "quarantine_unaccepted",
        shared.db.shown().doubts().len(),
    );
    field(text, "recovery_clean", u8::from(recovery.log.clean));
    field(
        text,
        "recovery_duration_ms",
        recovery.duration_ns / 1_000_000,
    );
}

fn backups(text: &mut String, shared: &Shared) {
    let is_running = shared.jobs.is_backing_up();
    field(text, "backup_in_progress", u8::from(is_running));
    let Some(last) = shared.jobs.last_backup() else {
        return field(text, "backup_last_status", "none");
    };
    field(text, "backup_last_status", one_line(&last.status));
    let path = last.path.display().to_string();
    field(text, "backup_last_path", one_line(&path));
    field(text, "backup_last_duration_ms", last.duration_ms);
}
