//! The measurements behind `docs/benchmarks`, one after the other, and the page of all of them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Deserialize;

use super::report::draw;
use crate::base::error::{Doing, Error, Result};
use crate::base::threads::up_to_all_cores;

/// Where the pages go that nobody named a folder for.
const OUT: &str = "docs/benchmarks";
const OUT_QUICK: &str = "target/benchmarks-quick";
/// Every report: the question it answers, and the command that makes it, whole and quick, in the
/// order they are made. Reports whose peers not every machine can have come last, and Prometheus,
/// which is left alone for over a minute after each load, on its own.
const CATALOG: &str = include_str!("../../report/catalog.json");
/// What reports share: late samples at pipeline 50, and over history that memory does not hold.
const SHARED: [(&str, &str); 4] = [
    (
        "{late}",
        "late --start latewood --start redistimeseries --series 32 --samples 25000 --warmup 2000 \
         --connections 8",
    ),
    (
        "{late-quick}",
        "late --start latewood --start redistimeseries --series 32 --samples 5000 --warmup 500 \
         --connections 8",
    ),
    ("{own}", "late --start latewood --memory 64mb --series 8"),
    ("{one}", "--connections 8"),
];
/// Runs of every cell, where a report does not say another number, whole and quick.
const REPEATS: [u64; 2] = [5, 2];
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
    /// Only Latewood, without the reports lines, lines-prometheus and remote: nothing is fetched
    #[arg(long)]
    alone: bool,
}

/// Runs the subcommand; `measure` runs one command line, whose words begin with the program. A
/// measurement that fails does not keep the others from being made, nor does a peer that this
/// machine cannot run: it is left out, and named at the end and on the pages.
pub(crate) fn run(args: &AllArgs, measure: impl Fn(&[String], &str) -> Result<()>) -> Result<()> {
    let (skipped, reports): (Vec<_>, Vec<_>) = args
        .chosen()
        .into_iter()
        .partition(|report| args.skips(report));
    for Report { name, .. } in skipped {
        eprintln!("{name}: left out by --alone, since it needs others");
    }
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
                failed.push(report.name.as_str());
            }
        }
    }
    draw([Path::new("--all"), &out])?;
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(Error::new(format!("failed: {}", failed.join(", ")))),
    }
}

/// Words as one line, those with a blank in quotes, as a shell takes them.
fn line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        if word.contains(' ') {
            format!("'{word}'")
        } else {
            word.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A report of `docs/benchmarks`. In its commands the names of [`SHARED`] and `{threads}` are filled
/// in, and how often each cell runs: `{repeats}` as others do, `{3}` three times, unless one asks for
/// another number.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    name: String,
    full: String,
    quick: String,
}

/// All of them.
fn reports() -> Vec<Report> {
    serde_json::from_str(CATALOG).expect("a test reads the catalog")
}

/// Every command line, whole and quick, for a test of their words.
#[cfg(test)]
pub(crate) fn commands() -> Vec<String> {
    let both = |report: Report| [false, true].map(|is_quick| report.command(is_quick, None));
    reports().into_iter().flat_map(both).collect()
}

impl Report {
    /// The command line without the program and its files, each cell run as often as `asked`, else
    /// as the report needs.
    fn command(&self, is_quick: bool, asked: Option<u64>) -> String {
        let words = if is_quick { &self.quick } else { &self.full };
        let shared = SHARED.iter().fold(words.clone(), |words, (name, meant)| {
            words.replace(name, meant)
        });
        let times = |usual: u64| asked.unwrap_or(usual).to_string();
        let usual = REPEATS[usize::from(is_quick)];
        let words = shared
            .replace("{threads}", &up_to_all_cores())
            .replace("{repeats}", &times(usual));
        (1..REPEATS[0]).fold(words, |words, own| {
            words.replace(&format!("{{{own}}}"), &times(own))
        })
    }
}

fn named(name: &str) -> std::result::Result<Report, String> {
    let found = reports().into_iter().find(|report| report.name == name);
    found.ok_or_else(|| {
        let names: Vec<String> = reports().into_iter().map(|report| report.name).collect();
        format!("must be one of {}", names.join(", "))
    })
}

impl AllArgs {
    /// The reports that were asked for.
    fn chosen(&self) -> Vec<Report> {
        let is_named = |report: &Report| self.only.iter().any(|one| one.name == report.name);
        let mut reports = reports();
        reports.retain(|report| self.only.is_empty() || is_named(report));
        reports
    }

    fn skips(&self, report: &Report) -> bool {
        self.alone && (report.name.starts_with("lines") || report.name == "remote")
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
        let json = out.join(format!("{}.json", report.name));
        let [json, out] = [&json, out].map(|path| path.display().to_string());
        let command = ["latewood-bench"]
            .into_iter()
            .chain(command.split_whitespace());
        let files = ["--json", &json, "--out", &out];
        command.chain(files).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AllArgs,
    }

    /// The command lines that these words run, by the names of their reports.
    fn chosen(words: &str) -> Vec<(String, String)> {
        let args = Cli::parse_from(format!("x {words}").split_whitespace()).args;
        let mut reports = args.chosen();
        reports.retain(|report| !args.skips(report));
        let words = |report: &Report| line(&args.words(report, Path::new("a folder"))[1..]);
        reports
            .iter()
            .map(|report| (report.name.clone(), words(report)))
            .collect()
    }

    #[test]
    fn every_report_is_a_command_with_as_many_runs_as_asked_for() {
        for words in ["--repeats 7", "--repeats 7 --quick"] {
            assert_eq!(chosen(words).len(), reports().len());
            for (name, command) in chosen(words) {
                let files = format!("--json 'a folder/{name}.json' --out 'a folder'");
                assert!(
                    command.ends_with(&files) && !command.contains('{'),
                    "{command}"
                );
                // What runs once by its nature.
                let expected = usize::from(!["size", "soak"].contains(&&*name));
                assert_eq!(command.matches("repeats 7").count(), expected, "{command}");
                assert_eq!(command.matches("repeats").count(), expected, "{command}");
            }
        }
        for (words, expected) in [
            ("--only late", "repeats 5"),
            ("--only late --quick", "repeats 2"),
            ("--only recover", "--repeats 3"),
            ("--only late-history --quick", "repeats 1"),
        ] {
            assert!(chosen(words)[0].1.contains(expected), "{words}");
        }
    }

    #[test]
    fn reports_can_be_chosen_and_peers_left_out() {
        let some = chosen("--quick --only late,lines --alone");
        assert_eq!(some.len(), 1);
        assert!(some[0].1.starts_with("late --start latewood --series"));
        for (_, command) in chosen("--alone") {
            assert!(!command.contains("redistimeseries"), "{command}");
            // These start peers unless told whom to start.
            let starts = ["late ", "lines ", "query "].map(|name| command.starts_with(name));
            assert!(command.contains("--start latewood") || !starts.contains(&true));
        }
        assert!(Cli::try_parse_from(["x", "--only", "none"]).is_err());
    }

    #[test]
    fn nothing_to_measure_is_said_and_nothing_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let words = ["x", "--only", "lines,lines-prometheus", "--alone"];
        let mut args = Cli::parse_from(words).args;
        args.out = Some(out.clone());
        let said = run(&args, |_, _| unreachable!()).unwrap_err();
        assert!(said.to_string().contains("nothing is left") && !out.exists());
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
        let mut known: Vec<String> = reports().into_iter().map(|report| report.name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
