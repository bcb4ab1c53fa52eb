//! `latewood cluster init|check|inspect|stats|restore`: what a database beyond one machine is kept in.
//!
//! None of them claims a log: they may be run beside the node that owns it. Tested by
//! `tests/kafka/` with brokers.

use super::output::{failed, say};
use super::survey::{check, inspect};
use super::{cluster_init, cluster_restore, cluster_stats};
use crate::options::GivenLog;
use crate::state::Cluster as Settings;
use clap::{Args, Subcommand};
use latewood_cluster::kafka::client::{Client, connect};
use latewood_cluster::kafka::options::Address;
use latewood_cluster::topic::{Replication, log_name};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `latewood cluster` does.
#[derive(Subcommand, Debug)]
pub(crate) enum Cluster {
    /// Make the topic of a log in Kafka, with the settings that lose no data, or check the one
    /// that is there. With --from, begin the log on top of the database of one machine.
    Init(Init),
    /// Read a log in Kafka and the newest checkpoint in the object store, and verify all of it.
    /// Nothing is changed; a server may be running on them.
    Check(Check),
    /// Print a line for each record of a log in Kafka.
    Inspect(Inspect),
    /// Count what a log in Kafka and the newest checkpoint in the object store hold.
    Stats(Stats),
    /// Make a local database of the newest checkpoint in the object store and the log behind it,
    /// or of a checkpoint alone. Nothing else is changed; a server may be running on them.
    Restore(Restore),
}

/// Options of `latewood cluster init`, named as those of `serve`.
#[derive(Args, Debug)]
pub(crate) struct Init {
    #[command(flatten)]
    pub(super) log: Log,
    /// Number of tablets; more than one is not supported yet
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1))]
    pub(super) tablets: u32,
    /// Begin the log on top of the database of one machine in this directory, which no server may
    /// be running on: its files go to the object store. Topic and object store must be new to
    /// the name in --log
    #[arg(long, value_name = "DIR", requires = "objects")]
    pub(super) from: Option<PathBuf>,
    /// The object store, same as for `serve`; for --from
    #[arg(long, env = "LATEWOOD_OBJECTS", value_name = "URL")]
    pub(super) objects: Option<String>,
}

/// Options of `latewood cluster check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(super) log: Log,
    /// The object store, same as for `serve`
    #[arg(long, env = "LATEWOOD_OBJECTS", value_name = "URL")]
    pub(super) objects: String,
}

/// Options of `latewood cluster inspect`.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(super) log: Log,
}

/// Options of `latewood cluster stats`.
#[derive(Args, Debug)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(super) log: Log,
    /// The object store, same as for `serve`
    #[arg(long, env = "LATEWOOD_OBJECTS", value_name = "URL")]
    pub(super) objects: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `latewood cluster restore`.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(super) log: Log,
    /// The object store, same as for `serve`
    #[arg(long, env = "LATEWOOD_OBJECTS", value_name = "URL")]
    pub(super) objects: String,
    /// Directory to restore to; must be empty or missing
    #[arg(long, value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// Restore a checkpoint alone, where the log is lost: what was written after it is not
    /// restored. Of --log, which may be left out, only the name is used
    #[arg(long)]
    pub(super) without_log: bool,
    /// The checkpoint to restore without the log: a list of files in the object store, such as
    /// 00000000000006af/CHECKPOINT-000000000000000c.0f4ca69d2f8445c1 [default: the one that
    /// LATEST names]
    #[arg(long, value_name = "OBJECT", requires = "without_log")]
    pub(super) checkpoint: Option<String>,
}

/// A log in Kafka, with the options of `serve`.
#[derive(Args, Debug)]
pub(super) struct Log {
    #[command(flatten)]
    given: GivenLog,
}

impl Log {
    /// The name of the cluster, a client, and the topic's name.
    pub(super) fn connect(&self) -> Result<(String, Client, String), String> {
        let Settings { log, kafka, .. } = self.given.0.clone();
        let url = log.ok_or("log: give --log or LATEWOOD_LOG")?;
        let (address, kafka) = connect(&url, kafka)?;
        let topic = log_name(&address.name);
        Ok((address.name, kafka, topic))
    }

    /// The name of the cluster, if it is given. Nobody is asked.
    pub(super) fn name(&self) -> Result<Option<String>, String> {
        let address = self.given.0.log.as_ref().map(|url| url.parse::<Address>());
        Ok(address.transpose()?.map(|address| address.name))
    }

    /// What the topic must be.
    pub(super) fn replication(&self) -> Replication {
        self.given.0.replication()
    }
}

/// Runs `latewood cluster`: 0; 1 where damage was found; or 2 with the reason.
pub(crate) fn cluster(options: &Cluster) -> ExitCode {
    let done = match options {
        Cluster::Init(options) => cluster_init::run(options).map(|done| {
            say(&done);
            ExitCode::SUCCESS
        }),
        Cluster::Check(options) => check(options),
        Cluster::Inspect(options) => inspect(options),
        Cluster::Stats(options) => cluster_stats::run(options),
        Cluster::Restore(options) => cluster_restore::run(options),
    };
    done.unwrap_or_else(|reason| failed(&reason))
}
