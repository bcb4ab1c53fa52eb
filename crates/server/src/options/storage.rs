//! Options of the database: durability, budgets, retention, defaults of new series.

use super::kind::{Kind, Written, word};
use super::range::{
    CHUNK_SIZE, DISK_BUDGET, FLUSH_AGE, LOG_MAX, MEMORY, QUERY_THREADS, RETENTION, SERIES,
    SYNC_INTERVAL, TS_IGNORE_TIME, TS_RETENTION,
};
use super::row::{Row, computed, row};
use crate::state::{Settings, Shared};
use latewood_engine::{Durability, Result};
use latewood_model::{CompactionPolicy, DuplicatePolicy, Encoding};

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    row(
        "dir DIR",
        "latewood-data",
        Kind::Form {
            takes: "",
            written: Written::Text,
            put: |settings, text| {
                if text.is_empty() {
                    return Err("the path is empty".to_owned());
                }
                settings.dir = text.into();
                Ok(())
            },
            show: |settings| {
                let dir = &settings.dir;
                let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
                absolute.display().to_string()
            },
        },
        "Data directory; created if missing",
    ),
    computed(
        "durability MODE",
        "interval; with --log sync",
        word!(
            "durability",
            Durability::parse,
            durability,
            "sync, interval or none"
        ),
        "When an acknowledged write is on disk, or in Kafka with --log: before its reply, within the sync interval, \
         or whenever the kernel writes it",
    ),
    row(
        "sync-interval MS",
        "1000",
        Kind::Number(SYNC_INTERVAL, |settings| &mut settings.sync_interval_ms),
        "Longest time an acknowledged write waits for the disk under --durability interval",
    ),
    row(
        "wal on|off",
        "on",
        Kind::OnOff(|settings| &mut settings.wal),
        "Keep a write-ahead log. Off: a crash loses every sample that is not yet in a block; for \
         benchmarks only",
    ),
    row(
        "strict on|off",
        "off",
        Kind::YesNo(|settings| &mut settings.strict),
        "Refuse to start if data is damaged, instead of moving it into DIR/quarantine and \
         serving the rest",
    ),
    computed(
        "memory BYTES",
        "half of the memory of the machine or control group",
        Kind::Bytes(MEMORY, |settings| &mut settings.memory_bytes),
        "Memory budget of the process: near it samples are flushed to disk, at it writes \
         are refused; 0 is unlimited",
    )
    .live(|shared, settings| {
        shared.db.set_memory_limit(settings.memory_bytes);
        Ok(())
    }),
    row(
        "max-series N",
        "0",
        Kind::Number(SERIES, |settings| &mut settings.series_max),
        "Maximum number of series; 0 is unlimited",
    )
    .live(|shared, settings| {
        shared.db.set_series_max(settings.series_max);
        Ok(())
    }),
    row(
        "max-query-series N",
        "0",
        Kind::Number(SERIES, |settings| &mut settings.query_series_max),
        "Maximum number of series that the filter of one query may match; 0 is unlimited",
    )
    .live(|shared, settings| {
        shared.db.set_query_series_max(settings.query_series_max);
        Ok(())
    }),
    row(
        "flush-age SECONDS",
        "3600",
        Kind::Number(FLUSH_AGE, |settings| &mut settings.flush_age_s),
        "Longest time samples are in memory and in the log only",
    )
    .live(|shared, settings| {
        shared.db.set_flush_age_ms(settings.flush_age_s * 1000);
        Ok(())
    }),
    row(
        "log-max BYTES",
        "1gb",
        Kind::Bytes(LOG_MAX, |settings| &mut settings.log_bytes_max),
        "Size of the log at which its samples are flushed into blocks",
    )
    .live(|shared, settings| {
        shared.db.set_log_bytes_max(settings.log_bytes_max);
        Ok(())
    }),
    row(
        "retention TIME",
        "0",
        Kind::Time(RETENTION, |settings| &mut settings.retention_ms),
        "How long samples of all series are kept by the wall clock, such as 90d or 12h; \
         older samples are refused; 0 keeps them forever",
    )
    .live(|shared, settings| shared.db.set_retention_ms(settings.retention_ms)),
    row(
        "disk-budget BYTES",
        "0",
        Kind::Bytes(DISK_BUDGET, |settings| &mut settings.disk_budget_bytes),
        "Target size of all files, such as 100gb: above it the oldest samples are removed; \
         0 is unlimited",
    )
    .live(|shared, settings| shared.db.set_disk_budget(settings.disk_budget_bytes)),
    row(
        "ts-duplicate-policy POLICY",
        "block",
        word!(
            "duplicate policy",
            DuplicatePolicy::parse,
            defaults.duplicate_policy,
            "block, first, last, min, max or sum"
        ),
        "Duplicate policy of series without their own",
    )
    .live(set_defaults),
    row(
        "ts-encoding ENCODING",
        "compressed",
        word!(
            "encoding",
            Encoding::parse,
            defaults.series.encoding,
            "compressed or uncompressed"
        ),
        "Encoding of new series",
    )
    .live(set_defaults),
    row(
        "ts-chunk-size-bytes BYTES",
        "4096",
        Kind::Form {
            takes: "48 to 1048576, a multiple of 8",
            written: Written::Whole,
            put: put_chunk_size,
            show: |settings| settings.defaults.series.chunk_size_bytes.to_string(),
        },
        "Chunk size of new series",
    )
    .live(set_defaults),
    row(
        "ts-retention-policy MS",
        "0",
        Kind::Number(TS_RETENTION, |settings| {
            &mut settings.defaults.series.retention_ms
        }),
        "Retention of new series; 0 keeps all samples",
    )
    .live(set_defaults),
    row(
        "ts-ignore-max-time-diff MS",
        "0",
        Kind::Number(TS_IGNORE_TIME, |settings| {
            &mut settings.defaults.series.ignore.max_time_diff_ms
        }),
        "IGNORE of new series: largest difference in time",
    )
    .live(set_defaults),
    row(
        "ts-ignore-max-val-diff DIFF",
        "0",
        Kind::Form {
            takes: "0 and more",
            written: Written::Number,
            put: put_ignore_value,
            show: |settings| format!("{:.6}", settings.defaults.series.ignore.max_value_diff),
        },
        "IGNORE of new series: largest difference in value",
    )
    .live(set_defaults),
    row(
        "ts-compaction-policy POLICY",
        "",
        Kind::Form {
            takes: "aggregator:bucket:retention[:align], joined by ;",
            written: Written::Text,
            put: put_compactions,
            show: |settings| settings.defaults.compactions.as_str().to_owned(),
        },
        "Compaction rules of series that a write creates, with the units m (milliseconds), s, \
         M (minutes), h and d",
    )
    .live(set_defaults),
    computed(
        "ts-num-threads N",
        "one per core, 16 at most",
        Kind::Number(QUERY_THREADS, |settings| &mut settings.query_threads),
        "Threads that share the work of one large query",
    ),
];

