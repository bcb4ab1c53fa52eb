//! The options of `latewood import` and `latewood export`.
//!
//! Public, because the binary's command line contains them. The help texts are here; the manual
//! is `docs/migration.md`.

use clap::{Args, Subcommand, ValueEnum};
use latewood_tls::ClientOptions;
use std::path::PathBuf;

const REDIS_EXAMPLES: &str = "\
Examples:
  latewood import redis --from old-host:6379 --resume import.state
      Copy all series into the Latewood at 127.0.0.1:6379. After an
      interruption, run the same command again.
  latewood import redis --from old-host:6379 --resume import.state --follow
      Copy while clients write to the source, and compare until both sides
      agree: stop the writers, wait for the command to end, switch over.
  latewood import redis --from /run/redis.sock --match 'room:*' --rate 200000
      Copy some keys, over a Unix socket, at most 200,000 samples per second.

Exit status: 0 both sides agree, 1 stopped by an error, 3 finished, but some
series differ, still change or were refused; the summary lists them.";

const RDB_EXAMPLES: &str = "\
Redis 6 to 8 write the file with SAVE or BGSAVE, into the directory that CONFIG
GET dir shows. Keys of other types are named and left out.

Examples:
  latewood import rdb /var/lib/redis/dump.rdb
  ssh old-host cat /var/lib/redis/dump.rdb | latewood import rdb -

Exit status: 0 everything was copied and agrees, 1 stopped by an error, 3
finished, but some series were refused or differ; the summary lists them.";

const CSV_FORMAT: &str = "\
Each line is a sample: key,timestamp,value, with milliseconds since 1970 and a
number or nan. Further fields describe the series and apply when it is
created: labels as name=value, options as @retention=MS, @policy=NAME,
@encoding=NAME, @chunk-size=BYTES, @ignore=MS:DIFF, @expires=MS and
@rule=AGGREGATOR:BUCKET_MS:ALIGN_MS:DESTINATION. A line with an empty timestamp
and value declares a series without a sample. A backslash escapes '=', '@' and
itself.

  room:1,,,site=north,unit=celsius,@retention=86400000
  room:1,1700000000000,20.5
  room:1,1700000060000,20.75

Exit status: 0 everything was written, 1 stopped by an error, 3 finished, but
lines were skipped (--skip-bad).";

const INFLUX_FORMAT: &str = "\
Each line is InfluxDB line protocol:
measurement,tag=value field=1.5,other=2i timestamp. docs/protocols.md describes
the names of its series, here measurement_field and measurement_other with the
label tag. Text values are counted and not stored. Headings of
influx_inspect export are left out.

Examples:
  latewood import influx --precision s export.lp.gz
  influx_inspect export -lponly ... -out - | latewood import influx
  influxdb3 query --database db --format jsonl 'SELECT * FROM cpu' |
    latewood import influx --measurement cpu --tags host,region

Exit status: 0 everything was written, 1 stopped by an error, 3 finished, but
lines were skipped (--skip-bad).";

const PARQUET_FORMAT: &str = "\
The columns are the labels (__name__ is the metric, or the key of a series
without that label), __timestamp__ in milliseconds UTC and __value__.

Examples:
  latewood export parquet rooms.parquet --match 'temperature{site=\"north\"}'
  duckdb -c \"SELECT room, avg(__value__) FROM 'rooms.parquet' GROUP BY room\"

Exit status: 0 everything was written, 1 stopped by an error.";

const PROMETHEUS_FORMAT: &str = "\
A block is a directory with meta.json, index and chunks, such as
data/01BKGV7JBM69T2G1BGBGM6KB12 of Prometheus, or of a bucket of Thanos. A
directory that contains blocks stands for all of them. POST
/api/v1/admin/tsdb/snapshot makes Prometheus write its newest samples to blocks.
Native histograms are counted and not written.

Exit status: 0 everything was written, 1 stopped by an error, 3 finished, but
samples were refused (--skip-bad) or there were native histograms.";

