//! The figures of the engine.

use super::Shared;
use super::text::{Kind, Text};
use crate::state::RemoteFigures;
use latewood_engine::{DbMemory, Durability, MergeStats, Stats};

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn ingest(text: &mut Text, stats: &Stats) {
    use Kind::{Counter, Gauge};
    text.single("series", Gauge, "Number of series.", stats.series);
    text.single(
        "series_created_total",
        Counter,
        "Series created.",
        stats.series_created,
    );
    text.family(
        "samples_total",
        Counter,
        "Samples accepted by any protocol, by their relation to stored samples.",
    );
    text.labelled(&[("order", "in_order")], stats.samples_in_order);
    text.labelled(&[("order", "late")], stats.samples_late);
    text.labelled(&[("order", "duplicate")], stats.samples_duplicate);
    for (name, help, value) in [
        (
            "samples_ignored_total",
            "Samples dropped by IGNORE.",
            stats.samples_ignored,
        ),
        (
            "samples_refused_total",
            "Samples refused by policy or retention.",
            stats.samples_refused,
        ),
        ("settles_total", "Settles of a series.", stats.settles),
        (
            "settles_failed_total",
            "Settles that failed.",
            stats.settles_failed,
        ),
        (
            "settled_samples_total",
            "Late samples folded into chunks.",
            stats.samples_settled,
        ),
        (
            "rewritten_samples_total",
            "Samples encoded again by settles.",
            stats.samples_rewritten,
        ),
        (
            "rule_failures_total",
            "Failures to compute or write rows of compaction rules.",
            stats.rules_failed,
        ),
    ] {
        text.single(name, Counter, help, value);
    }
    text.single(
        "late_samples_pending",
        Gauge,
        "Late samples that wait to be settled.",
        stats.late_samples_pending,
    );
    text.single(
        "label_pairs",
        Gauge,
        "Pairs of label name and value.",
        stats.label_pairs,
    );
    metadata(text, stats);
}

fn metadata(text: &mut Text, stats: &Stats) {
    use Kind::{Counter, Gauge};
    text.single(
        "metadata_metrics",
        Gauge,
        "Metrics with metadata.",
        stats.metadata.metrics,
    );
    text.single(
        "metadata_left_out_total",
        Counter,
        "Metadata left out: too long, or no room.",
        stats.metadata.left_out,
    );
}

pub(super) fn memory(text: &mut Text, shared: &Shared, stats: &Stats, memory: &DbMemory) {
    use Kind::Gauge;
    text.family(
        "memory_bytes",
        Gauge,
        "Memory by part, at most a minute old.",
    );
    for (part, bytes) in shared.memory_by_part(memory) {
        text.labelled(&[("part", part)], bytes);
    }
    let budget = &stats.budget;
    for (name, help, bytes) in [
        (
            "memory_budget_bytes",
            "Memory budget in bytes (0 = unlimited).",
            budget.limit_bytes,
        ),
        (
            "memory_used_bytes",
            "Memory that counts against the budget.",
            budget.used_bytes,
        ),
        (
            "memory_peak_bytes",
            "Peak of the memory that counts against the budget.",
            budget.peak_bytes,
        ),
        (
            "memory_unflushed_bytes",
            "Memory of samples that are in no block.",
            budget.head_bytes,
        ),
    ] {
        text.single(name, Gauge, help, bytes);
    }
    stalls(
        text,
        [
            "memory_stalls_total",
            "memory_stalled_seconds_total",
            "memory_refused_total",
        ],
        "memory",
        (budget.stalls, budget.stalled_ns, budget.refused.count),
    );
}

