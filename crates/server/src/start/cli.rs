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
/// Samples may arrive in any order and of any age, and what was acknowledged
/// survives a crash.
#[derive(Debug, Parser)]
#[command(name = "latewood", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the process does.
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
    /// Read every byte of a directory and say what is damaged; exit status 0
    /// where all is well, 1 where something is damaged and the rest can be
    /// served, 3 where a server refuses to start, 2 where it could not be checked.
    Check(crate::tools::Check),
    /// Say what a log segment, block, series file or manifest holds.
    Inspect(crate::tools::Inspect),
    /// Copy a database into a folder or an object store, while it is served or not.
    Backup(crate::tools::Backup),
    /// Make a directory from a backup, here or in an object store, and verify
    /// every checksum.
    Restore(crate::tools::Restore),
    /// Bring everything into blocks and merge them until nothing is to gain.
    Merge(crate::tools::Merge),
    /// Count what a directory holds; damage is not looked for.
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
