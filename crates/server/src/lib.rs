//! The process `latewood`: command line, sockets, commands.
//!
//! [`main`] is all there is for a program; fuzz targets reach some parts by themselves.
//!
//! The folders from top to bottom; imports lead down this list only:
//!
//! ```text
//! start      command line, threads, sockets, the end
//! tools      offline commands: check, inspect, stats, backup, restore
//! net        event loops: the Redis port
//! lines      line protocols on plain sockets
//! http       HTTP
//! command    commands of the Redis port, as data and as code
//! intake     samples of other protocols on their way into the engine
//! options    flags, environment, file and defaults become settings
//! client     one connection's state between its commands
//! state      what all threads share
//! messaging  between connections: mailboxes, channels, events of keys
//! acl        users and what each may do
//! observe    what is measured
//! clients    connections as the others see them
//! base       values, clock, descriptors
//! ```
//!
//! Tested as a whole: `tests/` starts the built binary and speaks to its
//! socket, byte for byte.

mod acl;
mod base;
mod client;
mod clients;
mod command;
mod http;
mod intake;
mod lines;
mod messaging;
mod net;
mod observe;
mod options;
mod start;
mod state;
mod tools;

use clap::Parser;
use start::{Cli, Command};
use state::{Failure, LogFormat, Settings, Way};
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// What fuzz targets reach.
#[cfg(any(fuzzing, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz {
    pub use crate::base::glob::fuzz::glob;
    pub use crate::command::fuzz::acl_rules;
    pub use crate::http::fuzz::Http;
    pub use crate::net::fuzz::Redis;
}

/// Exit status of a server whose log another node owns.
const DEPOSED: u8 = 4;
/// How long a process rests before it begins anew.
const ANEW_REST: Duration = Duration::from_millis(200);

/// Runs the program with the command line of the process.
pub fn main() -> ExitCode {
    let options = match Cli::parse().command {
        Command::Serve(options) => options,
        Command::Import(import) => return latewood_migrate::import(import),
        Command::Export(export) => return latewood_migrate::export(export),
        Command::Check(options) => return tools::check(&options),
        Command::Inspect(options) => return tools::inspect(&options),
        Command::Stats(options) => return tools::stats(&options),
        Command::Cluster(options) => return tools::cluster(&options),
        Command::Merge(options) => return tools::merge(&options),
        Command::Backup(options) => return tools::backup(&options),
        Command::Restore(options) => return tools::restore(&options),
    };
    let settings = options::resolve(*options, |name| std::env::var_os(name));
    let outcome = settings.map_err(Failure::from).and_then(|settings| {
        start_log(&settings);
        for name in options::unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
            tracing::warn!(
                name,
                "no option has this environment variable: it is ignored"
            );
        }
        start::run(settings)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { reason, way }) => {
            // Nobody may read it.
            let _ = writeln!(std::io::stderr(), "latewood: {reason}");
            match way {
                Way::Ends => ExitCode::FAILURE,
                Way::Deposed => ExitCode::from(DEPOSED),
                Way::Anew => begin_anew(),
            }
        }
    }
}

/// Runs the program once more in the same process, with the same command line.
fn begin_anew() -> ExitCode {
    let _ = writeln!(std::io::stderr(), "latewood: starting anew as a follower");
    // What failed at once may do so again.
    std::thread::sleep(ANEW_REST);
    let error = match std::env::current_exe() {
        Ok(program) => std::process::Command::new(program)
            .args(std::env::args_os().skip(1))
            .exec(),
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "latewood: cannot start anew: {error}");
    ExitCode::FAILURE
}

fn start_log(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(settings.log_level.name()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // Where a line cannot be written, as on a full disk, the server goes on.
        .log_internal_errors(false)
        .with_target(false);
    match settings.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
