//! Options of the database: durability, budgets, retention, defaults of new series.

use super::kind::{Kind, Written, word};
use super::range::{
    CHUNK_SIZE, DISK_BUDGET, FLUSH_AGE, HZ, LOG_MAX, MEMORY, PARK_AFTER, QUERY_THREADS, RETENTION,
    SERIES, SYNC_INTERVAL, TS_IGNORE_TIME, TS_RETENTION,
};
use super::row::{Row, computed, row};
use crate::state::{DumpFormat, Settings, Shared};
use latewood_engine::{DropEmpty, Durability, Result};
use latewood_model::{CompactionPolicy, Compatibility, DuplicatePolicy, Encoding};
use std::sync::atomic::Ordering;

pub(super) const ROWS: &[Row] = &[
    row("dir DIR", "latewood-data")
        .is(Kind::Form {
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
        })
        .help("Data directory; created if missing"),
    computed("durability MODE", "interval; with --log sync")
        .is(word!(
            "durability",
            Durability::of_name,
            durability,
            "sync, interval or none"
        ))
        .help(
            "When an acknowledged write is on disk, or in Kafka with --log: before its reply, \
             within the sync interval, or whenever the kernel writes it",
        ),
    row("sync-interval MS", "1000")
        .is(Kind::Number(SYNC_INTERVAL, |of| &mut of.sync_interval_ms))
        .help("Longest time an acknowledged write waits for the disk under --durability interval"),
    row("wal on|off", "on")
        .is(Kind::OnOff(|of| &mut of.wal))
        .help(
            "Keep a write-ahead log. Off: a crash loses every sample that is not yet in a \
             block; for benchmarks only",
        ),
    row("strict on|off", "off")
        .is(Kind::YesNo(|of| &mut of.strict))
        .help(
            "Refuse to start if data is damaged, instead of moving it into DIR/quarantine and \
             serving the rest",
        ),
    computed(
        "memory BYTES",
        "half of the memory of the machine or control group",
    )
    .is(Kind::Bytes(MEMORY, |of| &mut of.memory_bytes))
    .help(
        "Memory budget of the process: near it samples are flushed to disk, at it writes \
             are refused; 0 is unlimited",
    )
    .live(|shared, settings| {
        shared.db.set_memory_limit(settings.memory_bytes);
        Ok(())
    }),
    row("max-series N", "0")
        .is(Kind::Number(SERIES, |of| &mut of.series_max))
        .help("Maximum number of series; 0 is unlimited")
        .live(|shared, settings| {
            shared.db.set_series_max(settings.series_max);
            Ok(())
        }),
    row("max-query-series N", "0")
        .is(Kind::Number(SERIES, |of| &mut of.query_series_max))
        .help("Maximum number of series that the filter of one query may match; 0 is unlimited")
        .live(|shared, settings| {
            shared.db.set_query_series_max(settings.query_series_max);
            Ok(())
        }),
    row("flush-age SECONDS", "3600")
        .is(Kind::Number(FLUSH_AGE, |of| &mut of.flush_age_s))
        .help("Longest time samples are in memory and in the log only")
        .live(|shared, settings| {
            shared.db.set_flush_age_ms(settings.flush_age_s * 1000);
            Ok(())
        }),
    row("log-max BYTES", "1gb")
        .is(Kind::Bytes(LOG_MAX, |of| &mut of.log_bytes_max))
        .help("Size of the log at which its samples are flushed into blocks")
        .live(|shared, settings| {
            shared.db.set_log_bytes_max(settings.log_bytes_max);
            Ok(())
        }),
    row("retention TIME", "0")
        .is(Kind::Time(RETENTION, |of| &mut of.retention_ms))
        .help(
            "How long samples of all series are kept by the wall clock, such as 90d or 12h; \
             older samples are refused; 0 keeps them forever",
        )
        .live(|shared, settings| shared.db.set_retention_ms(settings.retention_ms)),
    row("drop-empty-series WHICH", "sent")
        .is(word!(
            "drop-empty-series",
            DropEmpty::of_name,
            drop_empty,
            "sent, all or none"
        ))
        .help(
            "Which series are removed once all their samples are past --retention, the disk \
             budget or their own retention: those of senders and rules, all with samples, or none",
        )
        .live(|shared, settings| {
            shared.db.set_drop_empty(settings.drop_empty);
            Ok(())
        }),
    row("park-after TIME", "15m")
        .is(Kind::Time(PARK_AFTER, |of| &mut of.park_after_ms))
        .help(
            "How long after its last write a series leaves memory, once all its samples are in \
             blocks; it is read and written as before; 0 keeps all series in memory",
        )
        .live(|shared, settings| {
            shared.db.set_park_after_ms(settings.park_after_ms);
            Ok(())
        }),
    row("hz N", "10")
        .is(Kind::Number(HZ, |of| &mut of.expiry_hz))
        .help("How many times a second expired series are looked for, to be removed")
        .live(|shared, settings| {
            shared.db.set_expiry_hz(settings.expiry_hz as u32);
            Ok(())
        }),
    row("disk-budget BYTES", "0")
        .is(Kind::Bytes(DISK_BUDGET, |of| &mut of.disk_budget_bytes))
        .help(
            "Target size of all files, such as 100gb: above it the oldest samples are removed; \
             0 is unlimited",
        )
        .live(|shared, settings| shared.db.set_disk_budget(settings.disk_budget_bytes)),
    row("ts-compatibility VERSION", "8.10")
        .is(word!(
            "RedisTimeSeries version",
            Compatibility::of_name,
            compatibility,
            "1.12 or 8.10"
        ))
        .help(
            "The version of RedisTimeSeries that TS commands, INFO and HELLO answer as, where \
             versions differ; a connection chooses its own with CLIENT TSVERSION",
        )
        .live(|shared, settings| {
            shared.runtime.set_compatibility(settings.compatibility);
            set_defaults(shared, settings)
        }),
    row("dump-format FORMAT", "latewood")
        .is(word!(
            "dump format",
            DumpFormat::of_name,
            dump_format,
            "latewood or redis"
        ))
        .help(
            "In whose form DUMP writes a series: Latewood's own, or that of RedisTimeSeries 1.12 \
             and later for its RESTORE; RESTORE here takes both",
        )
        .live(|shared, settings| {
            let for_redis = settings.dump_format == DumpFormat::Redis;
            shared
                .runtime
                .dumps_for_redis
                .store(for_redis, Ordering::Relaxed);
            Ok(())
        }),
    row("ts-duplicate-policy POLICY", "block")
        .is(word!(
            "duplicate policy",
            DuplicatePolicy::of_name,
            defaults.duplicate_policy,
            "block, first, last, min, max or sum"
        ))
        .help(
            "Duplicate policy of new series, and of those without their own, such as all new ones \
             under --ts-compatibility 1.12",
        )
        .live(set_defaults),
    row("ts-encoding ENCODING", "compressed")
        .is(word!(
            "encoding",
            Encoding::of_name,
            defaults.series.encoding,
            "compressed or uncompressed"
        ))
        .help("Encoding of new series")
        .live(set_defaults),
    row("ts-chunk-size-bytes BYTES", "4096")
        .is(Kind::Form {
            takes: "48 to 1048576, a multiple of 8",
            written: Written::Whole,
            put: put_chunk_size,
            show: |settings| settings.defaults.series.chunk_size_bytes.to_string(),
        })
        .help("Chunk size of new series")
        .live(set_defaults),
    row("ts-retention-policy MS", "0")
        .is(Kind::Number(TS_RETENTION, |of| {
            &mut of.defaults.series.retention_ms
        }))
        .help("Retention of new series; 0 keeps all samples")
        .live(set_defaults),
    row("ts-ignore-max-time-diff MS", "0")
        .is(Kind::Number(TS_IGNORE_TIME, |of| {
            &mut of.defaults.series.ignore.max_time_diff_ms
        }))
        .help("IGNORE of new series: largest difference in time")
        .live(set_defaults),
    row("ts-ignore-max-val-diff DIFF", "0")
        .is(Kind::Form {
            takes: "0 and more",
            written: Written::Number,
            put: put_ignore_value,
            show: |settings| format!("{:.6}", settings.defaults.series.ignore.max_value_diff),
        })
        .help("IGNORE of new series: largest difference in value")
        .live(set_defaults),
    row("ts-compaction-policy POLICY", "")
        .is(Kind::Form {
            takes: "aggregator:bucket:retention[:align], joined by ;",
            written: Written::Text,
            put: put_compactions,
            show: |settings| settings.defaults.compactions.as_str().to_owned(),
        })
        .help(
            "Compaction rules of series that a write creates, with the units m (milliseconds), s, \
             M (minutes), h and d",
        )
        .live(set_defaults),
    row("ts-rule-backfill on|off", "off")
        .is(Kind::YesNo(|of| &mut of.defaults.rule_backfill))
        .help("TS.CREATERULE without BACKFILL computes the history of the source too, as with it")
        .live(set_defaults),
    row("ts-chained-rules on|off", "on")
        .is(Kind::YesNo(|of| &mut of.defaults.chained_rules))
        .help("The destination of a compaction rule may be the source of others, up to 8 in a row")
        .live(set_defaults),
    computed("ts-num-threads N", "one per core, 16 at most")
        .is(Kind::Number(QUERY_THREADS, |of| &mut of.query_threads))
        .help("Threads that share the work of one large query"),
];

fn set_defaults(shared: &Shared, settings: &Settings) -> Result<()> {
    shared.db.set_defaults(settings.defaults())
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