/// The source of `latewood import`.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Copy a running RedisTimeSeries (or Latewood) into a running Latewood.
    ///
    /// Copies series with their options, labels, samples, compaction rules and expiry while
    /// other clients write to the source, then compares both sides by number and checksum of
    /// the samples of every series.
    #[command(after_help = REDIS_EXAMPLES)]
    Redis(Box<RedisImport>),
    /// Copy the series of a file that Redis saved (dump.rdb) into a running Latewood.
    ///
    /// Copies series of RedisTimeSeries with their options, labels, samples, compaction rules and
    /// expiry, then reads them back and compares number and checksum of the samples of each.
    #[command(after_help = RDB_EXAMPLES)]
    Rdb(Box<RdbImport>),
    /// Write samples from CSV files or standard input into a running Latewood.
    #[command(after_help = CSV_FORMAT)]
    Csv(CsvImport),
    /// Write InfluxDB line protocol from files or standard input into a running Latewood.
    #[command(after_help = INFLUX_FORMAT)]
    Influx(InfluxImport),
    /// Write the blocks of a Prometheus or Thanos into a running Latewood.
    #[command(after_help = PROMETHEUS_FORMAT)]
    Prometheus(PrometheusImport),
}

/// The target of `latewood export`.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// Write series with labels, options and samples to a CSV file or standard output.
    #[command(after_help = CSV_FORMAT)]
    Csv(CsvExport),

    /// Write samples to a Parquet file: a row for each, a column for each label.
    #[command(after_help = PARQUET_FORMAT)]
    Parquet(ParquetExport),
}

/// Options of `latewood import redis`.
#[derive(Args, Debug)]
pub struct RedisImport {
    /// The server to copy from: HOST:PORT, HOST, or the path of a unix socket.
    #[arg(long, value_name = "HOST:PORT")]
    pub from: String,

    /// Name and password at the source.
    #[command(flatten)]
    pub login: Login,

    /// Database number to copy from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub db: u16,

    /// The server to write to.
    #[command(flatten)]
    pub target: Target,

    /// Copy only keys that match this pattern, as in KEYS.
    #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
    pub pattern: String,

    /// Read at most this many samples per second from the source; 0 = unlimited.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Record progress in this file, and resume from it if it exists.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,

    /// Copy from the snapshot that the source sends to a replica (PSYNC), with --follow then the
    /// commands behind it, and compare as without. Needs the right to PSYNC and REPLCONF.
    #[arg(long)]
    pub psync: bool,

    /// Overwrite series that already exist on the target.
    #[arg(long)]
    pub overwrite: bool,

    /// Delete samples and series from the target that the source no longer has, among the copied series.
    #[arg(long)]
    pub delete: bool,

    /// Repeat the comparison until a whole pass finds both sides equal.
    #[arg(long)]
    pub follow: bool,

    /// Number of comparisons after which a series that still differs is given up.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub passes: u32,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// Options of `latewood import rdb`.
#[derive(Args, Debug)]
pub struct RdbImport {
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The server to write to.
    #[command(flatten)]
    pub target: Target,

    /// Database number to copy.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub db: u16,

    /// Replace series that already exist on the target.
    #[arg(long)]
    pub overwrite: bool,

    /// Write at most this many samples per second; 0 = unlimited.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// Options of `latewood import csv`.
#[derive(Args, Debug)]
pub struct CsvImport {
    /// The server to write to.
    #[command(flatten)]
    pub target: Target,

    /// Duplicate policy of this import, instead of that of each series.
    #[arg(long, value_name = "POLICY")]
    pub on_duplicate: Option<OnDuplicate>,

    /// What is read, and how.
    #[command(flatten)]
    pub lines: Lines,
}

/// Options of `latewood import influx`.
#[derive(Args, Debug)]
pub struct InfluxImport {
    /// The HTTP address of the Latewood to write to.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086")]
    pub to: String,

    /// Name and password at the target.
    #[command(flatten)]
    pub login: TargetLogin,

    /// Unit of the timestamps.
    #[arg(long, value_name = "UNIT", default_value = "ns", value_parser = ["ns", "us", "ms", "s", "m", "h"])]
    pub precision: String,

    /// The database of these lines: the value of the label that --influx-db-label names on the
    /// target; ignored without that option.
    #[arg(long, value_name = "NAME")]
    pub db: Option<String>,

    /// Read rows of this measurement (table) of InfluxDB 3 instead of line protocol, as JSON lines.
    #[arg(
        long,
        value_name = "NAME",
        requires = "tags",
        conflicts_with = "precision"
    )]
    pub measurement: Option<String>,

    /// The columns of the rows that are tags, separated by commas; '' if there are none.
    #[arg(
        long,
        value_name = "NAMES",
        requires = "measurement",
        value_delimiter = ','
    )]
    pub tags: Vec<String>,

    /// What is read, and how.
    #[command(flatten)]
    pub lines: Lines,
}

