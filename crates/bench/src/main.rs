//! `latewood-bench`: workloads, targets and reports for time-series servers.
//!
//! Everything here speaks to servers over their sockets, so that Latewood and its peers are
//! measured the same way. A workload says what is sent, a target where to, a report what came out.

mod address;
mod control;
mod demo;
mod durable;
mod error;
mod late;
mod load;
mod machine;
mod progress;
mod recover;
mod reply;
mod report;
mod target;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Workloads, targets and reports for time-series servers.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    Late(Box<late::LateArgs>),
    Demo(demo::DemoArgs),
    Durable(durable::DurableArgs),
    Recover(recover::RecoverArgs),
    Report(report::ReportArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().mode {
        Mode::Late(args) => late::run(&args),
        Mode::Demo(args) => demo::run(&args),
        Mode::Durable(args) => durable::run(&args),
        Mode::Recover(args) => recover::run(&args),
        Mode::Report(args) => report::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latewood-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
