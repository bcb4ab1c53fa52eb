//! The figures of the engine.

use super::Shared;
use super::text::{Kind, Text, figures};
use crate::state::RemoteFigures;
use latewood_engine::{DbMemory, Durability, MergeStats, Stats};

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn ingest(text: &mut Text, stats: &Stats) {
    figures! { text;
        gauge "series" "Number of series." = stats.series;
        gauge "series_parked" "Series that are not in memory, of these." = stats.series_parked;
        counter "series_created_total" "Series created." = stats.series_created;
        counter "series_ended_total" "Series removed since retention left nothing of them."
            = stats.series_ended;
    }
    let help = "Samples accepted by any protocol, by their relation to stored samples.";
    text.family("samples_total", Kind::Counter, help);
    text.labelled(&[("order", "in_order")], stats.samples_in_order);
    text.labelled(&[("order", "late")], stats.samples_late);
    text.labelled(&[("order", "duplicate")], stats.samples_duplicate);
    figures! { text;
        counter "samples_ignored_total" "Samples dropped by IGNORE." = stats.samples_ignored;
        counter "samples_refused_total" "Samples refused by policy or retention."
            = stats.samples_refused;
        counter "settles_total" "Settles of a series." = stats.settles;
        counter "settles_failed_total" "Settles that failed." = stats.settles_failed;
        counter "settled_samples_total" "Late samples folded into chunks." = stats.samples_settled;
        counter "rewritten_samples_total" "Samples encoded again by settles."
            = stats.samples_rewritten;
        counter "rule_failures_total" "Failures to compute or write rows of compaction rules."
            = stats.rules_failed;
        gauge "late_samples_pending" "Late samples that wait to be settled."
            = stats.late_samples_pending;
        gauge "label_pairs" "Pairs of label name and value." = stats.label_pairs;
        gauge "metadata_metrics" "Metrics with metadata." = stats.metadata.metrics;
        counter "metadata_left_out_total" "Metadata left out: too long, or no room."
            = stats.metadata.left_out;
    }
}

pub(super) fn memory(text: &mut Text, shared: &Shared, stats: &Stats, memory: &DbMemory) {
    let help = "Memory by part, at most a minute old.";
    text.family("memory_bytes", Kind::Gauge, help);
    for (part, bytes) in shared.memory_by_part(memory) {
        text.labelled(&[("part", part)], bytes);
    }
    let budget = &stats.budget;
    figures! { text;
        gauge "memory_budget_bytes" "Memory budget in bytes (0 = unlimited)." = budget.limit_bytes;
        gauge "memory_used_bytes" "Memory that counts against the budget." = budget.used_bytes;
        gauge "memory_peak_bytes" "Peak of the memory that counts against the budget."
            = budget.peak_bytes;
        gauge "memory_unflushed_bytes" "Memory of samples that are in no block."
            = budget.head_bytes;
        counter "memory_stalls_total" "Writes that waited for memory." = budget.stalls;
        counter "memory_stalled_seconds_total" "Time that writes waited for memory."
            = seconds(budget.stalled_ns);
        counter "memory_refused_total" "Writes refused for lack of memory." = budget.refused.count;
    }
}

