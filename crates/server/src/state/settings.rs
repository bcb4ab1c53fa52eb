//! Everything the server needs to know to start, with no gaps. `options` makes it
//! from flags, environment, file and defaults.

use super::line_port::LinePort;
use crate::base::time_limits::TimeLimits;
use crate::messaging::Notify;
use latewood_cluster::topic::Replication;
use latewood_engine::{Defaults, DropEmpty, Durability};
use latewood_model::{Compatibility, DuplicatePolicy, SeriesOptions, named};
use latewood_wire::otlp::Naming;
use std::path::PathBuf;

/// Everything the server needs to know to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Where the data lies.
    pub(crate) dir: PathBuf,
    /// Addresses with ports to listen on.
    pub(crate) listen: Vec<String>,
    /// The same, for clients that only read.
    pub(crate) read_listen: Vec<String>,
    /// The same, with TLS.
    pub(crate) tls_listen: Vec<String>,
    /// The same, for clients that only read.
    pub(crate) tls_read_listen: Vec<String>,
    /// Certificates of the ports with TLS.
    pub(crate) tls: latewood_tls::ServerOptions,
    /// Path of the unix socket, if there is one.
    pub(crate) unixsocket: Option<PathBuf>,
    /// The password; empty means none.
    pub(crate) requirepass: String,
    /// The file of users, if there is one.
    pub(crate) aclfile: Option<PathBuf>,
    /// Users as lines of that file.
    pub(crate) users: Vec<String>,
    /// Without a password only loopback peers are served.
    pub(crate) protected_mode: bool,
    /// What a reply to a write promises unless the connection asks otherwise.
    pub(crate) durability: Durability,
    /// Longest wait for the disk under `Interval`, milliseconds.
    pub(crate) sync_interval_ms: u64,
    /// Whether there is a log.
    pub(crate) wal: bool,
    /// Whether damaged data is refused.
    pub(crate) strict: bool,
    /// Memory budget of the process in bytes (0 = unlimited).
    pub(crate) memory_bytes: u64,
    /// Longest time samples are in memory and in no block, seconds.
    pub(crate) flush_age_s: u64,
    /// Maximum number of series (0 = unlimited).
    pub(crate) series_max: u64,
    /// Series that one query may match (0 = unlimited).
    pub(crate) query_series_max: u64,
    /// Bytes the log gets before it is flushed.
    pub(crate) log_bytes_max: u64,
    /// Milliseconds that samples of any series are kept; 0 is for ever.
    pub(crate) retention_ms: u64,
    /// Which series are removed once all their samples are older.
    pub(crate) drop_empty: DropEmpty,
    /// Milliseconds without a write after which a series leaves memory; 0 is never.
    pub(crate) park_after_ms: u64,
    /// How many times a second expired series are looked for.
    pub(crate) expiry_hz: u64,
    /// Disk budget in bytes (0 = unlimited).
    pub(crate) disk_budget_bytes: u64,
    /// Number of event loops, at least 1.
    pub(crate) threads: usize,
    /// Threads that share one large query, 1 to 16.
    pub(crate) query_threads: u64,
    /// Connections at a time.
    pub(crate) connections_max: u64,
    /// Idle seconds after which a connection is closed; 0 never.
    pub(crate) idle_timeout_s: u64,
    /// Which keyspace events are published.
    pub(crate) notify: Notify,
    /// How much is logged.
    pub(crate) log_level: LogLevel,
    /// How its lines are written.
    pub(crate) log_format: LogFormat,
    /// What new series get.
    pub(crate) defaults: Defaults,
    /// The version of RedisTimeSeries that answers are like.
    pub(crate) compatibility: Compatibility,
    /// In whose form DUMP writes.
    pub(crate) dump_format: DumpFormat,
    /// How far from the clock the timestamps of TS commands may be.
    pub(crate) time_limits: TimeLimits,
    /// Other protocols than Redis'.
    pub(crate) senders: Senders,
    pub(crate) promql: Promql,
    /// Rule files.
    pub(crate) rules: Rules,
    /// Where the database is kept beside this machine.
    pub(crate) cluster: Cluster,
}