fn stalls(
    text: &mut Text,
    names: [&'static str; 3],
    what: &str,
    (stalls, stalled_ns, refused): (u64, u64, u64),
) {
    let [count, time, refusals] = names;
    let help = format!("Writes that waited for {what}.");
    text.single(count, Kind::Counter, &help, stalls);
    let help = format!("Time that writes waited for {what}.");
    text.single(time, Kind::Counter, &help, seconds(stalled_ns));
    let help = format!("Writes refused for lack of {what}.");
    text.single(refusals, Kind::Counter, &help, refused);
}

pub(super) fn log(text: &mut Text, shared: &Shared, stats: &Stats) {
    use Kind::{Counter, Gauge};
    let wal = stats.log.clone().unwrap_or_default();
    let is_on = u8::from(stats.log.is_some());
    text.single("wal_enabled", Gauge, "1 where there is a log.", is_on);
    let halted = u8::from(stats.halted.is_some());
    text.single(
        "wal_halted",
        Gauge,
        "1 once a failed write or sync, or a panic, stopped all writes.",
        halted,
    );
    for (name, help, value) in [
        (
            "wal_written_bytes_total",
            "Bytes written to the log.",
            wal.bytes_written,
        ),
        ("wal_groups_total", "Groups written to the log.", wal.groups),
        ("wal_syncs_total", "Syncs of the log.", wal.syncs),
    ] {
        text.single(name, Counter, help, value);
    }
    let last_s = wal.last_sync_us as f64 / 1e6;
    text.single(
        "wal_last_sync_seconds",
        Gauge,
        "Duration of the last sync.",
        last_s,
    );
    text.single("wal_segments", Gauge, "Segments of the log.", wal.segments);
    text.single(
        "wal_bytes",
        Gauge,
        "Bytes of the log on disk.",
        wal.bytes_on_disk,
    );
    let (written, durable) = (shared.db.position().0, shared.db.durable_position().0);
    text.single(
        "wal_unsynced_groups",
        Gauge,
        "Groups not yet known to be durable.",
        written.saturating_sub(durable),
    );
    // Under `none` nothing waits: the kernel writes when it likes.
    let unsynced_ms = match shared.settings.durability {
        Durability::None => 0,
        _ => wal.unsynced_ms.unwrap_or(0),
    };
    text.single(
        "wal_unsynced_seconds",
        Gauge,
        "How long the oldest group has waited that is not known to be durable, at most.",
        unsynced_ms as f64 / 1e3,
    );
    let figures = shared.remote();
    let is_remote = u64::from(figures.is_some());
    text.single(
        "wal_remote",
        Gauge,
        "1 where the log is in Kafka.",
        is_remote,
    );
    remote(text, &figures.unwrap_or_default());
}

fn remote(text: &mut Text, remote: &RemoteFigures) {
    use Kind::{Counter, Gauge};
    let checkpoints = &remote.checkpoints;
    let (newest_ms, bytes) = match &checkpoints.newest {
        Some(newest) => (newest.made_at_ms, newest.bytes),
        None => (0, 0),
    };
    for (name, kind, help, value) in [
        (
            "wal_remote_epoch",
            Gauge,
            "Epoch in which this process owns the log in Kafka.",
            remote.epoch,
        ),
        (
            "wal_remote_queued_bytes",
            Gauge,
            "Bytes of the log that wait for Kafka.",
            remote.queued_bytes,
        ),
        (
            "wal_remote_bytes",
            Gauge,
            "Bytes of the log in Kafka that no checkpoint holds.",
            remote.log_bytes,
        ),
        (
            "checkpoints_total",
            Counter,
            "Checkpoints saved in the object store.",
            checkpoints.saved,
        ),
        (
            "checkpoints_failed_total",
            Counter,
            "Checkpoints that could not be saved.",
            checkpoints.failed,
        ),
        (
            "checkpoint_bytes",
            Gauge,
            "Bytes of the newest checkpoint.",
            bytes,
        ),
    ] {
        text.single(name, kind, help, value);
    }
    text.single(
        "checkpoint_last_seconds",
        Gauge,
        "Duration of the last checkpoint that was saved.",
        checkpoints.last_ms as f64 / 1e3,
    );
    text.single(
        "checkpoint_timestamp_seconds",
        Gauge,
        "When the newest checkpoint was written, in seconds since 1970; 0 without one.",
        newest_ms as f64 / 1e3,
    );
}

pub(super) fn flush(text: &mut Text, stats: &Stats) {
    use Kind::{Counter, Gauge};
    let flush = &stats.flush;
    text.single(
        "flushes_total",
        Counter,
        "Partitions flushed.",
        flush.flushes,
    );
    text.single(
        "flushes_failed_total",
        Counter,
        "Flushes that failed.",
        flush.failed,
    );
    text.single(
        "flush_samples_total",
        Counter,
        "Samples and late operations flushed.",
        flush.samples,
    );
    text.single(
        "flush_written_bytes_total",
        Counter,
        "Bytes of blocks and series files that flushes wrote.",
        flush.bytes_written,
    );
    text.single(
        "flush_seconds_total",
        Counter,
        "Time spent in flushes.",
        seconds(flush.total_ns),
    );
    text.single(
        "flush_last_seconds",
        Gauge,
        "Duration of the last flush.",
        seconds(flush.last_ns),
    );
}

pub(super) fn merges(text: &mut Text, stats: &MergeStats) {
    use Kind::{Counter, Gauge};
    text.family("merges_total", Counter, "Merges of blocks.");
    text.labelled(&[("kind", "base")], stats.base_merges);
    text.labelled(&[("kind", "late")], stats.late_merges);
    text.labelled(&[("kind", "fold")], stats.folds);
    for (name, help, value) in [
        (
            "merge_failures_total",
            "Merges that failed.",
            stats.failures,
        ),
        (
            "merge_read_bytes_total",
            "Bytes that merges read.",
            stats.bytes_read,
        ),
        (
            "merge_written_bytes_total",
            "Bytes that merges wrote.",
            stats.bytes_written,
        ),
        (
            "dropped_bytes_total",
            "Bytes of blocks dropped by retention and disk budget.",
            stats.bytes_dropped,
        ),
    ] {
        text.single(name, Counter, help, value);
    }
    text.family("blocks", Gauge, "Number of blocks.");
    text.labelled(&[("kind", "base")], stats.base_blocks);
    text.labelled(&[("kind", "late")], stats.late_blocks);
    text.family("block_bytes", Gauge, "Bytes of blocks.");
    text.labelled(&[("kind", "base")], stats.base_bytes);
    text.labelled(&[("kind", "late")], stats.late_bytes);
}

pub(super) fn disk(text: &mut Text, shared: &Shared) {
    text.single(
        "kept_from_seconds",
        Kind::Gauge,
        "Unix time of the oldest samples kept by retention and disk budget (0 = all).",
        shared.db.floor() as f64 / 1e3,
    );
    text.single(
        "clock_jump_seconds",
        Kind::Gauge,
        "Seconds by which the wall clock is ahead of the time that retention trusts, negative if behind.",
        shared.db.clock_jump_ms() as f64 / 1e3,
    );
    let budget = shared.db.disk_budget_stats();
    text.single(
        "disk_budget_bytes",
        Kind::Gauge,
        "Disk budget in bytes (0 = unlimited).",
        budget.budget_bytes,
    );
    text.single(
        "disk_used_bytes",
        Kind::Gauge,
        "Bytes of all files.",
        budget.used_bytes,
    );
    stalls(
        text,
        [
            "disk_stalls_total",
            "disk_stalled_seconds_total",
            "disk_refused_total",
        ],
        "disk",
        (budget.stalls, budget.stalled_ns, budget.refused.count),
    );
}

pub(super) fn recovery(text: &mut Text, shared: &Shared) {
    use Kind::Gauge;
    let recovery = shared.db.recovery();
    text.single(
        "recovery_seconds",
        Gauge,
        "Duration of loading the data at start.",
        seconds(recovery.duration_ns),
    );
    text.single(
        "recovery_samples",
        Gauge,
        "Samples replayed from the log at start.",
        recovery.samples,
    );
    text.single(
        "recovery_clean",
        Gauge,
        "1 if the last stop was clean.",
        u8::from(recovery.log.clean),
    );
    let lost: u64 = recovery.log.holes.iter().map(|hole| hole.groups).sum();
    text.single(
        "recovery_lost_groups",
        Gauge,
        "Groups of the log lost to damage.",
        lost,
    );
    let blocks = recovery.blocks_lost.len() + recovery.blocks_damaged.len();
    text.single(
        "recovery_bad_blocks",
        Gauge,
        "Blocks found missing or damaged at start.",
        blocks,
    );
    text.single(
        "quarantined_files",
        Gauge,
        "Files in quarantine at start.",
        recovery.quarantined.len(),
    );
    text.single(
        "quarantine_unaccepted",
        Gauge,
        "Damaged files and parts of the log that nobody has accepted.",
        shared.db.doubts().len(),
    );
}

pub(super) fn stages(text: &mut Text, shared: &Shared) {
    let stages = shared.db.stages();
    let figures = stages.figures();
    text.family(
        "stage_seconds_total",
        Kind::Counter,
        "Time in each stage of a write, projected from the batches that are timed.",
    );
    for figures in &figures {
        let total_s = seconds(figures.total_ns);
        text.labelled(&[("stage", figures.stage.name())], total_s);
    }
    text.family(
        "stage_events_total",
        Kind::Counter,
        "Passes through each stage of a write.",
    );
    for figures in &figures {
        text.labelled(&[("stage", figures.stage.name())], figures.events);
    }
}
