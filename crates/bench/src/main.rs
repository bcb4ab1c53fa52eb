//! `latewood-bench`: workloads, targets and reports for time-series servers.
//!
//! Folders, each of which imports only from those below it: `demo`; `run`, a file for each family
//! of reports; `drive`, the drivers over the wire and in process; `server`, what is measured;
//! `protocol`, `workload`, what is sent; `load`, the load generator; `measure`, clocks and processes;
//! `base`. `report/report.py` draws pages and charts from the raw runs, `report/every.py` makes all.

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

use clap::{Command, FromArgMatches};

use self::base::error::Result;
use self::run::options::Mode;
use self::run::report::{Report, draw, every};
use self::run::{MODES, generate};

/// The server's, so that what is measured in process is what the server does.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What can be run beside the measurements.
#[derive(Debug, clap::Subcommand)]
enum Other {
    Generate(generate::GenerateArgs),
    /// Make every report of docs/benchmarks again; `all --help` tells more
    #[command(disable_help_flag = true)]
    All {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Draw pages and charts again: `FILE.json --out DIR`, or `--all [DIR]`
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
    Demo(demo::DemoArgs),
}

fn cli() -> Command {
    let cli = Command::new("latewood-bench")
        .about("Workloads, targets and reports for time-series servers")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(MODES.iter().map(Mode::command));
    <Other as clap::Subcommand>::augment_subcommands(cli)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words.join(" ")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latewood-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command line, which a report calls `command`.
fn dispatch(command: &str) -> Result<()> {
    let matches = cli().get_matches();
    if let Some((name, of)) = matches.subcommand()
        && let Some(mode) = MODES.iter().find(|mode| mode.name == name)
    {
        return Report::make(mode, of, command);
    }
    match Other::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()) {
        Other::Generate(args) => generate::run(&args),
        Other::All { words } => every(&words),
        Other::Report { words } => draw(words),
        Other::Demo(args) => demo::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `report/every.py` fills in.
    const FILLED: [(&str, &str); 6] = [
        ("{threads}", "1,2"),
        ("{repeats}", "5"),
        ("{1}", "1"),
        ("{2}", "2"),
        ("{3}", "3"),
        ("{6}", "6"),
    ];

    #[test]
    fn every_report_is_a_command_that_parses() {
        let catalog = include_str!("../report/catalog.json");
        let catalog: Vec<serde_json::Value> = serde_json::from_str(catalog).unwrap();
        for command in catalog
            .iter()
            .flat_map(|report| [&report["full"], &report["quick"]])
        {
            let command = command.as_str().unwrap().to_owned();
            let command = FILLED.iter().fold(command, |command, (name, meant)| {
                command.replace(name, meant)
            });
            let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
            let read = cli().try_get_matches_from(words);
            read.unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}
