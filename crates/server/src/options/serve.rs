//! The options of `latewood serve`.
//!
//! Every option of `serve` is optional here: what the flag and the environment
//! leave open is taken from the configuration file, then from the defaults
//! (`resolve.rs`). The same struct is read from the command line and from the
//! file, so that no option can exist in one and not in the other.

use crate::base::age::Age;
use crate::base::size::Size;
use crate::base::switch::Switch;
use crate::state::{LogFormat, LogLevel};
use clap::{Args, ValueEnum};
use latewood_engine::Durability;
use serde::Deserialize;
use std::path::PathBuf;

/// The options of `latewood serve`, as far as they were given.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServeOptions {
    /// Read further options from this TOML file.
    #[arg(long, value_name = "FILE", env = "LATEWOOD_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// Directory of the data; created where missing [default: ./latewood-data]
    #[arg(long, value_name = "DIR", env = "LATEWOOD_DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Address and port to serve; may be given several times [default: 127.0.0.1:6379]
    #[arg(
        long,
        value_name = "ADDR:PORT",
        env = "LATEWOOD_LISTEN",
        value_delimiter = ','
    )]
    pub(crate) listen: Option<Vec<String>>,

    /// Serve a unix socket at this path too.
    #[arg(long, value_name = "PATH", env = "LATEWOOD_UNIXSOCKET")]
    pub(crate) unixsocket: Option<PathBuf>,

    /// Password that clients must give with AUTH or HELLO.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LATEWOOD_REQUIREPASS",
        hide_env_values = true
    )]
    pub(crate) requirepass: Option<String>,

    /// File of the users of ACL SETUSER, read at start and by ACL LOAD,
    /// written by ACL SAVE
    #[arg(long, value_name = "FILE", env = "LATEWOOD_ACLFILE")]
    pub(crate) aclfile: Option<PathBuf>,

    /// A user: its name and its ACL rules; may be given several times, not
    /// beside --aclfile
    #[arg(
        long,
        value_name = "NAME RULES",
        env = "LATEWOOD_USER",
        hide_env_values = true
    )]
    pub(crate) user: Option<Vec<String>>,

    /// Without a password, serve this machine only [default: on]
    #[arg(long, value_name = "on|off", env = "LATEWOOD_PROTECTED_MODE")]
    pub(crate) protected_mode: Option<Switch>,

    /// When an acknowledged write is on disk: before its reply, within the
    /// sync interval, or some time later [default: interval]
    #[arg(long, value_name = "MODE", env = "LATEWOOD_DURABILITY")]
    pub(crate) durability: Option<DurabilityName>,

    /// Longest time an acknowledged write may wait for the disk under
    /// `--durability interval`, in milliseconds [default: 1000]
    #[arg(long, value_name = "MS", env = "LATEWOOD_SYNC_INTERVAL")]
    pub(crate) sync_interval: Option<u64>,

    /// Keep a log; without it a kill loses what is in no block yet. Only there
    /// to measure what the log costs [default: on]
    #[arg(long, value_name = "on|off", env = "LATEWOOD_WAL")]
    pub(crate) wal: Option<Switch>,

    /// Refuse to start over damaged data, instead of moving what is damaged
    /// into DIR/quarantine and serving the rest [default: off]
    #[arg(
        long,
        value_name = "on|off",
        env = "LATEWOOD_STRICT",
        num_args = 0..=1,
        default_missing_value = "on"
    )]
    pub(crate) strict: Option<Switch>,

    /// Memory for the whole process, in bytes or with a unit such as mb or gb:
    /// near it samples go to disk, at it writes are refused; 0 is no limit
    /// [default: half of the machine's or the control group's]
    #[arg(long, value_name = "BYTES", env = "LATEWOOD_MEMORY")]
    pub(crate) memory: Option<Size>,

    /// Series there may be: beyond, new ones are refused; 0 is no limit but
    /// that of ids [default: 0]
    #[arg(long, value_name = "N", env = "LATEWOOD_MAX_SERIES")]
    pub(crate) max_series: Option<u64>,

    /// Series that the filter of one query may match; 0 is no limit
    /// [default: 0]
    #[arg(long, value_name = "N", env = "LATEWOOD_MAX_QUERY_SERIES")]
    pub(crate) max_query_series: Option<u64>,

    /// Longest time samples are in memory and in the log only, in seconds
    /// [default: 3600]
    #[arg(long, value_name = "SECONDS", env = "LATEWOOD_FLUSH_AGE")]
    pub(crate) flush_age: Option<u64>,

    /// How long the log gets before what it holds is written into blocks
    /// [default: 1gb]
    #[arg(long, value_name = "BYTES", env = "LATEWOOD_LOG_MAX")]
    pub(crate) log_max: Option<Size>,

    /// How long samples of any series are kept, by the wall clock, such as 90d
    /// or 12h; older ones are refused; 0 keeps them for ever [default: 0]
    #[arg(long, value_name = "TIME", env = "LATEWOOD_RETENTION")]
    pub(crate) retention: Option<Age>,

    /// Bytes all files should take, such as 100gb: above, the oldest samples
    /// go; 0 is no limit [default: 0]
    #[arg(long, value_name = "BYTES", env = "LATEWOOD_DISK_BUDGET")]
    pub(crate) disk_budget: Option<Size>,

    /// Event loops; 0 means all cores but one [default: 0]
    #[arg(long, value_name = "N", env = "LATEWOOD_THREADS")]
    pub(crate) threads: Option<usize>,

    /// Connections served at a time [default: 10000]
    #[arg(long, value_name = "N", env = "LATEWOOD_MAXCLIENTS")]
    pub(crate) maxclients: Option<usize>,

    /// Close a connection that was idle for so many seconds; 0 never does
    /// [default: 0]
    #[arg(long, value_name = "SECONDS", env = "LATEWOOD_TIMEOUT")]
    pub(crate) timeout: Option<u64>,

    /// Which keyspace events are published, by the letters of Redis
    /// [default: none]
    #[arg(long, value_name = "LETTERS", env = "LATEWOOD_NOTIFY_KEYSPACE_EVENTS")]
    pub(crate) notify_keyspace_events: Option<String>,

    /// How much is logged to standard error [default: info]
    #[arg(long, value_name = "LEVEL", env = "LATEWOOD_LOG_LEVEL")]
    pub(crate) log_level: Option<LogLevel>,

    /// How lines of the log are written: text, or JSON with a field for each
    /// value [default: text]
    #[arg(long, value_name = "FORMAT", env = "LATEWOOD_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    /// Duplicate policy of series that have none of their own: block, first,
    /// last, min, max or sum [default: block]
    #[arg(long, value_name = "POLICY", env = "LATEWOOD_TS_DUPLICATE_POLICY")]
    pub(crate) ts_duplicate_policy: Option<String>,

    /// Encoding of new series: compressed or uncompressed [default: compressed]
    #[arg(long, value_name = "ENCODING", env = "LATEWOOD_TS_ENCODING")]
    pub(crate) ts_encoding: Option<String>,

    /// Chunk size of new series in bytes, 48 to 1048576 and a multiple of 8
    /// [default: 4096]
    #[arg(long, value_name = "BYTES", env = "LATEWOOD_TS_CHUNK_SIZE_BYTES")]
    pub(crate) ts_chunk_size_bytes: Option<u32>,

    /// Retention of new series in milliseconds; 0 keeps everything [default: 0]
    #[arg(long, value_name = "MS", env = "LATEWOOD_TS_RETENTION_POLICY")]
    pub(crate) ts_retention_policy: Option<u64>,

    /// IGNORE of new series: largest difference in time, milliseconds
    /// [default: 0]
    #[arg(long, value_name = "MS", env = "LATEWOOD_TS_IGNORE_MAX_TIME_DIFF")]
    pub(crate) ts_ignore_max_time_diff: Option<u64>,

    /// Threads that share the work of one large query, 1 to 16 [default: one
    /// per core]
    #[arg(long, value_name = "N", env = "LATEWOOD_TS_NUM_THREADS")]
    pub(crate) ts_num_threads: Option<usize>,

    /// IGNORE of new series: largest difference in value [default: 0]
    #[arg(long, value_name = "DIFF", env = "LATEWOOD_TS_IGNORE_MAX_VAL_DIFF")]
    pub(crate) ts_ignore_max_val_diff: Option<f64>,

    /// Compactions of series that a write creates, by TS.ADD, TS.INCRBY,
    /// TS.DECRBY or another protocol than Redis': each
    /// `aggregator:bucket:retention[:align]`, joined by `;`, with the units m
    /// (milliseconds), s, M (minutes), h and d [default: none]
    #[arg(long, value_name = "POLICY", env = "LATEWOOD_TS_COMPACTION_POLICY")]
    pub(crate) ts_compaction_policy: Option<String>,

    /// Address and port to serve HTTP at, or off [default: 127.0.0.1:8086]
    #[arg(long, value_name = "ADDR:PORT|off", env = "LATEWOOD_HTTP")]
    pub(crate) http: Option<String>,

    /// The label that the database or bucket of InfluxDB's senders becomes
    /// [default: none, it means nothing]
    #[arg(long, value_name = "NAME", env = "LATEWOOD_INFLUX_DB_LABEL")]
    pub(crate) influx_db_label: Option<String>,

    /// Duplicate policy of series that other protocols than Redis' create:
    /// block, first, last, min, max or sum [default: last]
    #[arg(long, value_name = "POLICY", env = "LATEWOOD_SENDER_DUPLICATE_POLICY")]
    pub(crate) sender_duplicate_policy: Option<String>,

    /// How far ahead of the clock a timestamp of another protocol than Redis'
    /// may be, such as 1d; later ones are refused, for they are mostly in the
    /// wrong unit; 0 is no limit [default: 1d]
    #[arg(long, value_name = "TIME", env = "LATEWOOD_FUTURE_LIMIT")]
    pub(crate) future_limit: Option<Age>,

    /// Address and port for OpenTSDB's telnet protocol, such as
    /// 127.0.0.1:4242; off unless given
    #[arg(long, value_name = "ADDR:PORT", env = "LATEWOOD_OPENTSDB")]
    pub(crate) opentsdb: Option<String>,

    /// Address and port for Akumuli's native protocol, such as 127.0.0.1:8282;
    /// off unless given
    #[arg(long, value_name = "ADDR:PORT", env = "LATEWOOD_AKUMULI")]
    pub(crate) akumuli: Option<String>,

    /// Address and port for InfluxDB line protocol on plain connections, such
    /// as 127.0.0.1:8094; off unless given
    #[arg(long, value_name = "ADDR:PORT", env = "LATEWOOD_INFLUX_TCP")]
    pub(crate) influx_tcp: Option<String>,

    /// Address and port for InfluxDB line protocol in UDP datagrams, such as
    /// 127.0.0.1:8089; off unless given
    #[arg(long, value_name = "ADDR:PORT", env = "LATEWOOD_INFLUX_UDP")]
    pub(crate) influx_udp: Option<String>,

    /// Unit of the timestamps of these two: ns, us, ms, s, m or h
    /// [default: ns]
    #[arg(long, value_name = "UNIT", env = "LATEWOOD_INFLUX_PRECISION")]
    pub(crate) influx_precision: Option<String>,
}

