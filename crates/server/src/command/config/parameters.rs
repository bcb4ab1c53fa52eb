//! The parameters of CONFIG, one row each.
//!
//! `ts-*` are those of RedisTimeSeries; the rest are what clients and tools
//! ask a Redis server for, answered truthfully, and Latewood's own settings.

use crate::command::fault::Fault;
use crate::messaging::BufferLimit;
use crate::messaging::Notify;
use crate::state::Shared;
use latewood_engine::{Defaults, Durability};
use latewood_model::limits::{ARGUMENT_BYTES_MAX, CHUNK_SIZE_BYTES_MAX, CHUNK_SIZE_BYTES_MIN};
use latewood_model::{CompactionPolicy, DuplicatePolicy, Encoding};
use std::sync::atomic::Ordering;

/// A change that was parsed and checked.
pub(crate) type Change = Box<dyn FnOnce(&Shared) -> Result<(), Fault>>;

/// One parameter.
pub(crate) struct Parameter {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Its value as text.
    pub(crate) get: fn(&Shared) -> String,
    /// How it is set.
    pub(crate) set: Set,
}

/// Whether and how a parameter can be set.
#[derive(Clone, Copy)]
pub(crate) enum Set {
    /// Only at start.
    Never,
    /// By parsing a text into a change, or a reason why not.
    By(fn(&str) -> Result<Change, String>),
}

pub(super) const fn fixed(name: &'static str, get: fn(&Shared) -> String) -> Parameter {
    Parameter {
        name,
        get,
        set: Set::Never,
    }
}

pub(super) const fn settable(
    name: &'static str,
    get: fn(&Shared) -> String,
    set: fn(&str) -> Result<Change, String>,
) -> Parameter {
    Parameter {
        name,
        get,
        set: Set::By(set),
    }
}

