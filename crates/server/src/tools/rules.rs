//! `latewood check rules` and `latewood test rules`: what they print and how they end is that of
//! `promtool check rules` and `promtool test rules`, so that scripts for one run the other.
//!
//! The work is that of `latewood_rules`.

use super::output::{failed, say};
use crate::base::clock::now_ms;
use clap::{Args, Subcommand, ValueEnum};
use latewood_rules::lint::{Duplicate, duplicates};
use latewood_rules::unit::{self, Outcome};
use latewood_rules::{RuleFile, load};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status where a file is wrong or a test fails.
const FAILED: u8 = 1;
/// Exit status where files are only bad style, with `--lint-fatal`.
const LINTED: u8 = 3;

/// What else than a directory can be checked.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckOther {
    /// Check rule files of Prometheus; exit status 0 if all are right, 1 if not, 3 with
    /// --lint-fatal if rules are there twice.
    Rules(CheckRules),
}

/// What can be tested.
#[derive(Debug, Subcommand)]
pub(crate) enum Test {
    /// Run unit tests of rules, in the format of `promtool test rules`; exit status 0 if
    /// all pass, 1 if not.
    Rules(TestRules),
}

/// Options of `latewood check rules`.
#[derive(Args, Debug)]
pub(crate) struct CheckRules {
    /// Rule files; standard input if none is named
    files: Vec<PathBuf>,
    /// What is bad style
    #[arg(long, value_enum, default_value = "duplicate-rules")]
    lint: Lint,
    /// Exit with 3 where something is bad style
    #[arg(long)]
    lint_fatal: bool,
    /// Accept fields that Prometheus does not know
    #[arg(long)]
    ignore_unknown_fields: bool,
}

/// Options of `latewood test rules`.
#[derive(Args, Debug)]
pub(crate) struct TestRules {
    /// Files of unit tests
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Run only tests whose names match this regular expression; may be given several times
    #[arg(long, value_name = "REGEX")]
    run: Vec<String>,
    /// Write the outcome as XML of JUnit to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Show what differs line by line
    #[arg(long)]
    diff: bool,
    /// Accept fields of rule files that Prometheus does not know
    #[arg(long)]
    ignore_unknown_fields: bool,
}

/// What `check rules` calls bad style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lint {
    /// All of it
    All,
    /// Rules of the same name and labels
    DuplicateRules,
    /// Nothing
    None,
}

/// How a file was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    BadStyle,
    Wrong,
}

/// Runs `latewood check rules`.
pub(super) fn check(options: &CheckRules) -> ExitCode {
    let mut verdicts = Vec::new();
    if options.files.is_empty() {
        say("Checking standard input");
        let text = load::read(std::io::stdin()).map_err(|error| vec![error.to_string()]);
        verdicts.push(judged(
            options,
            text.and_then(|text| parsed(&text, options)),
        ));
    }
    for file in &options.files {
        say(&format!("Checking {}", file.display()));
        verdicts.push(judged(
            options,
            load::file(file, options.ignore_unknown_fields),
        ));
    }
    if verdicts.contains(&Verdict::Wrong) {
        ExitCode::from(FAILED)
    } else if verdicts.contains(&Verdict::BadStyle) && options.lint_fatal {
        ExitCode::from(LINTED)
    } else {
        ExitCode::SUCCESS
    }
}

fn parsed(text: &str, options: &CheckRules) -> Result<RuleFile, Vec<String>> {
    let parsed = RuleFile::parse(text, options.ignore_unknown_fields);
    parsed.map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

fn judged(options: &CheckRules, file: Result<RuleFile, Vec<String>>) -> Verdict {
    let verdict = match file {
        Err(errors) => {
            eprintln!("  FAILED:");
            for error in errors {
                eprintln!("{error}");
            }
            Verdict::Wrong
        }
        Ok(file) => {
            if file.has_more {
                eprintln!("  WARNING: only the first document of the file is read");
            }
            let twice = match options.lint {
                Lint::None => Vec::new(),
                Lint::All | Lint::DuplicateRules => duplicates(&file.groups),
            };
            if twice.is_empty() {
                say(&format!("  SUCCESS: {} rules found", file.len()));
                Verdict::Right
            } else {
                tell(&twice);
                Verdict::BadStyle
            }
        }
    };
    say("");
    verdict
}

fn tell(twice: &[Duplicate]) {
    eprintln!("  FAILED:");
    eprintln!("lint error {} duplicate rule(s) found.", twice.len());
    for Duplicate { name, labels } in twice {
        eprintln!("Metric: {name}\nLabel(s):");
        for (label, value) in labels.iter() {
            eprintln!("\t{label}: {value}");
        }
    }
    eprintln!("Might cause inconsistency while recording expressions");
}

/// Runs `latewood test rules`.
pub(crate) fn test(options: &Test) -> ExitCode {
    let Test::Rules(options) = options;
    let mut of_unit = unit::Options {
        diff: options.diff,
        ignores_unknown: options.ignore_unknown_fields,
        ..unit::Options::default()
    };
    if let Err(error) = of_unit.only(&options.run) {
        return failed(&format!("--run: {error}"));
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for file in &options.files {
        say(&format!("Processing test file: {}", file.display()));
        let outcome = unit::test(file, &of_unit);
        for warning in &outcome.warnings {
            eprintln!("  WARNING: {warning}");
        }
        if outcome.is_success() {
            say("  SUCCESS");
        } else {
            eprintln!("  FAILED:");
            for failure in outcome.failures() {
                eprintln!("{failure}");
                say("");
            }
        }
        say("");
        outcomes.push(outcome);
    }
    if let Some(path) = &options.junit {
        let xml = unit::junit(&outcomes, now_ms() / 1000);
        if let Err(error) = std::fs::write(path, xml) {
            return failed(&format!("{}: {error}", path.display()));
        }
    }
    if outcomes.iter().all(Outcome::is_success) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}
