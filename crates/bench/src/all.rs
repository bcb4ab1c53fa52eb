//! The measurements behind `docs/benchmarks`, one after the other, and the page of all of them.

mod reports;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Parser};

pub(crate) use self::reports::{REPORTS, Report};
use crate::error::{Doing, Error, Result};
use crate::{Cli, dispatch, report};

/// Where the pages go that nobody named a folder for.
const OUT: &str = "docs/benchmarks";
const OUT_QUICK: &str = "target/benchmarks-quick";
/// How a command names the peers of the reports by TS commands.
const PEERS: [&str; 2] = [" --start redistimeseries-aof", " --start redistimeseries"];

/// Make every report of docs/benchmarks again, in two to three hours, or the same from less data.
#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    /// Folder for runs, pages and charts [default: docs/benchmarks; quick: target/benchmarks-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs of every cell [default: 5; quick: 2]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    repeats: Option<u64>,
    /// Less data: the same picture in minutes, to see whether it is true
    #[arg(long)]
    quick: bool,
    /// Only these reports
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = named)]
    only: Vec<Report>,
    /// Only Latewood, and no reports of lines beside others: nothing is fetched
    #[arg(long)]
    alone: bool,
}

/// Runs the subcommand. A measurement that fails does not keep the others from being made, nor
/// does a peer that this machine cannot run: it is left out, and named at the end and on the pages.
///
/// # Errors
/// When a measurement has failed or the pages cannot be written.
pub(crate) fn run(args: &AllArgs) -> Result<()> {
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| if args.quick { OUT_QUICK } else { OUT }.into());
    std::fs::create_dir_all(&out).doing(format!("make {}", out.display()))?;
    let mut failed = Vec::new();
    for report in args.reports() {
        let command = args.command(report, &out.display().to_string());
        eprintln!("latewood-bench {command}");
        let began = Instant::now();
        let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|error| Error::new(error.to_string()))?;
        match dispatch(cli.mode, &command) {
            Ok(()) => eprintln!("{}: {:.0} s", report.name, began.elapsed().as_secs_f64()),
            Err(error) => {
                eprintln!("{}: {error}", report.name);
                failed.push(report.name);
            }
        }
    }
    report::write_all(&out)?;
    let made = |report: &&Report| !failed.contains(&report.name);
    for report in args.reports().into_iter().filter(made) {
        let file = out.join(format!("{}.json", report.name));
        let made = report::json::read(&file);
        for sentence in made.map(|made| made.absent()).unwrap_or_default() {
            eprintln!("*** {}: {sentence}", report.name);
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(Error::new(format!("failed: {}", failed.join(", ")))),
    }
}

fn named(name: &str) -> std::result::Result<Report, String> {
    let found = REPORTS.iter().find(|report| report.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = REPORTS.iter().map(|report| report.name).collect();
        format!("one of {}", names.join(", "))
    })
}

impl AllArgs {
    fn reports(&self) -> Vec<&Report> {
        let chosen = |report: &&Report| {
            self.only.is_empty() || self.only.iter().any(|one| one.name == report.name)
        };
        let possible = |report: &&Report| !(self.alone && report.name.starts_with("lines"));
        REPORTS.iter().filter(chosen).filter(possible).collect()
    }

    fn command(&self, report: &Report, out: &str) -> String {
        let repeats = match self.repeats {
            Some(repeats) => repeats as usize,
            None if self.quick => 2,
            None => 5,
        };
        let command = report.command(self.quick, repeats, out);
        match self.alone {
            // Each report with peers names them, so that none is started by default.
            true => PEERS
                .iter()
                .fold(command, |rest, peer| rest.replace(peer, "")),
            false => command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_a_command_that_parses() {
        for quick in [false, true] {
            for report in REPORTS {
                let command = report.command(quick, 3, "d");
                assert!(command.contains(&format!("d/{}.json", report.name)));
                assert!(!command.contains('{'), "{command}");
                let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
                Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{command}: {error}"));
            }
        }
    }

    #[test]
    fn reports_can_be_chosen_and_peers_left_out() {
        let all = |words: &str| match Cli::try_parse_from(words.split(' ')).unwrap().mode {
            crate::Mode::All(args) => args,
            other => panic!("{other:?}"),
        };
        let some = all("x all --quick --only late,lines --alone");
        let commands: Vec<String> = some
            .reports()
            .iter()
            .map(|r| some.command(r, "d"))
            .collect();
        assert_eq!(commands.len(), 1);
        assert!(commands[0].starts_with("late --start latewood --series"));
        assert!(commands[0].contains("repeats=2"));
        assert_eq!(all("x all").reports().len(), REPORTS.len());
        let alone = all("x all --alone");
        for report in alone.reports() {
            let command = alone.command(report, "d");
            assert!(!command.contains("redistimeseries"), "{command}");
            // These start peers unless told whom to start.
            let by_default = ["late", "lines", "query"];
            let is_told = command.contains("--start latewood");
            let first = command.split(' ').next().unwrap();
            assert!(is_told || !by_default.contains(&first), "{command}");
        }
        assert!(Cli::try_parse_from(["x", "all", "--only", "none"]).is_err());
    }
}