named! {
    /// In whose form DUMP writes a series.
    #[derive(Default)]
    pub(crate) enum DumpFormat {
        /// Latewood's own.
        #[default]
        Latewood = 0 => "latewood",
        /// That of RedisTimeSeries, for its RESTORE.
        Redis = 1 => "redis",
    }
}

impl Settings {
    /// What new series get, of the version they are like: since 8.0 the duplicate policy of the
    /// moment is that of the series for good.
    pub(crate) fn defaults(&self) -> Defaults {
        let defaults = &self.defaults;
        let keeps = self.compatibility == Compatibility::V8_10;
        Defaults {
            series: SeriesOptions {
                duplicate_policy: keeps.then_some(defaults.duplicate_policy),
                ..defaults.series.clone()
            },
            ..defaults.clone()
        }
    }
}

/// Settings of a database that is kept beyond this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cluster {
    /// The URL of its log.
    pub(crate) log: Option<String>,
    /// The URL of its files.
    pub(crate) objects: Option<String>,
    /// Bytes of its blocks on this machine (0 = unlimited).
    pub(crate) cache_bytes_max: u64,
    /// How Kafka is reached.
    pub(crate) kafka: latewood_cluster::kafka::options::Given,
    /// A record on one broker will do.
    pub(crate) any_replication: bool,
    /// Reads are answered under a lease.
    pub(crate) read_lease: bool,
    /// What must be proven of what they show.
    pub(crate) reads: Reads,
    /// Several nodes.
    pub(crate) nodes: Nodes,
}

/// Settings of several nodes that share a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Nodes {
    /// There are several.
    pub(crate) is_on: bool,
    /// How old an answer of a follower may be, milliseconds.
    pub(crate) staleness_max_ms: u64,
    /// Where clients reach this one, if `listen` does not say it.
    pub(crate) redis: Option<String>,
    /// Where others send writes by HTTP, if `http` does not say it.
    pub(crate) http: Option<String>,
}

impl Cluster {
    /// Checks that what is asked of reads is looked after.
    ///
    /// # Errors
    /// What is missing for that.
    pub(crate) fn check_reads(&self) -> Result<(), String> {
        if self.reads == Reads::default() || self.read_lease || self.nodes.is_on {
            return Ok(());
        }
        let name = self.reads.name();
        Err(format!(
            "reads {name}: needs read-lease on, or cluster on: without them no reply waits for the log"
        ))
    }

    /// How many brokers must have a record.
    pub(crate) fn replication(&self) -> Replication {
        if self.any_replication {
            return Replication::Any;
        }
        Replication::Durable
    }
}

/// Settings of queries in PromQL.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Promql {
    /// How far back an instant selector looks, milliseconds.
    pub(crate) lookback_ms: u64,
    /// The longest that a query may take, milliseconds.
    pub(crate) timeout_ms: u64,
    /// Queries that run at a time.
    pub(crate) queries_max: u64,
    /// Samples that a query may hold at a time.
    pub(crate) samples_max: u64,
    /// Bytes that a query may hold at a time.
    pub(crate) memory_bytes: u64,
    /// Names are removed from the result of the whole query only.
    pub(crate) delays_name_removal: bool,
}

