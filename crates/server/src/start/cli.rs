//! The command line of `latewood`: its subcommands. The options of `serve` stand
//! in `options/`, those of a tool beside the tool.

use crate::options::Given;
use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  latewood serve
      Serve 127.0.0.1:6379 from ./latewood-data; at most one second of
      acknowledged writes is lost by a power cut, nothing by a kill.
  latewood serve --dir /var/lib/latewood --durability sync
      Every acknowledged write is on disk before its reply.
  latewood serve --listen 0.0.0.0:6379 --requirepass secret
      Serve a network; without a password only this machine is served.

Any Redis client talks to it:
  redis-cli TS.ADD room:1 '*' 21.5
  redis-cli TS.RANGE room:1 - +
  redis-cli INFO latewood";

const PRECEDENCE: &str = "\
Every option can also be set by its environment variable or in the TOML file
that --config names, there under its name without the dashes:

  dir = \"/var/lib/latewood\"
  listen = [\"127.0.0.1:6379\"]
  durability = \"sync\"

A flag wins over the environment, the environment over the file, the file over
the default. An unknown name in the file is an error.";

/// A time-series database for late samples.
///
/// Latewood speaks the Redis protocol and the TS.* commands of RedisTimeSeries.
/// Samples may arrive in any order and of any age; acknowledged writes survive
/// a crash.
#[derive(Debug, Parser)]
#[command(name = "latewood", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the database server until SIGTERM, SIGINT or SHUTDOWN.
    #[command(after_help = PRECEDENCE)]
    Serve(Box<Given>),
    /// Import series into a running server.
    #[command(subcommand)]
    Import(latewood_migrate::Import),
    /// Export series from a running server.
    #[command(subcommand)]
    Export(latewood_migrate::Export),
    /// Read every byte of a directory and report damage; exit status 0 if there is
    /// none, 1 if the rest can be served, 3 if a server refuses to start, 2 if the
    /// directory cannot be checked. Or check rule files.
    Check(crate::tools::Check),
    /// Show the contents of a log segment, block, series file or manifest.
    Inspect(crate::tools::Inspect),
    /// Back up a database to a folder or an object store, whether a server runs or not.
    Backup(crate::tools::Backup),
    /// Restore a directory from a backup in a folder or an object store, and verify
    /// every checksum.
    Restore(crate::tools::Restore),
    /// A log in Kafka and its object store: make, verify, look into.
    #[command(subcommand)]
    Cluster(crate::tools::Cluster),
    /// Flush the log into blocks and merge them as far as useful.
    Merge(crate::tools::Merge),
    /// Run unit tests of rules.
    #[command(subcommand)]
    Test(crate::tools::Test),
    /// Compare the rows of recording rules with what their expressions give, or have them
    /// computed again.
    #[command(subcommand)]
    Rules(crate::tools::Rules),
    /// Count the contents of a directory; damage is not detected.
    Stats(crate::tools::Stats),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
