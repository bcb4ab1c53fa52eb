//! A measurement under way: raw runs as JSON, saved after each run, and the page in the end.
//!
//! A file is written whole or not at all. Peers that a machine cannot run, or that break off, are
//! left out and named with the reason, on the terminal and on the page. Where Latewood fails, the
//! measurement fails. Pages are drawn by `crates/bench/report/report.py`.

use std::ffi::OsStr;
use std::iter;
use std::path::Path;
use std::process::Command;

use clap::{ArgMatches, FromArgMatches};
use serde_json::{Value, json};

use super::options::{Common, Mode, turns};
use crate::base::error::{Doing, Error, Result};
pub(super) use crate::drive::beside::merge;
use crate::measure::machine;
use crate::server::{Info, project_file};

/// What draws pages, and what makes all reports; and the Python that has their libraries:
/// `make target/venv/ready` makes it.
const DRAW: &str = "report.py";
const EVERY: &str = "every.py";
const PYTHON: &str = "target/venv/bin/python";
/// Lists of which one has runs, unless nothing was measured.
const MEASURED: [&str; 4] = ["runs", "rates", "takeovers", "reads"];
/// Characters of a reason that are kept; a server's last words may be a page long.
const REASON_CHARS: usize = 300;

/// The raw runs of a measurement.
#[derive(Default)]
pub(crate) struct Report {
    raw: Value,
    pub(super) common: Common,
}

impl Report {
    /// Runs a measurement by the command line `command`, and draws its page.
    pub(crate) fn make(mode: &Mode, matches: &ArgMatches, command: &str) -> Result<()> {
        let mut report = Report {
            raw: json!({"family": mode.name, "machine": machine::look(command)}),
            common: Common::from_arg_matches(matches).unwrap_or_else(|error| error.exit()),
        };
        (mode.run)(matches, &mut report)?;
        report.finish()
    }

    /// Notes what all runs share.
    pub(crate) fn share(&mut self, shared: Value) {
        self.raw = merge(self.raw.take(), shared);
    }

    /// Adds a run of every setting in every round, alternating.
    pub(crate) fn rounds<T: Copy>(
        &mut self,
        settings: &[T],
        mut run: impl FnMut(T) -> Result<Value>,
    ) -> Result<()> {
        let mut settings = settings.to_vec();
        for repeat in 0..self.common.repeats {
            self.round("runs", repeat, &mut settings, |_, setting| {
                run(*setting).map(Some)
            })?;
        }
        Ok(())
    }

    /// Adds to a list what `run` makes of each setting, in the order of round `repeat`; none of a peer
    /// that is left out.
    pub(crate) fn round<T>(
        &mut self,
        list: &str,
        repeat: usize,
        settings: &mut [T],
        mut run: impl FnMut(&mut Self, &mut T) -> Result<Option<Value>>,
    ) -> Result<()> {
        for at in turns(repeat, settings.len()) {
            if let Some(mut made) = run(self, &mut settings[at])? {
                made["repeat"] = repeat.into();
                self.push(list, made)?;
            }
        }
        Ok(())
    }

    /// Adds a run to a list, prints its figures and saves what there is.
    pub(crate) fn push(&mut self, list: &str, run: Value) -> Result<()> {
        println!("{}", line(&run));
        self.list(list).push(run);
        match &self.common.json {
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

    /// The runs so far.
    #[cfg(test)]
    pub(super) fn runs(&self) -> &[Value] {
        self.raw["runs"].as_array().map_or(&[], Vec::as_slice)
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
    fn finish(mut self) -> Result<()> {
        // The lists of a page are there, though nothing was measured for them.
        self.list("runs");
        if MEASURED.iter().all(|list| self.len(list) == 0)
            && let Some(peer) = self.list("absent").first()
        {
            let [name, reason] = ["name", "reason"].map(|of| peer[of].as_str().unwrap_or_default());
            let what = format!("{name} was not measured: {reason}");
            return Err(Error::new(what));
        }
        let Common { json, out, .. } = self.common;
        let family = self.raw["family"].as_str().unwrap_or_default();
        let beside = out.as_ref().map(|dir| dir.join(format!("{family}.json")));
        let Some(json) = json.or(beside) else {
            return Ok(());
        };
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

/// Draws pages; `words` are those of the script.
pub(crate) fn draw(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<()> {
    script(DRAW, words)
}

/// Makes every report and its page, with this program; `words` are those of the script.
pub(crate) fn every(words: &[String]) -> Result<()> {
    let program = std::env::current_exe().doing("find this program")?;
    script(
        EVERY,
        iter::once(program.as_os_str()).chain(words.iter().map(OsStr::new)),
    )
}

fn script(name: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<()> {
    let script = project_file(&format!("crates/bench/report/{name}"))?;
    let python = project_file(PYTHON).unwrap_or_else(|_| "python3".into());
    let ended = Command::new(python).arg(script).args(words).status();
    if ended.doing("run Python")?.success() {
        Ok(())
    } else {
        Err(Error::new(
            "a script failed; `make target/venv/ready` installs what drawing pages needs",
        ))
    }
}

/// A number of a run; NaN where it has none.
#[cfg(test)]
pub(super) fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or(f64::NAN)
}

/// Writes raw runs, whole or not at all.
fn write(raw: &Value, path: &Path) -> Result<()> {
    let doing = format!("write {}", path.display());
    let text = serde_json::to_string_pretty(raw).doing(&doing)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).doing(&doing)?;
    }
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

    #[test]
    fn a_peer_that_fails_is_left_out_from_then_on_and_named_with_the_reason() {
        let mut report = Report::default();
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
        let mut report = Report::default();
        let lost = || Err::<(), _>(Error::new("lost a sample"));
        let failed = report.turn("Latewood", false, lost);
        assert_eq!(failed.unwrap_err().to_string(), "lost a sample");
        let ended = || Err::<(), _>(Error::new("é ".repeat(1_000)));
        report.turn("X", true, ended).unwrap();
        let said = report.finish().unwrap_err().to_string();
        assert!(said.chars().count() < 400 && said.ends_with("..."));
    }
}