/// Settings of rule files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    /// Names of files, or patterns with `*`.
    pub(crate) files: Vec<String>,
    /// How often groups without an interval are evaluated, milliseconds.
    pub(crate) interval_ms: u64,
    /// How far back rules of groups without an offset look, milliseconds.
    pub(crate) query_offset_ms: u64,
    /// `NAME=VALUE`, of templates and notifications.
    pub(crate) external_labels: Vec<String>,
    /// Where users find this server.
    pub(crate) external_url: String,
    /// Rules of all files together.
    pub(crate) rules_max: u64,
    /// Series that one rule may write; 0 is no limit.
    pub(crate) series_max: u64,
    /// URLs of Alertmanagers.
    pub(crate) alertmanagers: Vec<String>,
    /// How long an alert that fires is not told again, milliseconds.
    pub(crate) resend_delay_ms: u64,
    /// How much of a core corrections of rows may take, percent.
    pub(crate) correction_cpu_percent: u64,
    /// How old a row may be that is corrected, milliseconds; 0 is any age.
    pub(crate) correct_back_ms: u64,
    /// How far back steps are computed that were missed, milliseconds.
    pub(crate) catch_up_ms: u64,
    /// How long rows of rules are kept, milliseconds; 0 is as those of other series.
    pub(crate) retention_ms: u64,
}

/// Settings of the protocols other than Redis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Senders {
    /// Where HTTP is served.
    pub(crate) http: Http,
    /// Where it is served with TLS.
    pub(crate) https: Option<String>,
    /// Names of this server that browsers may ask it by, and sites whose pages may.
    pub(crate) http_hosts: Vec<String>,
    /// Browsers get the console.
    pub(crate) console: bool,
    /// Milliseconds between two samples of the server's own figures; 0 is none.
    pub(crate) self_metrics_ms: u64,
    /// Retention of these.
    pub(crate) self_retention_ms: u64,
    /// The label by whose values late samples are counted; empty is none.
    pub(crate) lateness_label: String,
    /// The label that the database or bucket of InfluxDB's senders becomes.
    pub(crate) influx_db_label: Option<String>,
    /// Policy of the series they create.
    pub(crate) duplicate_policy: DuplicatePolicy,
    /// How far from the clock their timestamps may be.
    pub(crate) time_limits: TimeLimits,
    /// How OTLP's names and attributes become those of series.
    pub(crate) otlp: Naming,
    /// Where line protocols are spoken.
    pub(crate) lines: Vec<LinePort>,
}

impl Default for Senders {
    fn default() -> Self {
        Self {
            http: Http::Default,
            https: None,
            http_hosts: Vec::new(),
            console: true,
            self_metrics_ms: 0,
            self_retention_ms: 30 * 86_400_000,
            lateness_label: String::new(),
            influx_db_label: None,
            duplicate_policy: DuplicatePolicy::Last,
            time_limits: TimeLimits::default(),
            otlp: Naming::default(),
            lines: Vec::new(),
        }
    }
}

/// InfluxDB's port.
const HTTP: &str = "127.0.0.1:8086";

/// Where HTTP is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// At its usual address, if that is free.
    Default,
    /// At this address.
    At(String),
    /// Nowhere.
    Off,
}

impl Http {
    /// The address to bind.
    pub(crate) fn address(&self) -> Option<&str> {
        match self {
            Self::Default => Some(HTTP),
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

named! {
    /// What must be proven, beside the lease, before the owner of a log in Kafka answers a read.
    #[derive(Default)]
    pub(crate) enum Reads {
        /// All that it shows is in the log.
        #[default]
        Proven => "proven",
        /// And the node owned the log after the read arrived.
        Strict => "strict",
        /// Nothing.
        Unproven => "unproven",
    }
}

named! {
    /// How much is logged.
    #[derive(Default)]
    pub(crate) enum LogLevel {
        /// What stops the server or loses a write.
        Error => "error",
        /// And what an operator should look at.
        Warn => "warn",
        /// And starts, stops and recoveries.
        #[default]
        Info => "info",
        /// And connections.
        Debug => "debug",
        /// And everything else.
        Trace => "trace",
    }
}

named! {
    /// How lines of the log are written.
    #[derive(Default)]
    pub(crate) enum LogFormat {
        /// For people.
        #[default]
        Text => "text",
        /// For programs: an object each.
        Json => "json",
    }
}

impl LogFormat {
    /// The format called `name`, in lower case.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.name().as_bytes() == name)
    }
}

impl LogLevel {
    /// The level called `name`, in lower case.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|level| level.name().as_bytes() == name)
    }
}

/// Cores of the machine that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
