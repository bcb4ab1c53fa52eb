//! The options of `latewood import` and `latewood export`.
//!
//! Public, because the binary's command line holds them; what they mean to a user stands in
//! their help and in `docs/migration.md`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const REDIS_EXAMPLES: &str = "\
Examples:
  latewood import redis --from old-host:6379 --resume import.state
      Copy all series into the Latewood at 127.0.0.1:6379; may be killed and
      started again with the same words.
  latewood import redis --from old-host:6379 --resume import.state --follow
      Copy while the source is written to, and go on comparing until both
      sides agree: stop the writers, wait for it to end, switch over.
  latewood import redis --from /run/redis.sock --match 'room:*' --rate 200000
      Only some keys, over a unix socket, at most 200,000 samples a second.

Exit status: 0 both sides agree, 1 stopped by an error, 3 ended but something
differs, still moves or was refused; the summary names it.";

const CSV_FORMAT: &str = "\
Each line is a sample: key,timestamp,value - milliseconds since 1970 and a
number or nan. Further fields describe the series and are used when it is
created: labels as name=value, options as @retention=MS, @policy=NAME,
@encoding=NAME, @chunk-size=BYTES, @ignore=MS:DIFF, @expires=MS and
@rule=AGGREGATOR:BUCKET_MS:ALIGN_MS:DESTINATION. A line with an empty timestamp
and value declares a series without a sample. A backslash before '=', '@' or a
backslash takes its meaning away.

  room:1,,,site=north,unit=celsius,@retention=86400000
  room:1,1700000000000,20.5
  room:1,1700000060000,20.75

Exit status: 0 everything was written, 1 stopped by an error, 3 ended with
lines left out (--skip-bad).";

const INFLUX_FORMAT: &str = "\
Each line is as InfluxDB's senders write it:
measurement,tag=value field=1.5,other=2i timestamp. What its series are called
stands in docs/protocols.md: here measurement_field and measurement_other with
the label tag. Texts are counted and not stored.

Examples:
  latewood import influx --precision s export.lp.gz
  influx_inspect export -lponly ... -out - | latewood import influx

Exit status: 0 everything was written, 1 stopped by an error, 3 ended with
lines left out (--skip-bad).";

/// Where `latewood import` takes series from.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Copy a running RedisTimeSeries (or Latewood) into a running Latewood.
    ///
    /// Copies series with their options, labels, samples, compaction rules and expiry while
    /// other clients write to the source, then compares both sides by count and checksum of
    /// every series' samples.
    #[command(after_help = REDIS_EXAMPLES)]
    Redis(Box<RedisImport>),
    /// Write samples from CSV files or standard input into a running Latewood.
    #[command(after_help = CSV_FORMAT)]
    Csv(CsvImport),
    /// Write InfluxDB line protocol from files or standard input into a running Latewood.
    #[command(after_help = INFLUX_FORMAT)]
    Influx(InfluxImport),
}

/// Where `latewood export` puts series.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// Write series with labels, options and samples to a CSV file or standard output.
    #[command(after_help = CSV_FORMAT)]
    Csv(CsvExport),
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

    /// Read at most so many samples a second from the source; 0 is no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,

    /// Keep what is done in this file, and go on from there when it exists.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,

    /// Make series that are on the target already equal to the source's.
    #[arg(long)]
    pub overwrite: bool,

    /// Delete on the target, among the copied series, what the source does not have (any more).
    #[arg(long)]
    pub delete: bool,

    /// Compare again and again until a whole pass finds both sides equal.
    #[arg(long)]
    pub follow: bool,

    /// How often a series that differs is compared and mended before it counts as moving.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub passes: u32,
}

/// Options of `latewood import csv`.
#[derive(Args, Debug)]
pub struct CsvImport {
    /// Files to read in this order; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub files: Vec<PathBuf>,

    /// The server to write to.
    #[command(flatten)]
    pub target: Target,

    /// What a sample does at a timestamp that has one, instead of the series' policy.
    #[arg(long, value_name = "POLICY")]
    pub on_duplicate: Option<OnDuplicate>,

    /// Leave out lines that cannot be read or are refused, name and count them.
    #[arg(long)]
    pub skip_bad: bool,

    /// Write at most so many samples a second; 0 is no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,
}

/// Options of `latewood import influx`.
#[derive(Args, Debug)]
pub struct InfluxImport {
    /// Files to read in this order, also those of gzip; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub files: Vec<PathBuf>,

    /// The Latewood to write to, where it serves HTTP.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086")]
    pub to: String,

    /// Name and password at the target.
    #[command(flatten)]
    pub login: TargetLogin,

    /// Unit of the timestamps.
    #[arg(long, value_name = "UNIT", default_value = "ns", value_parser = ["ns", "us", "ms", "s", "m", "h"])]
    pub precision: String,

    /// The database these lines belong to: the value of the label that the target was given by
    /// --influx-db-label; nothing where it was given none.
    #[arg(long, value_name = "NAME")]
    pub db: Option<String>,

    /// Leave out lines that cannot be read or are refused, name and count them.
    #[arg(long)]
    pub skip_bad: bool,

    /// Write at most so many samples a second; 0 is no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,
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

    /// Only samples from this time on, milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub start: i64,

    /// Only samples up to this time, milliseconds.
    #[arg(long, value_name = "MS", default_value_t = i64::MAX)]
    pub end: i64,

    /// Read at most so many samples a second; 0 is no limit.
    #[arg(long, value_name = "SAMPLES", default_value_t = 0)]
    pub rate: u64,
}

/// The name and password for the server that is read.
#[derive(Args, Clone, Debug, Default)]
pub struct Login {
    /// User name at the source.
    #[arg(long, value_name = "NAME", env = "LATEWOOD_FROM_USER")]
    pub user: Option<String>,

    /// Password at the source; better given in the environment.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LATEWOOD_FROM_PASSWORD",
        hide_env_values = true
    )]
    pub password: Option<String>,
}

/// The name and password for the Latewood that is written to.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetLogin {
    /// User name at the target.
    #[arg(long, value_name = "NAME", env = "LATEWOOD_TO_USER")]
    pub to_user: Option<String>,

    /// Password at the target; better given in the environment.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LATEWOOD_TO_PASSWORD",
        hide_env_values = true
    )]
    pub to_password: Option<String>,
}

/// The Latewood that is written to.
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
    /// The name and password, as for a source.
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
    /// Keep what is there.
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
    /// The word behind ON_DUPLICATE.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Block => "BLOCK",
            Self::First => "FIRST",
            Self::Last => "LAST",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Sum => "SUM",
        }
    }
}