/// Every parameter.
pub(crate) const PARAMETERS: &[Parameter] = &[
    settable(
        "ts-duplicate-policy",
        |shared| shared.db.defaults().duplicate_policy.name().to_owned(),
        set_duplicate_policy,
    ),
    settable(
        "ts-encoding",
        |shared| shared.db.defaults().series.encoding.name().to_owned(),
        set_encoding,
    ),
    settable(
        "ts-chunk-size-bytes",
        |shared| shared.db.defaults().series.chunk_size_bytes.to_string(),
        set_chunk_size,
    ),
    settable(
        "ts-retention-policy",
        |shared| shared.db.defaults().series.retention_ms.to_string(),
        set_retention,
    ),
    settable(
        "ts-ignore-max-time-diff",
        |shared| {
            let ignore = shared.db.defaults().series.ignore;
            ignore.max_time_diff_ms.to_string()
        },
        set_ignore_time,
    ),
    settable(
        "ts-ignore-max-val-diff",
        |shared| format!("{:.6}", shared.db.defaults().series.ignore.max_value_diff),
        set_ignore_value,
    ),
    settable(
        "ts-compaction-policy",
        |shared| shared.db.defaults().compactions.as_str().to_owned(),
        set_compaction_policy,
    ),
    settable(
        "maxclients",
        |shared| {
            let runtime = &shared.runtime;
            runtime.connections_max.load(Ordering::Relaxed).to_string()
        },
        set_connections_max,
    ),
    settable(
        "timeout",
        |shared| {
            let runtime = &shared.runtime;
            runtime.idle_timeout_s.load(Ordering::Relaxed).to_string()
        },
        set_idle_timeout,
    ),
    settable(
        "notify-keyspace-events",
        |shared| shared.events.notify().letters(),
        set_notify,
    ),
    settable(
        "client-output-buffer-limit",
        |shared| shared.channels().limit.read().to_string(),
        set_buffer_limit,
    ),
    settable(
        "requirepass",
        |shared| shared.runtime.password(),
        set_password,
    ),
    settable(
        "protected-mode",
        |shared| yes_or_no(shared.runtime.protected_mode.load(Ordering::Relaxed)),
        set_protected_mode,
    ),
    fixed("dir", |shared| {
        let dir = &shared.settings.dir;
        let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        absolute.display().to_string()
    }),
    fixed("port", first_port),
    fixed("bind", |shared| {
        let hosts = shared.settings.listen.iter();
        let hosts = hosts.filter_map(|listen| listen.rsplit_once(':'));
        hosts.map(|(host, _)| host).collect::<Vec<_>>().join(" ")
    }),
    fixed("unixsocket", |shared| {
        let path = shared.settings.unixsocket.as_ref();
        path.map_or_else(String::new, |path| path.display().to_string())
    }),
    fixed("aclfile", |shared| {
        let path = shared.settings.aclfile.as_ref();
        path.map_or_else(String::new, |path| path.display().to_string())
    }),
    fixed("acl-pubsub-default", |_| "resetchannels".to_owned()),
    fixed("acllog-max-len", |_| {
        crate::acl::log::ENTRIES_MAX.to_string()
    }),
    fixed("ts-num-threads", |shared| {
        shared.settings.query_threads.to_string()
    }),
    fixed("ts-libmr-protocol", |_| "INTERNAL".to_owned()),
    fixed("ts-topology-events", |_| "yes".to_owned()),
    fixed("databases", |_| "1".to_owned()),
    fixed("save", |_| String::new()),
    fixed("appendonly", |shared| yes_or_no(shared.settings.wal)),
    fixed("appendfsync", |shared| {
        let name = match shared.settings.durability {
            Durability::Sync => "always",
            Durability::Interval => "everysec",
            Durability::None => "no",
        };
        name.to_owned()
    }),
    fixed("maxmemory-policy", |_| "noeviction".to_owned()),
    fixed("proto-max-bulk-len", |_| ARGUMENT_BYTES_MAX.to_string()),
    fixed("io-threads", |shared| shared.settings.threads.to_string()),
    fixed("loglevel", |shared| {
        shared.settings.log_level.name().to_owned()
    }),
    fixed("durability", |shared| {
        shared.settings.durability.name().to_owned()
    }),
    fixed("sync-interval", |shared| {
        shared.settings.sync_interval_ms.to_string()
    }),
    fixed("strict", |shared| yes_or_no(shared.settings.strict)),
    fixed("wal", |shared| {
        if shared.settings.wal { "on" } else { "off" }.to_owned()
    }),
    fixed("threads", |shared| shared.settings.threads.to_string()),
    fixed("listen", |shared| shared.settings.listen.join(" ")),
    fixed("log-level", |shared| {
        shared.settings.log_level.name().to_owned()
    }),
];

/// The port of the first TCP address, 0 without one.
pub(crate) fn first_port(shared: &Shared) -> String {
    let first = shared.settings.listen.first();
    let port = first.and_then(|listen| listen.rsplit_once(':'));
    port.map_or_else(|| "0".to_owned(), |(_, port)| port.to_owned())
}

pub(super) fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// A change of the defaults of new series.
fn change_defaults(change: impl FnOnce(&mut Defaults) + 'static) -> Change {
    Box::new(move |shared| Ok(shared.db.change_defaults(change)?))
}

pub(super) fn integer(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let value: i64 = text
        .parse()
        .map_err(|_| "argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "argument must be between {min} and {max} inclusive"
    ))
}

fn ts_integer(name: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    let value = text.parse().ok();
    value
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| out_of_range(name, min, max))
}

fn out_of_range(name: &str, min: impl ToString, max: impl ToString) -> String {
    let (min, max) = (min.to_string(), max.to_string());
    format!("Invalid value for `{name}`. Value must be in the range [{min} .. {max}]")
}

const MILLISECONDS_MAX: u64 = i64::MAX as u64;

fn set_duplicate_policy(text: &str) -> Result<Change, String> {
    let policy = DuplicatePolicy::parse(text.as_bytes())
        .ok_or_else(|| format!("Invalid duplicate policy: {text}"))?;
    Ok(change_defaults(move |defaults| {
        defaults.duplicate_policy = policy;
    }))
}

