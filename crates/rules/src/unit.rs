//! Unit tests of rules, in the format of `promtool test rules`.
//!
//! A file names rule files, and holds tests: series, and what alerts and expressions must be at
//! times. Each test has series of its own in memory; all groups are evaluated at each evaluation
//! interval, as Prometheus 3.16 does it, whatever interval they have.
//!
//! Tested by `tests/unit`, by files written for it and, where Go is there, by those of Prometheus.

mod compare;
mod file;
mod report;
mod run;

pub use report::junit;

use crate::duration;
use crate::fault::Fault;
use crate::file::Group;
use crate::load;
use crate::unit::file::TestFile;
use crate::unit::run::Suite;
use regex::Regex;
use std::collections::HashMap;
use std::path::Path;

/// How tests are run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only tests whose names this finds.
    pub run: Option<Regex>,
    /// Failures are told line by line.
    pub diff: bool,
    /// Unknown fields of rule files are no faults.
    pub ignores_unknown: bool,
}

impl Options {
    /// Runs only tests whose names match one of these regular expressions, if there are any.
    ///
    /// # Errors
    /// Where one is none.
    pub fn only(&mut self, patterns: &[String]) -> Result<(), regex::Error> {
        if !patterns.is_empty() {
            self.run = Some(Regex::new(&patterns.join("|"))?);
        }
        Ok(())
    }
}

/// What the tests of a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// Why none of its tests was run.
    pub aborted: Vec<String>,
    /// Patterns of rule files that name no file.
    pub warnings: Vec<String>,
    /// Its tests that were run.
    pub cases: Vec<Case>,
}

/// What a test came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What was not as expected.
    pub failures: Vec<String>,
}

impl Outcome {
    /// All that was not as expected.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        let cases = self.cases.iter().flat_map(|case| &case.failures);
        self.aborted.iter().chain(cases).map(String::as_str)
    }

    /// Whether all of it was as expected.
    pub fn is_success(&self) -> bool {
        self.failures().next().is_none()
    }
}

/// Runs the tests of a file.
pub fn test(path: &Path, options: &Options) -> Outcome {
    let mut outcome = Outcome {
        file: path.display().to_string(),
        ..Outcome::default()
    };
    if let Err(errors) = run_file(path, options, &mut outcome) {
        outcome.aborted = errors;
    }
    outcome
}

fn run_file(path: &Path, options: &Options, outcome: &mut Outcome) -> Result<(), Vec<String>> {
    let text = load::text(path).map_err(|error| vec![format!("{}: {error}", path.display())])?;
    let of_file = |faults: Vec<Fault>| -> Vec<String> {
        faults.iter().map(|fault| fault.within(path)).collect()
    };
    let file = TestFile::parse(&text).map_err(of_file)?;
    let order = order(&file.group_eval_order).map_err(|error| vec![error])?;
    let base = path.parent().unwrap_or(Path::new(""));
    let mut rule_files = Vec::new();
    for pattern in &file.rule_files {
        let found = load::expand(base, pattern).map_err(|fault| of_file(vec![fault]))?;
        if found.is_empty() {
            let shown = base.join(pattern);
            let warning = format!("no file match pattern {}", shown.display());
            outcome.warnings.push(warning);
        }
        rule_files.extend(found);
    }
    for (at, test) in file.tests.iter().enumerate() {
        if options
            .run
            .as_ref()
            .is_some_and(|run| !run.is_match(&test.name))
        {
            continue;
        }
        let name = if test.name.is_empty() {
            format!("unnamed#{at}")
        } else {
            test.name.clone()
        };
        // As in Prometheus, broken rules fail each test, not the file.
        let failures = match groups(&rule_files, options, &order) {
            Err(errors) => errors,
            Ok(groups) => {
                let suite = Suite {
                    test,
                    interval_ms: file.evaluation_interval_ms,
                    is_fuzzy: file.fuzzy_compare,
                    diff: options.diff,
                };
                suite.run(groups)
            }
        };
        outcome.cases.push(Case { name, failures });
    }
    Ok(())
}

/// The places of groups by name.
fn order(names: &[String]) -> Result<HashMap<&str, usize>, String> {
    let mut order = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        if order.insert(&**name, at).is_some() {
            return Err(format!("group name repeated in evaluation order: {name}"));
        }
    }
    Ok(order)
}

/// The groups of rule files, in the order of evaluation; those without a place come first.
fn groups(
    files: &[std::path::PathBuf],
    options: &Options,
    order: &HashMap<&str, usize>,
) -> Result<Vec<Group>, Vec<String>> {
    let mut groups = Vec::new();
    for file in files {
        groups.extend(load::file(file, options.ignores_unknown)?.groups);
    }
    groups.sort_by_key(|group| order.get(&*group.name).copied().unwrap_or(0));
    Ok(groups)
}

/// A time in a test, as its file has it.
fn shown(time_ms: i64) -> String {
    duration::shown(time_ms)
}
