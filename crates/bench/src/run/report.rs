//! A measurement under way: raw runs as JSON, saved after each run, and the page in the end.
//!
//! A file is written whole or not at all. Peers that a machine cannot run, or that break off, are
//! left out and named with the reason, on the terminal and on the page. Where Latewood fails, the
//! measurement fails. Pages are drawn by `crates/bench/report/report.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};

use crate::base::error::{Doing, Error, Result};
use crate::measure::machine::Machine;
use crate::server::{Info, project_file};

/// What draws pages, and the Python that has its libraries: `make target/venv/ready` makes it.
const SCRIPT: &str = "crates/bench/report/report.py";
const PYTHON: &str = "target/venv/bin/python";
/// Characters of a reason that are kept; a server's last words may be a page long.
const REASON_CHARS: usize = 300;

/// Files a measurement leaves behind.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Output {
    /// Write every run to this file; with --out alone it is DIR/NAME.json
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the Markdown page and the charts into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A measurement of several alternating runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rounds {
    /// Runs of every setting, alternating
    #[arg(long, default_value_t = 5)]
    pub(crate) repeats: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The raw runs of a measurement.
pub(crate) struct Report {
    raw: Value,
    output: Output,
}

impl Report {
    /// A measurement of a family by the command line `command`, with what all runs share.
    pub(crate) fn begin(family: &str, command: &str, output: &Output, shared: Value) -> Self {
        let mut raw = shared;
        raw["family"] = family.into();
        raw["machine"] = json!(Machine::look(command));
        Report {
            raw,
            output: output.clone(),
        }
    }

    /// Adds a run to a list, prints its figures and saves what there is.
    pub(crate) fn push(&mut self, list: &str, run: Value) -> Result<()> {
        println!("{}", line(&run));
        self.list(list).push(run);
        match &self.output.json {
            Some(path) => write(&self.raw, path),
            None => Ok(()),
        }
    }

    /// Names a server among the targets, once.
    pub(crate) fn note(&mut self, server: &Info) {
        let server = json!(server);
        let targets = self.list("targets");
        if !targets.contains(&server) {
            targets.push(server);
        }
    }

    /// How many runs a list has.
    pub(crate) fn len(&self, list: &str) -> usize {
        self.raw[list].as_array().map_or(0, Vec::len)
    }

    /// Takes a turn of `name`, unless it is left out; none where it is, or now becomes so.
    pub(crate) fn turn<T>(
        &mut self,
        name: &str,
        is_peer: bool,
        turn: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        if self.list("absent").iter().any(|peer| peer["name"] == name) {
            return Ok(None);
        }
        match turn() {
            Err(error) if is_peer => {
                let reason = one_line(&error.to_string());
                eprintln!("*** {name}: NOT MEASURED from here on: {reason}");
                self.list("absent")
                    .push(json!({"name": name, "reason": reason}));
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// Writes the runs, and draws the page, where that is wanted. The page bears the name of the file
    /// of runs.
    pub(crate) fn finish(mut self) -> Result<()> {
        // The lists of a page are there, though nothing was measured for them.
        self.list("runs");
        if self.len("runs") + self.len("rates") == 0
            && let Some(peer) = self.list("absent").first()
        {
            let [name, reason] = ["name", "reason"].map(|of| peer[of].as_str().unwrap_or_default());
            let what = format!("{name} was not measured: {reason}");
            return Err(Error::new(what));
        }
        let Output { json, out } = self.output;
        let family = self.raw["family"].as_str().unwrap_or_default();
        let beside = out.as_ref().map(|dir| dir.join(format!("{family}.json")));
        let Some(json) = json.or(beside) else {
            return Ok(());
        };
        if let Some(dir) = &out {
            std::fs::create_dir_all(dir).doing(format!("make {}", dir.display()))?;
        }
        write(&self.raw, &json)?;
        match &out {
            Some(dir) => draw([json.as_os_str(), "--out".as_ref(), dir.as_os_str()]),
            None => Ok(()),
        }
    }

    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        let list = &mut self.raw[name];
        if !list.is_array() {
            *list = json!([]);
        }
        list.as_array_mut().expect("it was made a list")
    }
}

/// The settings `0..count` in the order round `repeat` takes them: every other round goes
/// backwards, so that none always comes first.
pub(crate) fn turns(repeat: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| match repeat.is_multiple_of(2) {
        true => at,
        false => count - 1 - at,
    })
}

impl Rounds {
    /// One run, for tests.
    #[cfg(test)]
    pub(crate) const ONE: Self = Rounds {
        repeats: 1,
        seed: 12_345,
        output: Output {
            json: None,
            out: None,
        },
    };

    /// Makes a whole report, every setting in every round, alternating; `run` makes one run.
    pub(crate) fn report<T: Copy>(
        &self,
        (family, command): (&str, &str),
        shared: Value,
        settings: &[T],
        mut run: impl FnMut(T) -> Result<Value>,
    ) -> Result<()> {
        let mut report = Report::begin(family, command, &self.output, shared);
        for repeat in 0..self.repeats {
            for at in turns(repeat, settings.len()) {
                let mut made = run(settings[at])?;
                made["repeat"] = repeat.into();
                report.push("runs", made)?;
            }
        }
        report.finish()
    }
}

/// Draws pages; `words` are those of the script.
pub(crate) fn draw(words: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Result<()> {
    let script = project_file(SCRIPT)?;
    let python = project_file(PYTHON).unwrap_or_else(|_| "python3".into());
    let drawn = Command::new(python).arg(script).args(words).status();
    match drawn.doing("run Python")?.success() {
        true => Ok(()),
        false => Err(Error::new(
            "no page was drawn; `make target/venv/ready` installs what that needs",
        )),
    }
}

/// A number of a run; NaN where it has none.
pub(super) fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or(f64::NAN)
}

/// Writes raw runs, whole or not at all.
fn write(raw: &Value, path: &Path) -> Result<()> {
    let doing = format!("write {}", path.display());
    let text = serde_json::to_string_pretty(raw).doing(&doing)?;
    let draft = path.with_extension("json.part");
    std::fs::write(&draft, text + "\n").doing(&doing)?;
    std::fs::rename(&draft, path).doing(&doing)
}

/// The figures of a run in one line.
fn line(run: &Value) -> String {
    let mut figures = Vec::new();
    for (name, value) in run.as_object().into_iter().flatten() {
        match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(0.0);
                figures.push(format!("{name} {}", (number * 1e3).round() / 1e3));
            }
            Value::String(text) => figures.push(format!("{name} {text}")),
            Value::Object(_) if name != "info" => figures.push(format!("{name}: {}", line(value))),
            _ => {}
        }
    }
    figures.join(", ")
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(REASON_CHARS) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::begin("late", "late", &Output::default(), json!({}))
    }

    #[test]
    fn every_other_round_goes_backwards() {
        let order = |repeat| turns(repeat, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1)], [[0, 1, 2], [2, 1, 0]]);
        assert_eq!(order(2), order(0));
    }

    #[test]
    fn a_peer_that_fails_is_left_out_from_then_on_and_named_with_the_reason() {
        let mut report = report();
        let no_java = || Err::<u32, _>(Error::new("install failed:\n  no java"));
        assert_eq!(report.turn("QuestDB", true, no_java).unwrap(), None);
        let second = report.turn("QuestDB", true, || -> Result<u32> { unreachable!() });
        assert_eq!(second.unwrap(), None);
        assert_eq!(report.turn("InfluxDB 1", true, || Ok(7)).unwrap(), Some(7));
        let said = json!([{"name": "QuestDB", "reason": "install failed: no java"}]);
        assert_eq!(report.raw["absent"], said);
    }

    #[test]
    fn latewood_is_never_left_out_and_a_report_of_nothing_is_an_error() {
        let mut report = report();
        let lost = || Err::<(), _>(Error::new("lost a sample"));
        let failed = report.turn("Latewood", false, lost);
        assert_eq!(failed.unwrap_err().to_string(), "lost a sample");
        let ended = || Err::<(), _>(Error::new("é ".repeat(1_000)));
        report.turn("X", true, ended).unwrap();
        let said = report.finish().unwrap_err().to_string();
        assert!(said.chars().count() < 400 && said.ends_with("..."));
    }
}
