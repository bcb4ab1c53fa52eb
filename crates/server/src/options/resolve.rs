//! From options that may be missing to settings that are all there.
//!
//! Precedence: flag, environment, file, default. The first two are clap's
//! work; this module reads the file and fills in the defaults. Values are
//! checked here, once, so that the server starts with good settings or not at
//! all. Tested by `tests.rs` and by `tests/config.rs` on the real process.

use super::plain::plain;
use super::senders;
use super::serve::ServeOptions;
use crate::base::ranges::{self, Range};
use crate::base::size::Size;
use crate::base::switch::Switch;
use crate::messaging::Notify;
use crate::state::{LogLevel, Settings, TsDefaults};
use latewood_engine::Durability;
use latewood_engine::io::Env;
use latewood_model::limits::CONNECTIONS_DEFAULT;
use latewood_model::{CompactionPolicy, DuplicatePolicy, Encoding, Ignore, SeriesOptions};
use std::path::{Path, PathBuf};

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is no TOML, or names something unknown.
    #[error("the configuration file {path} is wrong: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why, from the TOML reader.
        message: String,
    },
    /// A value is out of its range.
    #[error("{option}: {reason}")]
    Value {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Fills what `given` leaves open from its file and the defaults.
///
/// # Errors
/// An unreadable or wrong file, or a value out of its range.
pub(crate) fn resolve(given: ServeOptions) -> Result<Settings, ConfigError> {
    let options = match given.config.clone() {
        Some(path) => given.or(read_file(&path)?),
        None => given,
    };
    let threads = match options.threads.unwrap_or(0) {
        0 => threads_default(),
        n if n > THREADS_MAX => {
            return Err(value("threads", format!("{n} is more than {THREADS_MAX}")));
        }
        n => n,
    };
    let listen = options
        .listen
        .clone()
        .unwrap_or_else(|| vec!["127.0.0.1:6379".to_owned()]);
    let ts = ts_defaults(&options)?;
    let senders = senders::resolve(&options)?;
    Ok(Settings {
        dir: options.dir.unwrap_or_else(|| "latewood-data".into()),
        listen: listen.into_iter().filter(|l| !l.is_empty()).collect(),
        unixsocket: options.unixsocket,
        requirepass: options.requirepass.unwrap_or_default(),
        aclfile: options.aclfile,
        users: options.user.unwrap_or_default(),
        protected_mode: options.protected_mode != Some(Switch::Off),
        durability: options
            .durability
            .map_or(Durability::Interval, Durability::from),
        sync_interval_ms: sync_interval(options.sync_interval)?,
        wal: options.wal != Some(Switch::Off),
        strict: options.strict == Some(Switch::On),
        memory_bytes: match options.memory {
            None => memory_default(),
            Some(Size(bytes)) => ranged("memory", Some(bytes), 0, ranges::MEMORY)?,
        },
        flush_age_s: flush_age(options.flush_age)?,
        series_max: ranged("max-series", options.max_series, 0, ranges::SERIES)?,
        query_series_max: query_series(options.max_query_series)?,
        log_bytes_max: ranged(
            "log-max",
            options.log_max.map(|size| size.0),
            LOG_BYTES_MAX,
            ranges::LOG_MAX,
        )?,
        retention_ms: ranged(
            "retention",
            options.retention.map(|age| age.0),
            0,
            ranges::RETENTION,
        )?,
        disk_budget_bytes: ranged(
            "disk-budget",
            options.disk_budget.map(|size| size.0),
            0,
            ranges::DISK_BUDGET,
        )?,
        threads,
        query_threads: query_threads(options.ts_num_threads)?,
        connections_max: connections(options.maxclients)?,
        idle_timeout_s: ranged("timeout", options.timeout, 0, ranges::TIMEOUT)?,
        notify: notify(options.notify_keyspace_events.as_deref())?,
        log_level: options.log_level.unwrap_or(LogLevel::Info),
        log_format: options.log_format.unwrap_or_default(),
        ts,
        senders,
    })
}

/// Half of what the process may have; no limit where the system does not say.
fn memory_default() -> u64 {
    let memory_bytes = Env::real().process.memory_bytes();
    memory_bytes.map_or(0, |bytes| bytes / 2)
}

fn sync_interval(wanted: Option<u64>) -> Result<u64, ConfigError> {
    ranged("sync-interval", wanted, 1000, ranges::SYNC_INTERVAL)
}

fn flush_age(wanted: Option<u64>) -> Result<u64, ConfigError> {
    ranged("flush-age", wanted, FLUSH_AGE_S, ranges::FLUSH_AGE)
}

fn query_series(wanted: Option<u64>) -> Result<u64, ConfigError> {
    ranged("max-query-series", wanted, 0, ranges::SERIES)
}

fn connections(wanted: Option<usize>) -> Result<usize, ConfigError> {
    let wanted = wanted.unwrap_or(CONNECTIONS_DEFAULT);
    ranged("maxclients", Some(wanted as u64), 0, ranges::CONNECTIONS).map(|_| wanted)
}

/// What the option says, its default where it says nothing, if it is in range.
pub(crate) fn ranged(
    option: &'static str,
    wanted: Option<u64>,
    default: u64,
    range: Range,
) -> Result<u64, ConfigError> {
    let checked = wanted.map_or(Ok(default), |wanted| range.check(wanted));
    checked.map_err(|reason| value(option, reason))
}

fn query_threads(wanted: Option<usize>) -> Result<usize, ConfigError> {
    match wanted {
        None => Ok(cores().min(QUERY_THREADS_MAX)),
        Some(n @ 1..=QUERY_THREADS_MAX) => Ok(n),
        Some(n) => Err(value(
            "ts-num-threads",
            format!("{n} is not between 1 and {QUERY_THREADS_MAX}"),
        )),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn notify(letters: Option<&str>) -> Result<Notify, ConfigError> {
    let letters = letters.unwrap_or_default();
    Notify::parse(letters.as_bytes()).ok_or_else(|| {
        value(
            "notify-keyspace-events",
            format!(
                "{letters:?} holds a letter that is none of {}",
                Notify::LETTERS
            ),
        )
    })
}

/// An hour.
const FLUSH_AGE_S: u64 = 3600;
/// Some ten seconds of replay.
const LOG_BYTES_MAX: u64 = 1 << 30;
/// More event loops than any machine has cores for.
const THREADS_MAX: usize = 1024;
/// As many as RedisTimeSeries allows.
const QUERY_THREADS_MAX: usize = 16;

fn ts_defaults(options: &ServeOptions) -> Result<TsDefaults, ConfigError> {
    let policy = options.ts_duplicate_policy.as_deref().unwrap_or("block");
    let encoding = options.ts_encoding.as_deref().unwrap_or("compressed");
    let base = SeriesOptions::default();
    let series = SeriesOptions {
        retention_ms: options.ts_retention_policy.unwrap_or(base.retention_ms),
        chunk_size_bytes: options.ts_chunk_size_bytes.unwrap_or(base.chunk_size_bytes),
        encoding: Encoding::parse(encoding.as_bytes()).ok_or_else(|| {
            value(
                "ts-encoding",
                format!("there is no encoding {encoding:?}: it is compressed or uncompressed"),
            )
        })?,
        ignore: Ignore {
            max_time_diff_ms: options.ts_ignore_max_time_diff.unwrap_or(0),
            max_value_diff: options.ts_ignore_max_val_diff.unwrap_or(0.0),
        },
        ..base
    };
    series
        .check()
        .map_err(|error| value("ts-chunk-size-bytes or ts-ignore", error.to_string()))?;
    let duplicate_policy = duplicate_policy("ts-duplicate-policy", policy)?;
    let text = options.ts_compaction_policy.as_deref().unwrap_or_default();
    let compactions = CompactionPolicy::parse(text).ok_or_else(|| {
        value(
            "ts-compaction-policy",
            format!("Invalid compaction policy: {text}"),
        )
    })?;
    Ok(TsDefaults {
        duplicate_policy,
        series,
        compactions,
    })
}

fn read_file(path: &Path) -> Result<ServeOptions, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        message: plain(&error.to_string()),
    })
}

/// The duplicate policy that `option` names.
pub(crate) fn duplicate_policy(
    option: &'static str,
    name: &str,
) -> Result<DuplicatePolicy, ConfigError> {
    DuplicatePolicy::parse(name.as_bytes()).ok_or_else(|| {
        let known = "it is one of block, first, last, min, max or sum";
        value(
            option,
            format!("there is no duplicate policy {name:?}: {known}"),
        )
    })
}

pub(crate) fn value(option: &'static str, reason: String) -> ConfigError {
    ConfigError::Value { option, reason }
}

/// Event loops unless asked otherwise: all cores but one. Settling, syncing and
/// the kernel's share of the network need that one; with a loop on every core
/// they make some connections wait for a turn of the scheduler.
fn threads_default() -> usize {
    cores().saturating_sub(1).max(1)
}
