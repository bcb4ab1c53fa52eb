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
//! rules      rule files: recording rules and alerts, evaluated live
//! intake     samples of other protocols on their way into the engine
//! labelled   series as readers by label see them, and as a source of PromQL
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
mod labelled;
mod lines;
mod messaging;
mod net;
mod observe;
mod options;
mod rules;
mod start;
mod state;
mod tools;

use clap::Parser;
use start::{Cli, Command};
use state::{Failure, LogFormat, Settings, Way};
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
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
/// How long a process rests before it begins anew; twice as long each time that it ended before it
/// had all of the log, up to the longest.
const ANEW_REST: Duration = Duration::from_millis(200);
const ANEW_REST_MAX: Duration = Duration::from_secs(30);
/// Tells a process that began anew how long it rests first, in milliseconds. For this program alone.
const ANEW_VARIABLE: &str = "_LATEWOOD_ANEW_REST_MS";

/// Runs the program with the command line of the process.
pub fn main() -> ExitCode {
    let rest = rest_anew();
    let options = match Cli::parse().command {
        Command::Serve(options) => options,
        Command::Import(import) => return latewood_migrate::import(import),
        Command::Export(export) => return latewood_migrate::export(export),
        Command::Check(options) => return tools::check(&options),
        Command::Inspect(options) => return tools::inspect(&options),
        Command::Stats(options) => return tools::stats(&options),
        Command::Test(options) => return tools::test(&options),
        Command::Rules(options) => return tools::ask_rules(&options),
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
        start::run(settings, rest)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { reason, way }) => {
            // Nobody may read it.
            let _ = writeln!(std::io::stderr(), "latewood: {reason}");
            match way {
                Way::Ends => ExitCode::FAILURE,
                Way::Deposed => ExitCode::from(DEPOSED),
                Way::Anew { was_fresh } => begin_anew(next_rest(rest, was_fresh)),
            }
        }
    }
}

/// How long this process rests, if it begins anew: what ended the one before may do so again.
fn rest_anew() -> Option<Duration> {
    let rest_ms = std::env::var(ANEW_VARIABLE).ok()?.parse().ok()?;
    Some(Duration::from_millis(rest_ms).min(ANEW_REST_MAX))
}

/// How long the next process rests.
fn next_rest(rested: Option<Duration>, was_fresh: bool) -> Duration {
    match rested {
        Some(rested) if !was_fresh => (rested * 2).min(ANEW_REST_MAX),
        _ => ANEW_REST,
    }
}

/// Runs the program once more in the same process, with the same command line.
fn begin_anew(rest: Duration) -> ExitCode {
    let rest_ms = rest.as_millis();
    let _ = writeln!(
        std::io::stderr(),
        "latewood: starting anew as a follower in {rest_ms} ms"
    );
    let error = match program() {
        Ok(program) => std::process::Command::new(program)
            .arg0(std::env::args_os().next().unwrap_or_default())
            .args(std::env::args_os().skip(1))
            .env(ANEW_VARIABLE, rest_ms.to_string())
            .exec(),
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "latewood: cannot start anew: {error}");
    ExitCode::FAILURE
}

/// The file of this program, also if another one has its name by now.
fn program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_never_has_all_of_the_log_rests_longer_each_time() {
        let mut rested = None;
        let mut rests_ms = Vec::new();
        for _ in 0..12 {
            let rest = next_rest(rested, false);
            rests_ms.push(rest.as_millis());
            rested = Some(rest);
        }
        assert_eq!(rests_ms[..4], [200, 400, 800, 1_600]);
        assert_eq!(rests_ms[8..], [30_000; 4]);
        assert_eq!(next_rest(rested, true), ANEW_REST);
    }
}
