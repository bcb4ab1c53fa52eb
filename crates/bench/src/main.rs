//! `latewood-bench`: workloads, targets and reports for time-series servers.
//!
//! Folders, each of which imports only from those below it: `demo`; `run`, a file for each family
//! of reports; `drive`, the drivers over the wire and in process; `server`, what is measured;
//! `protocol`, `workload`, what is sent; `load`, the load generator; `measure`, clocks and processes;
//! `base`. Pages and charts are drawn from the raw runs by `report/report.py`.

mod base;
mod demo;
mod drive;
mod load;
mod measure;
mod protocol;
mod run;
mod server;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::base::error::{Error, Result};

/// The server's, so that what is measured in process is what the server does.
#[cfg(feature = "jemalloc")]
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
    Late(Box<run::late::LateArgs>),
    Lines(run::lines::LinesArgs),
    Generate(run::generate::GenerateArgs),
    Senders(run::senders::SendersArgs),
    Durable(run::durable::DurableArgs),
    Remote(run::remote::RemoteArgs),
    Recover(run::fleet::RecoverArgs),
    Query(run::query::QueryArgs),
    Promql(run::promql::PromqlArgs),
    Inprocess(run::inprocess::InProcessArgs),
    New(Box<run::new::NewArgs>),
    Fleet(run::fleet::FleetArgs),
    Wear(run::fleet::WearArgs),
    Mixed(run::mixed::MixedArgs),
    Size(run::size::SizeArgs),
    Stages(run::stages::StagesArgs),
    Soak(run::soak::SoakArgs),
    All(run::all::AllArgs),
    /// Draw pages and charts again: FILE.json --out DIR, or --all [DIR]
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
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
        Mode::Late(args) => run::late::run(&args, command),
        Mode::Lines(args) => run::lines::run(&args, command),
        Mode::Generate(args) => run::generate::run(&args),
        Mode::Senders(args) => run::senders::run(&args, command),
        Mode::Durable(args) => run::durable::run(&args, command),
        Mode::Remote(args) => run::remote::run(&args, command),
        Mode::Recover(args) => run::fleet::recover(&args, command),
        Mode::Query(args) => run::query::run(&args, command),
        Mode::Promql(args) => run::promql::run(&args, command),
        Mode::Inprocess(args) => run::inprocess::run(&args, command),
        Mode::New(args) => run::new::run(&args, command),
        Mode::Fleet(args) => run::fleet::run(&args, command),
        Mode::Wear(args) => run::fleet::wear(&args, command),
        Mode::Mixed(args) => run::mixed::run(&args, command),
        Mode::Size(args) => run::size::run(&args, command),
        Mode::Soak(args) => run::soak::run(&args, command),
        Mode::Stages(args) => run::stages::run(&args, command),
        Mode::All(args) => run::all::run(&args, |words, command| {
            let cli = Cli::try_parse_from(words).map_err(|error| Error::new(error.to_string()))?;
            dispatch(cli.mode, command)
        }),
        Mode::Report { words } => run::report::draw(words),
        Mode::Demo(args) => demo::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_a_command_that_parses() {
        for command in run::all::commands() {
            let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}
