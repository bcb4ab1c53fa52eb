//! `latewood-bench`: workloads, targets and reports for time-series servers.
//!
//! Everything here speaks to servers over their sockets, so that Latewood and its peers are
//! measured the same way. A workload says what is sent, a target where to, a report what came out.

mod absent;
mod address;
mod all;
mod control;
mod decode;
mod demo;
mod durable;
mod error;
mod fleet;
mod fresh;
mod generate;
mod http;
mod inprocess;
mod late;
mod lines;
mod load;
mod machine;
mod mixed;
mod new;
mod output;
mod progress;
mod protocol;
mod query;
mod quiet;
mod recover;
mod reply;
mod report;
mod senders;
mod size;
mod soak;
mod stages;
mod target;
mod threads;
mod usage;
mod watch;
mod wear;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Result;

/// The server's, so that what is measured in process is what the server does.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    Lines(lines::LinesArgs),
    Generate(generate::GenerateArgs),
    Senders(senders::SendersArgs),
    Decode(decode::DecodeArgs),
    Durable(durable::DurableArgs),
    Recover(recover::RecoverArgs),
    Query(query::QueryArgs),
    Inprocess(inprocess::InProcessArgs),
    New(Box<new::NewArgs>),
    Fleet(fleet::FleetArgs),
    Wear(wear::WearArgs),
    Mixed(mixed::MixedArgs),
    Size(size::SizeArgs),
    Stages(stages::StagesArgs),
    Soak(soak::SoakArgs),
    All(all::AllArgs),
    Report(report::ReportArgs),
    Demo(demo::DemoArgs),
}

fn main() -> ExitCode {
    let command: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(Cli::parse().mode, &command.join(" ")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latewood-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one mode; `command` is its command line without the name of the program.
fn dispatch(mode: Mode, command: &str) -> Result<()> {
    match mode {
        Mode::Late(args) => late::run(&args, command),
        Mode::Lines(args) => lines::run(&args, command),
        Mode::Generate(args) => generate::run(&args),
        Mode::Decode(args) => decode::run(&args),
        Mode::Senders(args) => senders::run(&args, command),
        Mode::Durable(args) => durable::run(&args, command),
        Mode::Recover(args) => recover::run(&args, command),
        Mode::Query(args) => query::run(&args, command),
        Mode::Inprocess(args) => inprocess::run(&args, command),
        Mode::New(args) => new::run(&args, command),
        Mode::Fleet(args) => fleet::run(&args, command),
        Mode::Wear(args) => wear::run(&args, command),
        Mode::Mixed(args) => mixed::run(&args, command),
        Mode::Size(args) => size::run(&args, command),
        Mode::Soak(args) => soak::run(&args, command),
        Mode::Stages(args) => stages::run(&args, command),
        Mode::All(args) => all::run(&args),
        Mode::Report(args) => report::run(&args),
        Mode::Demo(args) => demo::run(&args),
    }
}