fn set_encoding(text: &str) -> Result<Change, String> {
    let encoding =
        Encoding::parse(text.as_bytes()).ok_or_else(|| format!("Invalid encoding: {text}"))?;
    Ok(change_defaults(move |defaults| {
        defaults.series.encoding = encoding;
    }))
}

fn set_chunk_size(text: &str) -> Result<Change, String> {
    let name = "ts-chunk-size-bytes";
    let (min, max) = (CHUNK_SIZE_BYTES_MIN, CHUNK_SIZE_BYTES_MAX);
    let bytes = ts_integer(name, text, min.into(), max.into())?;
    if bytes % 8 != 0 {
        return Err(format!(
            "Invalid value for `{name}`. Value must be a multiple of 8"
        ));
    }
    let bytes = u32::try_from(bytes).map_err(|_| out_of_range(name, min, max))?;
    Ok(change_defaults(move |defaults| {
        defaults.series.chunk_size_bytes = bytes;
    }))
}

fn set_retention(text: &str) -> Result<Change, String> {
    let retention_ms = ts_integer("ts-retention-policy", text, 0, MILLISECONDS_MAX)?;
    Ok(change_defaults(move |defaults| {
        defaults.series.retention_ms = retention_ms;
    }))
}

fn set_ignore_time(text: &str) -> Result<Change, String> {
    let max_ms = ts_integer("ts-ignore-max-time-diff", text, 0, MILLISECONDS_MAX)?;
    Ok(change_defaults(move |defaults| {
        defaults.series.ignore.max_time_diff_ms = max_ms;
    }))
}

fn set_ignore_value(text: &str) -> Result<Change, String> {
    let parsed: Option<f64> = text.parse().ok();
    let value = parsed
        .filter(|value| (0.0..=f64::MAX).contains(value))
        .ok_or_else(|| out_of_range("ts-ignore-max-val-diff", 0, f64::MAX))?;
    Ok(change_defaults(move |defaults| {
        defaults.series.ignore.max_value_diff = value;
    }))
}

fn set_compaction_policy(text: &str) -> Result<Change, String> {
    let compactions = CompactionPolicy::parse(text)
        .ok_or_else(|| format!("Invalid compaction policy: {text}"))?;
    Ok(change_defaults(move |defaults| {
        defaults.compactions = compactions;
    }))
}

fn set_connections_max(text: &str) -> Result<Change, String> {
    let connections = integer(text, 1, i64::from(u32::MAX))?;
    Ok(Box::new(move |shared| {
        let connections = usize::try_from(connections).unwrap_or(usize::MAX);
        let cell = &shared.runtime.connections_max;
        cell.store(connections, Ordering::Relaxed);
        Ok(())
    }))
}

fn set_idle_timeout(text: &str) -> Result<Change, String> {
    let seconds = integer(text, 0, i64::from(i32::MAX))?;
    Ok(Box::new(move |shared| {
        let cell = &shared.runtime.idle_timeout_s;
        cell.store(seconds.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }))
}

fn set_notify(text: &str) -> Result<Change, String> {
    let letters = Notify::LETTERS;
    let notify = Notify::parse(text.as_bytes())
        .ok_or_else(|| format!("Invalid event class character. Use {letters}."))?;
    Ok(Box::new(move |shared| {
        shared.events.set_notify(notify);
        Ok(())
    }))
}

fn set_buffer_limit(text: &str) -> Result<Change, String> {
    BufferLimit::default().changed_by(text)?;
    let text = text.to_owned();
    Ok(Box::new(move |shared| {
        let mut limit = shared.channels().limit.write();
        *limit = limit
            .changed_by(&text)
            .map_err(|text| Fault::Line(text.into()))?;
        Ok(())
    }))
}

fn set_password(text: &str) -> Result<Change, String> {
    let password = text.to_owned();
    Ok(Box::new(move |shared| {
        shared.runtime.set_password(password);
        Ok(())
    }))
}

pub(super) fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn set_protected_mode(text: &str) -> Result<Change, String> {
    let on = yes_no(text)?;
    Ok(Box::new(move |shared| {
        shared.runtime.protected_mode.store(on, Ordering::Relaxed);
        Ok(())
    }))
}
