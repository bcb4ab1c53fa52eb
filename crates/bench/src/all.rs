//! The measurements behind `docs/benchmarks`, one after the other, and the page of all of them.

mod reports;

use std::path::{Path, PathBuf};
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
    /// Runs of every cell, in all reports that repeat theirs [default: 5, fewer where one takes
    /// long; quick: 2 or 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    repeats: Option<u64>,
    /// Less data: the same picture in minutes, to see whether it is true
    #[arg(long)]
    quick: bool,
    /// Only these reports
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = named)]
    only: Vec<Report>,
    /// Only Latewood, without the reports lines and lines-prometheus: nothing is fetched
    #[arg(long)]
    alone: bool,
}

/// Runs the subcommand. A measurement that fails does not keep the others from being made, nor
/// does a peer that this machine cannot run: it is left out, and named at the end and on the pages.
///
/// # Errors
/// When there is nothing to measure, a measurement has failed or the pages cannot be written.
pub(crate) fn run(args: &AllArgs) -> Result<()> {
    for name in args.left_out() {
        eprintln!("{name}: left out by --alone, since it measures others");
    }
    if args.reports().is_empty() {
        return Err(Error::new("nothing is left to measure"));
    }
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| if args.quick { OUT_QUICK } else { OUT }.into());
    std::fs::create_dir_all(&out).doing(format!("make {}", out.display()))?;
    let mut failed = Vec::new();
    for report in args.reports() {
        let words = args.words(report, &out);
        let command = line(&words[1..]);
        eprintln!("latewood-bench {command}");
        let began = Instant::now();
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

/// Words as one line, those with a blank in quotes, as a shell takes them.
fn line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| match word.contains(' ') {
        true => format!("'{word}'"),
        false => word.clone(),
    });
    quoted.collect::<Vec<_>>().join(" ")
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
        self.chosen(|report| !self.skips(report))
    }

    fn left_out(&self) -> Vec<&str> {
        let left_out = self.chosen(|report| self.skips(report));
        left_out.iter().map(|report| report.name).collect()
    }

    /// Of the reports that were asked for, those that are `wanted`.
    fn chosen(&self, wanted: impl Fn(&Report) -> bool) -> Vec<&Report> {
        let is_named = |report: &&Report| self.only.iter().any(|one| one.name == report.name);
        let asked_for = |report: &&Report| self.only.is_empty() || is_named(report);
        let reports = REPORTS.iter().filter(asked_for);
        reports.filter(|report| wanted(report)).collect()
    }

    fn skips(&self, report: &Report) -> bool {
        self.alone && report.name.starts_with("lines")
    }

    /// The command line of a report that writes into `out`, the name of the program first.
    fn words(&self, report: &Report, out: &Path) -> Vec<String> {
        let mut command = report.command(self.quick, self.repeats);
        if self.alone {
            // Each report with peers names them, so that none is started by default.
            for peer in PEERS {
                command = command.replace(peer, "");
            }
        }
        let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        let json = out.join(format!("{}.json", report.name));
        let [json, out] = [json.as_path(), out].map(|path| path.display().to_string());
        words.extend(["--json".to_owned(), json, "--out".to_owned(), out]);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(words: &str) -> AllArgs {
        let words = ["x", "all"].into_iter().chain(words.split_whitespace());
        match Cli::try_parse_from(words).unwrap().mode {
            crate::Mode::All(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_report_is_a_command_that_parses_whatever_the_folder_is_called() {
        for quick in ["", "--quick"] {
            let args = all(quick);
            for report in REPORTS {
                let words = args.words(&report, Path::new("a folder"));
                let command = line(&words[1..]);
                let files = format!("--json 'a folder/{}.json' --out 'a folder'", report.name);
                assert!(command.ends_with(&files), "{command}");
                assert!(!command.contains('{'), "{command}");
                Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{command}: {error}"));
            }
        }
    }

    #[test]
    fn a_number_of_runs_holds_for_all_reports() {
        for words in ["--repeats 7", "--repeats 7 --quick"] {
            let args = all(words);
            for report in REPORTS {
                let command = line(&args.words(&report, Path::new("d")));
                let asked =
                    command.matches("repeats 7").count() + command.matches("repeats=7").count();
                // What runs once by its nature.
                let once = ["size", "soak"].contains(&report.name);
                assert_eq!(asked, usize::from(!once), "{command}");
                assert_eq!(command.matches("repeats").count(), asked, "{command}");
            }
        }
        let usual = |name: &str, words: &str| {
            line(&all(words).words(&named(name).unwrap(), Path::new("d")))
        };
        assert!(usual("late", "").contains("repeats=5"));
        assert!(usual("late", "--quick").contains("repeats=2"));
        assert!(usual("recover", "").contains("--repeats 3"));
        assert!(usual("late-history", "--quick").contains("repeats=1"));
    }

    #[test]
    fn reports_can_be_chosen_and_peers_left_out() {
        let some = all("--quick --only late,lines --alone");
        let commands: Vec<String> = some
            .reports()
            .iter()
            .map(|report| line(&some.words(report, Path::new("d"))[1..]))
            .collect();
        assert_eq!(commands.len(), 1);
        assert!(commands[0].starts_with("late --start latewood --series"));
        assert_eq!(some.left_out(), ["lines"]);
        assert_eq!(all("").reports().len(), REPORTS.len());
        assert!(all("").left_out().is_empty());
        let alone = all("--alone");
        for report in alone.reports() {
            let command = line(&alone.words(report, Path::new("d"))[1..]);
            assert!(!command.contains("redistimeseries"), "{command}");
            // These start peers unless told whom to start.
            let by_default = ["late", "lines", "query"];
            let is_told = command.contains("--start latewood");
            let first = command.split(' ').next().unwrap();
            assert!(is_told || !by_default.contains(&first), "{command}");
        }
        assert!(Cli::try_parse_from(["x", "all", "--only", "none"]).is_err());
    }

    #[test]
    fn nothing_to_measure_is_said_and_nothing_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut args = all("--only lines,lines-prometheus --alone");
        args.out = Some(out.clone());
        assert_eq!(args.left_out(), ["lines", "lines-prometheus"]);
        assert!(
            run(&args)
                .unwrap_err()
                .to_string()
                .contains("nothing is left")
        );
        assert!(!out.exists());
    }

    #[test]
    fn the_documentation_names_every_report() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
        let text = std::fs::read_to_string(page).unwrap();
        let table = text
            .lines()
            .skip_while(|line| !line.starts_with("| report |"));
        let rows = table.skip(2).take_while(|line| line.starts_with("| "));
        let mut named: Vec<&str> = rows.filter_map(|row| row.split(' ').nth(1)).collect();
        let mut known: Vec<&str> = REPORTS.iter().map(|report| report.name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