fn set_defaults(shared: &Shared, settings: &Settings) -> Result<()> {
    shared.db.set_defaults(settings.defaults.clone())
}

fn put_chunk_size(settings: &mut Settings, text: &str) -> std::result::Result<(), String> {
    let bytes = CHUNK_SIZE.number(text)?;
    if bytes % 8 != 0 {
        let name = "ts-chunk-size-bytes";
        return Err(format!(
            "Invalid value for `{name}`. Value must be a multiple of 8"
        ));
    }
    // At most a mebibyte, which fits.
    settings.defaults.series.chunk_size_bytes = bytes as u32;
    Ok(())
}

fn put_ignore_value(settings: &mut Settings, text: &str) -> std::result::Result<(), String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (0.0..=f64::MAX).contains(value));
    settings.defaults.series.ignore.max_value_diff = value.ok_or_else(|| {
        let (name, max) = ("ts-ignore-max-val-diff", f64::MAX);
        format!("Invalid value for `{name}`. Value must be in the range [0 .. {max}]")
    })?;
    Ok(())
}

fn put_compactions(settings: &mut Settings, text: &str) -> std::result::Result<(), String> {
    let compactions = CompactionPolicy::parse(text);
    settings.defaults.compactions =
        compactions.map_err(|error| format!("Invalid compaction policy: {text}: {error}"))?;
    Ok(())
}