/// When an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilityName {
    /// Before its reply.
    Sync,
    /// In the kernel before its reply, on disk within the interval.
    Interval,
    /// In the kernel before its reply, on disk when the kernel likes.
    None,
}

impl ServeOptions {
    /// These options, and for each that is missing the one of `fallback`.
    pub(crate) fn or(self, fallback: Self) -> Self {
        Self {
            config: self.config.or(fallback.config),
            dir: self.dir.or(fallback.dir),
            listen: self.listen.or(fallback.listen),
            unixsocket: self.unixsocket.or(fallback.unixsocket),
            requirepass: self.requirepass.or(fallback.requirepass),
            aclfile: self.aclfile.or(fallback.aclfile),
            user: self.user.or(fallback.user),
            protected_mode: self.protected_mode.or(fallback.protected_mode),
            durability: self.durability.or(fallback.durability),
            sync_interval: self.sync_interval.or(fallback.sync_interval),
            wal: self.wal.or(fallback.wal),
            strict: self.strict.or(fallback.strict),
            memory: self.memory.or(fallback.memory),
            max_series: self.max_series.or(fallback.max_series),
            max_query_series: self.max_query_series.or(fallback.max_query_series),
            flush_age: self.flush_age.or(fallback.flush_age),
            log_max: self.log_max.or(fallback.log_max),
            retention: self.retention.or(fallback.retention),
            disk_budget: self.disk_budget.or(fallback.disk_budget),
            threads: self.threads.or(fallback.threads),
            maxclients: self.maxclients.or(fallback.maxclients),
            timeout: self.timeout.or(fallback.timeout),
            notify_keyspace_events: self
                .notify_keyspace_events
                .or(fallback.notify_keyspace_events),
            log_level: self.log_level.or(fallback.log_level),
            log_format: self.log_format.or(fallback.log_format),
            ts_duplicate_policy: self.ts_duplicate_policy.or(fallback.ts_duplicate_policy),
            ts_encoding: self.ts_encoding.or(fallback.ts_encoding),
            ts_chunk_size_bytes: self.ts_chunk_size_bytes.or(fallback.ts_chunk_size_bytes),
            ts_retention_policy: self.ts_retention_policy.or(fallback.ts_retention_policy),
            ts_ignore_max_time_diff: self
                .ts_ignore_max_time_diff
                .or(fallback.ts_ignore_max_time_diff),
            ts_num_threads: self.ts_num_threads.or(fallback.ts_num_threads),
            ts_ignore_max_val_diff: self
                .ts_ignore_max_val_diff
                .or(fallback.ts_ignore_max_val_diff),
            ts_compaction_policy: self.ts_compaction_policy.or(fallback.ts_compaction_policy),
            http: self.http.or(fallback.http),
            influx_db_label: self.influx_db_label.or(fallback.influx_db_label),
            sender_duplicate_policy: self
                .sender_duplicate_policy
                .or(fallback.sender_duplicate_policy),
            future_limit: self.future_limit.or(fallback.future_limit),
            opentsdb: self.opentsdb.or(fallback.opentsdb),
            akumuli: self.akumuli.or(fallback.akumuli),
            influx_tcp: self.influx_tcp.or(fallback.influx_tcp),
            influx_udp: self.influx_udp.or(fallback.influx_udp),
            influx_precision: self.influx_precision.or(fallback.influx_precision),
        }
    }
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Sync => Self::Sync,
            DurabilityName::Interval => Self::Interval,
            DurabilityName::None => Self::None,
        }
    }
}