/// Name and value of a label.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && name != "__name__" => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE, and a name other than __name__".to_owned()),
    }
}

/// Options of `latewood import prometheus`.
#[derive(Args, Debug)]
pub struct PrometheusImport {
    /// The HTTP address of the Latewood to write to.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086")]
    pub to: String,

    /// Name and password at the target.
    #[command(flatten)]
    pub login: TargetLogin,

    /// A label for every series that does not have it, such as one of external_labels. In place of the
    /// external label of that name in blocks of Thanos; NAME= leaves that out.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,

    /// Blocks, or directories of blocks such as the data directory of Prometheus.
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,

    /// Leave out samples that are refused, and count them.
    #[arg(long)]
    pub skip_bad: bool,

    /// Maximum samples written per second; 0 means no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// Options of every import of lines.
#[derive(Args, Debug)]
pub struct Lines {
    /// Files to read in this order, optionally compressed with gzip; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub files: Vec<PathBuf>,

    /// Leave out lines that cannot be read or are refused, name and count them.
    #[arg(long)]
    pub skip_bad: bool,

    /// Maximum samples written per second; 0 means no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// Options of `latewood export csv`.
#[derive(Args, Debug)]
pub struct CsvExport {
    /// The file to write; `-` is standard output.
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,

    /// The server to read: HOST:PORT, HOST, or the path of a unix socket.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    pub from: String,

    /// Name and password at the source.
    #[command(flatten)]
    pub login: Login,

    /// Only keys that match this pattern, as in KEYS.
    #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
    pub pattern: String,

    /// Only samples from this time on, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub start: i64,

    /// Only samples up to this time, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = i64::MAX)]
    pub end: i64,

    /// Read at most this many samples per second; 0 = unlimited.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// Options of `latewood export parquet`.
#[derive(Args, Debug)]
pub struct ParquetExport {
    /// The file to write; `-` is standard output.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The server to read: HOST:PORT or HOST of its --http address.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086")]
    pub from: String,

    /// Name and password at the source.
    #[command(flatten)]
    pub login: Login,

    /// Only series that match this PromQL selector, or one of several.
    #[arg(
        long = "match",
        value_name = "SELECTOR",
        default_value = "{__name__!=\"\"}"
    )]
    pub selectors: Vec<String>,

    /// Only samples from this time on, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub start: Option<u64>,

    /// Only samples up to this time, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub end: Option<u64>,

    /// Use TLS; tls://HOST:PORT enables TLS for this address only.
    #[command(flatten)]
    pub tls: ClientOptions,
}

/// The user name and password at the source.
#[derive(Args, Clone, Debug, Default)]
pub struct Login {
    /// User name at the source.
    #[arg(long, value_name = "NAME", env = "LATEWOOD_FROM_USER")]
    pub user: Option<String>,

    /// Password at the source; prefer the environment variable.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LATEWOOD_FROM_PASSWORD",
        hide_env_values = true
    )]
    pub password: Option<String>,
}

/// The user name and password at the target.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetLogin {
    /// User name at the target.
    #[arg(long, value_name = "NAME", env = "LATEWOOD_TO_USER")]
    pub to_user: Option<String>,

    /// Password at the target; prefer the environment variable.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LATEWOOD_TO_PASSWORD",
        hide_env_values = true
    )]
    pub to_password: Option<String>,
}

/// The target.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// The Latewood to write to: HOST:PORT, HOST, or the path of a unix socket.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    pub to: String,

    /// Name and password at the target.
    #[command(flatten)]
    pub login: TargetLogin,
}

impl Target {
    /// The user name and password in the form of a source's.
    pub(crate) fn login(&self) -> Login {
        Login {
            user: self.login.to_user.clone(),
            password: self.login.to_password.clone(),
        }
    }
}

/// Duplicate policies for one import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnDuplicate {
    /// Refuse the line.
    Block,
    /// Keep the stored value.
    First,
    /// Take the line's value.
    Last,
    /// Keep the smaller value.
    Min,
    /// Keep the larger value.
    Max,
    /// Add the line's value.
    Sum,
}

impl OnDuplicate {
    /// The argument of ON_DUPLICATE.
    pub(crate) fn word(self) -> String {
        let name = self
            .to_possible_value()
            .map(|value| value.get_name().to_ascii_uppercase());
        name.unwrap_or_default()
    }
}
