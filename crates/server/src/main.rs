//! The process `latewood`: command line, sockets, commands.
//!
//! The way of a command: `net` reads bytes and parses them with
//! `latewood-wire`, `command` looks it up and applies it to the engine, `net`
//! sends the reply. `cli` and `config` say how the process is started,
//! `server` starts and stops it, `shared` and `session` are its state.
//!
//! Tested as a whole: `tests/` starts the built binary and speaks to its
//! socket, byte for byte.

mod acl;
mod age;
mod channels;
mod cli;
mod client_info;
mod command;
mod config;
mod damage;
mod descriptors;
mod errands;
mod events;
mod gate;
mod glob;
mod http;
mod intake;
mod labelled;
mod lines;
mod loading;
mod net;
mod notices;
mod observe;
mod outside;
mod pause;
mod ranges;
mod senders;
mod server;
mod session;
mod shared;
mod size;
mod stream;
mod subscriptions;
mod switch;
mod tools;
mod waiting;
mod watches;

use clap::Parser;
use cli::{Cli, Command, LogFormat};
use config::Settings;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Memory that a flush frees goes back to the system soon: see the settings in
/// `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let options = match Cli::parse().command {
        Command::Serve(options) => options,
        Command::Import(import) => return latewood_migrate::import(import),
        Command::Export(export) => return latewood_migrate::export(export),
        Command::Check(options) => return tools::check(&options),
        Command::Inspect(options) => return tools::inspect(&options),
        Command::Stats(options) => return tools::stats(&options),
        Command::Compact(options) => return tools::compact(&options),
        Command::Backup(options) => return tools::backup(&options),
        Command::Restore(options) => return tools::restore(&options),
    };
    let outcome = Settings::resolve(*options)
        .map_err(|error| error.to_string())
        .and_then(|settings| {
            start_log(&settings);
            server::run(settings)
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("latewood: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn start_log(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(settings.log_level.name()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    match settings.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
