//! Memory, log, blocks and disk.

use crate::command::merge_fields;
use crate::observe::process;
use crate::state::Shared;
use latewood_engine::{DbMemory, Stage, StageFigures, Stats};
use serde_json::{Map, Value, json};

pub(super) fn memory(shared: &Shared, stats: &Stats, memory: &DbMemory) -> Value {
    let parts = shared.memory_by_part(memory).into_iter();
    let parts = parts.map(|(part, bytes)| (part.to_owned(), bytes.into()));
    let budget = &stats.budget;
    let resident = process::resident();
    json!({
        "parts_bytes": Value::Object(parts.collect()),
        "budget_bytes": budget.limit_bytes,
        "used_bytes": budget.used_bytes,
        "peak_bytes": budget.peak_bytes,
        "unflushed_bytes": budget.head_bytes,
        "resident_bytes": resident.now_bytes,
        "machine_bytes": process::machine_memory_bytes(),
        "stalls": budget.stalls,
        "stalled_ms": milliseconds(budget.stalled_ns),
        "refused": budget.refused.count,
    })
}

/// `null` without a log.
pub(super) fn log(shared: &Shared, stats: &Stats) -> Value {
    let Some(log) = &stats.log else {
        return Value::Null;
    };
    let (written, durable) = (
        shared.db.shown().position().0,
        shared.db.shown().durable_position().0,
    );
    let stages = shared.db.stages().figures();
    let sync = stages.iter().find(|one| one.stage == Stage::LogSync);
    let microseconds = |of: fn(&StageFigures) -> u64| sync.map_or(0, of) / 1000;
    json!({
        "durability": shared.settings.durability.name(),
        "sync_interval_ms": shared.settings.sync_interval_ms,
        "segments": log.segments,
        "bytes": log.bytes_on_disk,
        "bytes_written": log.bytes_written,
        "groups": log.groups,
        "unsynced_groups": written.saturating_sub(durable),
        "oldest_unsynced_ms": log.unsynced_ms,
        "syncs": log.syncs,
        "last_sync_us": log.last_sync_us,
        "sync_p50_us": microseconds(|sync| sync.p50_ns),
        "sync_p99_us": microseconds(|sync| sync.p99_ns),
    })
}

/// `null` where the log is local.
pub(super) fn remote(shared: &Shared) -> Value {
    let Some(remote) = shared.remote() else {
        return Value::Null;
    };
    let checkpoints = &remote.checkpoints;
    let newest = checkpoints.newest.as_ref();
    json!({
        "epoch": remote.epoch,
        "queued_bytes": remote.queued_bytes,
        "log_bytes": remote.log_bytes,
        "written_bytes": remote.written_bytes,
        "checkpoints": checkpoints.saved,
        "checkpoints_failed": checkpoints.failed,
        "checkpoint_last_error": checkpoints.last_error,
        "checkpoint_last_ms": checkpoints.last_ms,
        "checkpoint_uploaded_bytes": remote.uploaded_bytes,
        "checkpoint_interval_bytes": remote.interval_bytes,
        "checkpoint_time_ms": newest.map(|newest| newest.made_at_ms),
        "checkpoint_files": newest.map(|newest| newest.files),
        "checkpoint_bytes": newest.map(|newest| newest.bytes),
        "disk_cache_bytes": remote.cache.bytes,
        "disk_cache_limit_bytes": remote.cache.bytes_max,
        "disk_cache_evictions": remote.cache.evictions,
        "disk_cache_evicted_bytes": remote.cache.evicted_bytes,
    })
}

pub(super) fn flushes(stats: &Stats) -> Value {
    let flush = &stats.flush;
    json!({
        "flushes": flush.flushes,
        "failed": flush.failed,
        "last_error": flush.last_error,
        "in_progress": flush.in_progress,
        "samples": flush.samples,
        "bytes_written": flush.bytes_written,
        "last_ms": milliseconds(flush.last_ns),
        "total_ms": milliseconds(flush.total_ns),
    })
}

/// As LATEWOOD MERGE STATUS.
pub(super) fn merges(shared: &Shared) -> Value {
    let stats = shared.db.shown().merge_stats();
    let fields = merge_fields(&stats).into_iter();
    let mut shown: Map<String, Value> = fields
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let amplification = stats.write_amplification();
    shown.insert("write_amplification".to_owned(), amplification.into());
    shown.insert("failure".to_owned(), stats.failure.into());
    Value::Object(shown)
}

pub(super) fn disk(shared: &Shared) -> Value {
    let budget = shared.db.shown().disk_budget_stats();
    let space = rustix::fs::statvfs(shared.db.shown().directory()).ok();
    json!({
        "budget_bytes": budget.budget_bytes,
        "used_bytes": budget.used_bytes,
        "free_bytes": space.as_ref().map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
        "total_bytes": space.as_ref().map(|space| space.f_blocks.saturating_mul(space.f_frsize)),
        "stalls": budget.stalls,
        "stalled_ms": milliseconds(budget.stalled_ns),
        "refused": budget.refused.count,
        "lost_blocks": shared.lost_blocks(),
    })
}

pub(super) fn recovery(shared: &Shared) -> Value {
    let recovery = shared.db.shown().recovery();
    let lost_groups: u64 = recovery.log.holes.iter().map(|hole| hole.groups).sum();
    json!({
        "duration_ms": milliseconds(recovery.duration_ns),
        "clean": recovery.log.clean,
        "samples": recovery.samples,
        "series": recovery.series,
        "log_holes": recovery.log.holes.len(),
        "lost_groups": lost_groups,
        "lost_blocks": recovery.blocks_lost.len(),
        "damaged_blocks": recovery.blocks_damaged.len(),
        "quarantined_files": recovery.quarantined.len(),
    })
}

pub(super) fn backup(shared: &Shared) -> Value {
    let last = shared.jobs.last_backup();
    json!({
        "in_progress": shared.jobs.is_backing_up(),
        "last_status": last.as_ref().map(|last| &last.status),
        "last_duration_ms": last.as_ref().map(|last| last.duration_ms),
    })
}

fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}
