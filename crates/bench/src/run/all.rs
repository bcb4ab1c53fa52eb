//! The measurements behind `docs/benchmarks`, one after the other, and the page of all of them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use crate::base::error::{Doing, Error, Result};
use crate::page;
use crate::page::catalog::{Report, reports};

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

/// Runs the subcommand; `measure` runs one command line, whose words begin with the program. A
/// measurement that fails does not keep the others from being made, nor does a peer that this
/// machine cannot run: it is left out, and named at the end and on the pages.
pub(crate) fn run(args: &AllArgs, measure: impl Fn(&[String], &str) -> Result<()>) -> Result<()> {
    for report in args.chosen(|report| args.skips(report)) {
        eprintln!(
            "{}: left out by --alone, since it measures others",
            report.name
        );
    }
    let reports = args.chosen(|report| !args.skips(report));
    if reports.is_empty() {
        return Err(Error::new("nothing is left to measure"));
    }
    let usual = if args.quick { OUT_QUICK } else { OUT };
    let out = args.out.clone().unwrap_or_else(|| usual.into());
    std::fs::create_dir_all(&out).doing(format!("make {}", out.display()))?;
    let mut failed = Vec::new();
    for report in &reports {
        let words = args.words(report, &out);
        let command = line(&words[1..]);
        eprintln!("latewood-bench {command}");
        let began = Instant::now();
        match measure(&words, &command) {
            Ok(()) => eprintln!("{}: {:.0} s", report.name, began.elapsed().as_secs_f64()),
            Err(error) => {
                eprintln!("{}: {error}", report.name);
                failed.push(report.name);
            }
        }
    }
    page::write_all(&out)?;
    for report in reports
        .iter()
        .filter(|report| !failed.contains(&report.name))
    {
        let made = page::read(&out.join(format!("{}.json", report.name)))?;
        for sentence in page::sheet::absent(&made) {
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
    let reports = reports();
    let found = reports.iter().find(|report| report.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = reports.iter().map(|report| report.name).collect();
        format!("must be one of {}", names.join(", "))
    })
}

impl AllArgs {
    /// Of the reports that were asked for, those that are `wanted`.
    fn chosen(&self, wanted: impl Fn(&Report) -> bool) -> Vec<Report> {
        let is_named = |report: &Report| self.only.iter().any(|one| one.name == report.name);
        let is_asked = |report: &Report| self.only.is_empty() || is_named(report);
        let mut reports = reports();
        reports.retain(|report| is_asked(report) && wanted(report));
        reports
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
    use std::cell::RefCell;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AllArgs,
    }

    /// The command lines that these words run.
    fn commands(words: &str) -> Vec<String> {
        let args = Cli::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        let args = args.unwrap_or_else(|error| panic!("{error}")).args;
        let reports = args.chosen(|report| !args.skips(report));
        let words = reports
            .iter()
            .map(|report| args.words(report, Path::new("a folder")));
        words.map(|words| line(&words[1..])).collect()
    }

    #[test]
    fn every_report_is_a_command_whatever_the_folder_is_called() {
        for words in ["", "--quick"] {
            let commands = commands(words);
            for (report, command) in reports().iter().zip(&commands) {
                let files = format!("--json 'a folder/{}.json' --out 'a folder'", report.name);
                assert!(
                    command.ends_with(&files) && !command.contains('{'),
                    "{command}"
                );
            }
            assert_eq!(commands.len(), reports().len());
        }
    }

    #[test]
    fn a_number_of_runs_holds_for_all_reports() {
        for words in ["--repeats 7", "--repeats 7 --quick"] {
            for (report, command) in reports().iter().zip(commands(words)) {
                let asked = ["repeats 7", "repeats=7"].map(|text| command.matches(text).count());
                // What runs once by its nature.
                let once = ["size", "soak"].contains(&report.name);
                assert_eq!(asked[0] + asked[1], usize::from(!once), "{command}");
                assert_eq!(
                    command.matches("repeats").count(),
                    asked[0] + asked[1],
                    "{command}"
                );
            }
        }
        for (words, expected) in [
            ("--only late", "repeats=5"),
            ("--only late --quick", "repeats=2"),
            ("--only recover", "--repeats 3"),
            ("--only late-history --quick", "repeats=1"),
        ] {
            assert!(commands(words)[0].contains(expected), "{words}");
        }
    }

    #[test]
    fn reports_can_be_chosen_and_peers_left_out() {
        let some = commands("--quick --only late,lines --alone");
        assert_eq!(some.len(), 1);
        assert!(some[0].starts_with("late --start latewood --series"));
        for command in commands("--alone") {
            assert!(!command.contains("redistimeseries"), "{command}");
            // These start peers unless told whom to start.
            let by_default = ["late", "lines", "query"];
            let is_told = command.contains("--start latewood");
            assert!(is_told || !by_default.contains(&command.split(' ').next().unwrap()));
        }
        assert!(Cli::try_parse_from(["x", "--only", "none"]).is_err());
    }

    #[test]
    fn nothing_to_measure_is_said_and_nothing_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let words = ["x", "--only", "lines,lines-prometheus", "--alone"];
        let mut args = Cli::try_parse_from(words).unwrap().args;
        args.out = Some(out.clone());
        let measured = RefCell::new(0);
        let said = run(&args, |_, _| {
            *measured.borrow_mut() += 1;
            Ok(())
        });
        assert!(said.unwrap_err().to_string().contains("nothing is left"));
        assert!(!out.exists() && measured.into_inner() == 0);
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
        let mut known: Vec<&str> = reports().iter().map(|report| report.name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