pub(super) fn log(text: &mut Text, shared: &Shared, stats: &Stats) {
    let wal = stats.log.clone().unwrap_or_default();
    let (written, durable) = (
        shared.db.shown().position().0,
        shared.db.shown().durable_position().0,
    );
    // Under `none` nothing waits: the kernel writes when it likes.
    let unsynced_ms = match shared.settings.durability {
        Durability::None => 0,
        _ => wal.unsynced_ms.unwrap_or(0),
    };
    let figures = shared.remote();
    figures! { text;
        gauge "wal_enabled" "1 where there is a log." = u8::from(stats.log.is_some());
        gauge "wal_halted" "1 once a failed write or sync, or a panic, stopped all writes."
            = u8::from(stats.halted.is_some());
        counter "wal_written_bytes_total" "Bytes written to the log." = wal.bytes_written;
        counter "wal_groups_total" "Groups written to the log." = wal.groups;
        counter "wal_syncs_total" "Syncs of the log." = wal.syncs;
        gauge "wal_last_sync_seconds" "Duration of the last sync." = wal.last_sync_us as f64 / 1e6;
        gauge "wal_segments" "Segments of the log." = wal.segments;
        gauge "wal_bytes" "Bytes of the log on disk." = wal.bytes_on_disk;
        gauge "wal_unsynced_groups" "Groups not yet known to be durable."
            = written.saturating_sub(durable);
        gauge "wal_unsynced_seconds"
            "How long the oldest group has waited that is not known to be durable, at most."
            = unsynced_ms as f64 / 1e3;
        gauge "wal_remote" "1 where the log is in Kafka." = u64::from(figures.is_some());
    }
    remote(text, &figures.unwrap_or_default());
    figures! { text;
        gauge "blocks_lost" "Blocks that neither this machine nor the object store has."
            = shared.lost_blocks();
    }
}

fn remote(text: &mut Text, remote: &RemoteFigures) {
    let checkpoints = &remote.checkpoints;
    let newest = checkpoints.newest.as_ref();
    let (newest_ms, bytes) = newest.map_or((0, 0), |newest| (newest.made_at_ms, newest.bytes));
    figures! { text;
        gauge "wal_remote_epoch" "Epoch in which this process owns the log in Kafka."
            = remote.epoch;
        gauge "wal_remote_queued_bytes" "Bytes of the log that wait for Kafka."
            = remote.queued_bytes;
        gauge "wal_remote_bytes" "Bytes of the log in Kafka that no checkpoint holds."
            = remote.log_bytes;
        gauge "wal_remote_reads_wait" "1 while reads wait for a lease of the log in Kafka."
            = u8::from(remote.lacks_lease);
        counter "wal_remote_written_bytes_total" "Bytes of the log written to Kafka."
            = remote.written_bytes;
        counter "checkpoints_total" "Checkpoints saved in the object store." = checkpoints.saved;
        counter "checkpoints_failed_total" "Checkpoints that could not be saved."
            = checkpoints.failed;
        counter "checkpoint_uploaded_bytes_total"
            "Bytes uploaded for checkpoints, those that failed included."
            = remote.uploaded_bytes;
        gauge "checkpoint_interval_bytes" "Bytes of the log after which a checkpoint is saved."
            = remote.interval_bytes;
        gauge "checkpoint_bytes" "Bytes of the newest checkpoint." = bytes;
        gauge "checkpoint_last_seconds" "Duration of the last checkpoint that was saved."
            = checkpoints.last_ms as f64 / 1e3;
        gauge "disk_cache_bytes"
            "Bytes of blocks on this machine that the newest checkpoint has as well."
            = remote.cache.bytes;
        gauge "disk_cache_limit_bytes" "Their limit (0 = unlimited)." = remote.cache.bytes_max;
        counter "disk_cache_evictions_total" "Blocks that left this machine for others."
            = remote.cache.evictions;
        counter "disk_cache_evicted_bytes_total" "Their bytes." = remote.cache.evicted_bytes;
        gauge "checkpoint_timestamp_seconds"
            "When the newest checkpoint was written, in seconds since 1970; 0 without one."
            = newest_ms as f64 / 1e3;
    }
}

pub(super) fn flush(text: &mut Text, stats: &Stats) {
    let flush = &stats.flush;
    figures! { text;
        counter "flushes_total" "Partitions flushed." = flush.flushes;
        counter "flushes_failed_total" "Flushes that failed." = flush.failed;
        counter "flush_samples_total" "Samples and late operations flushed." = flush.samples;
        counter "flush_written_bytes_total" "Bytes of blocks and series files that flushes wrote."
            = flush.bytes_written;
        counter "flush_seconds_total" "Time spent in flushes." = seconds(flush.total_ns);
        gauge "flush_last_seconds" "Duration of the last flush." = seconds(flush.last_ns);
    }
}

pub(super) fn merges(text: &mut Text, stats: &MergeStats) {
    text.family("merges_total", Kind::Counter, "Merges of blocks.");
    text.labelled(&[("kind", "base")], stats.base_merges);
    text.labelled(&[("kind", "late")], stats.late_merges);
    text.labelled(&[("kind", "fold")], stats.folds);
    figures! { text;
        counter "merge_failures_total" "Merges that failed." = stats.failures;
        counter "merge_read_bytes_total" "Bytes that merges read." = stats.bytes_read;
        counter "merge_written_bytes_total" "Bytes that merges wrote." = stats.bytes_written;
        counter "dropped_bytes_total" "Bytes of blocks dropped by retention and disk budget."
            = stats.bytes_dropped;
    }
    text.family("blocks", Kind::Gauge, "Number of blocks.");
    text.labelled(&[("kind", "base")], stats.base_blocks);
    text.labelled(&[("kind", "late")], stats.late_blocks);
    text.family("block_bytes", Kind::Gauge, "Bytes of blocks.");
    text.labelled(&[("kind", "base")], stats.base_bytes);
    text.labelled(&[("kind", "late")], stats.late_bytes);
}

pub(super) fn disk(text: &mut Text, shared: &Shared) {
    let budget = shared.db.shown().disk_budget_stats();
    figures! { text;
        gauge "kept_from_seconds"
            "Unix time of the oldest samples kept by retention and disk budget (0 = all)."
            = shared.db.shown().floor() as f64 / 1e3;
        gauge "clock_jump_seconds"
            "Seconds by which the wall clock is ahead of the time that retention trusts, negative if behind."
            = shared.db.shown().clock_jump_ms() as f64 / 1e3;
        gauge "disk_budget_bytes" "Disk budget in bytes (0 = unlimited)." = budget.budget_bytes;
        gauge "disk_used_bytes" "Bytes of all files." = budget.used_bytes;
        counter "disk_stalls_total" "Writes that waited for disk." = budget.stalls;
        counter "disk_stalled_seconds_total" "Time that writes waited for disk."
            = seconds(budget.stalled_ns);
        counter "disk_refused_total" "Writes refused for lack of disk." = budget.refused.count;
    }
}

pub(super) fn recovery(text: &mut Text, shared: &Shared) {
    let recovery = shared.db.shown().recovery();
    let lost_groups: u64 = recovery.log.holes.iter().map(|hole| hole.groups).sum();
    figures! { text;
        gauge "recovery_seconds" "Duration of loading the data at start."
            = seconds(recovery.duration_ns);
        gauge "recovery_samples" "Samples replayed from the log at start." = recovery.samples;
        gauge "recovery_clean" "1 if the last stop was clean." = u8::from(recovery.log.clean);
        gauge "recovery_lost_groups" "Groups of the log lost to damage." = lost_groups;
        gauge "recovery_bad_blocks" "Blocks found missing or damaged at start."
            = recovery.blocks_lost.len() + recovery.blocks_damaged.len();
        gauge "quarantined_files" "Files in quarantine at start." = recovery.quarantined.len();
        gauge "quarantine_unaccepted"
            "Damaged files and parts of the log that nobody has accepted."
            = shared.db.shown().doubts().len();
    }
}

pub(super) fn stages(text: &mut Text, shared: &Shared) {
    let figures = shared.db.stages().figures();
    let help = "Time in each stage of a write, projected from the batches that are timed.";
    text.family("stage_seconds_total", Kind::Counter, help);
    for figures in &figures {
        let total_s = seconds(figures.total_ns);
        text.labelled(&[("stage", figures.stage.name())], total_s);
    }
    let help = "Passes through each stage of a write.";
    text.family("stage_events_total", Kind::Counter, help);
    for figures in &figures {
        text.labelled(&[("stage", figures.stage.name())], figures.events);
    }
}
