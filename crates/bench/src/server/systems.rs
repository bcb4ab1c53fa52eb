//! The systems that this program starts, as data: `systems.json` says how each is started, written
//! to, and asked what it holds. Tested by the reports that start them, and below.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Process;
use super::install::{install, package_version};
use crate::base::address::{Address, free_port};
use crate::base::error::{Doing, Error, Result};
use crate::base::http::Http;
use crate::protocol::Protocol;
use crate::workload::hosts::{CpuLoad, FIELDS, START_MS, STEP_MS};

/// All of them, in the order of the variants of `System`.
pub(super) static SPECS: LazyLock<Vec<Spec>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("systems.json")).expect("a test reads the systems")
});
/// Peers come up within seconds; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to run and speak to a system.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Spec {
    pub(super) name: String,
    /// The script that installs and runs it, within the project; empty for Latewood.
    pub(super) script: String,
    environment: BTreeMap<String, String>,
    /// Whether it speaks TLS alone.
    pub(super) is_tls: bool,
    /// For the report; those of Latewood stand on its command line.
    pub(super) settings: String,
    /// What is got when it is up; empty for a server that answers PING.
    ready: String,
    version: Version,
    /// What is posted before a load.
    pub(super) prepare: String,
    pub(super) protocol: Protocol,
    /// Where batches are posted.
    pub(super) write: String,
    /// What is got after a load, so that all of it can be read.
    flush: String,
    /// How long after a load it may still begin work of its own: InfluxDB empties its cache ten
    /// seconds after the last write, Prometheus looks once a minute whether to make blocks.
    pub(super) rest_seconds: Option<u64>,
    /// How it is asked; by TS commands without.
    pub(super) questions: Option<Questions>,
}

/// Where a version stands: behind some texts, one after the other, up to a quote or comma. A
/// program that does not know its own is asked for by its package.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    path: String,
    after: Vec<String>,
    package: String,
}

/// Questions by HTTP, with `{field}`, `{host}`, `{range}` of the load and `{end}` of it filled in, and
/// where in an answer stands what is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Questions {
    path: String,
    parameter: String,
    error: String,
    count: String,
    counted: String,
    /// Times and values, in order of time.
    series: String,
    rows: String,
    /// Whether times are seconds, else milliseconds.
    is_seconds: bool,
    /// Whether its table is suspended, what its log wrote and has to write, and what it buffers.
    applied: String,
}

impl Spec {
    /// Whether it takes TS commands.
    pub(super) fn speaks_resp(&self) -> bool {
        self.questions.is_none()
    }

    /// Starts a peer on a free port with an empty directory, and waits until it answers.
    pub(super) fn start(&'static self) -> Result<Process> {
        let mut command = install(&self.script)?;
        let port = free_port()?;
        let mut process = Process::prepare(Address::loopback(port))?;
        let data = process.data();
        std::fs::create_dir_all(&data).doing(format!("make {}", data.display()))?;
        command.arg("run").arg(port.to_string());
        command.env("PEER_DIR", &data).envs(&self.environment);
        if self.is_tls {
            command.args(["--port", "0", "--tls-port", &port.to_string()]);
            command.args(["--tls-auth-clients", "no"]);
            process.encrypt(&mut command)?;
        }
        if !self.ready.is_empty() {
            command.arg(data);
        }
        process.start(command, PATIENCE, &self.ready)?;
        Ok(process)
    }

    /// Its name and version, as it tells them by HTTP.
    pub(super) fn version(&self, http: &Http) -> String {
        let family = self.name.split(' ').next().unwrap_or_default();
        let found = http.get(&self.version.path, &[]).ok();
        let found = found.and_then(|text| self.version.find(&text));
        format!("{family} {}", found.unwrap_or_default())
    }

    /// Whether everything sent can be read.
    pub(super) fn is_drained(&self, http: &Http) -> Result<bool> {
        if !self.flush.is_empty() {
            http.get(&self.flush, &[])?;
        }
        let applied = self
            .questions
            .as_ref()
            .filter(|all| !all.applied.is_empty());
        let Some(questions) = applied else {
            return Ok(true);
        };
        let row = &questions.ask(http, &questions.path, &questions.applied, &questions.rows)?[0];
        if row[0] == true {
            return Err(Error::new(format!("{} has suspended the table", self.name)));
        }
        Ok(row[1].is_number() && row[1] == row[2] && row[3] == 0)
    }
}

impl Questions {
    /// Values that are held.
    pub(super) fn values(&self, http: &Http, load: &CpuLoad) -> Result<u64> {
        let path = filled(&self.path, load, 0, "");
        let mut held = 0;
        for field in FIELDS {
            let question = filled(&self.count, load, 0, field);
            held += match self.ask(http, &path, &question, &self.counted)? {
                // No result at all means that there is none.
                Value::Null => 0,
                Value::String(count) => count.parse().doing(&question)?,
                count => count.as_u64().ok_or_else(|| odd(&question))?,
            };
        }
        Ok(held)
    }

    /// All samples of a field of a host, by time.
    pub(super) fn series(
        &self,
        http: &Http,
        load: &CpuLoad,
        host: u32,
        field: usize,
    ) -> Result<Vec<(i64, f64)>> {
        let [path, question] =
            [&self.path, &self.series].map(|text| filled(text, load, host, FIELDS[field]));
        let rows = self.ask(http, &path, &question, &self.rows)?;
        let scale = if self.is_seconds { 1e3 } else { 1.0 };
        let sample = |row: &Value| {
            let value = row[1].as_f64().or_else(|| row[1].as_str()?.parse().ok());
            Some(((row[0].as_f64()? * scale).round() as i64, value?))
        };
        let rows = rows.as_array();
        let samples = rows.and_then(|rows| rows.iter().map(sample).collect());
        samples.ok_or_else(|| odd(&question))
    }

    fn ask(&self, http: &Http, path: &str, question: &str, found: &str) -> Result<Value> {
        let answer = http.get_json(path, &[(&self.parameter, question)])?;
        match answer.pointer(&self.error).and_then(Value::as_str) {
            Some(error) => Err(Error::new(format!("{question} was answered: {error}"))),
            None => Ok(answer.pointer(found).cloned().unwrap_or_default()),
        }
    }
}

/// A question about a load: `{range}` reaches from before its first lines to `{end}`, its last.
fn filled(text: &str, load: &CpuLoad, host: u32, field: &str) -> String {
    let range_s = (load.end_ms() - START_MS + STEP_MS) / 1_000;
    text.replace("{field}", field)
        .replace("{host}", &format!("host_{host}"))
        .replace("{range}", &format!("{range_s}s"))
        .replace("{end}", &(load.end_ms() / 1_000).to_string())
}

fn odd(question: &str) -> Error {
    Error::new(format!("{question} has an answer of another form"))
}

impl Version {
    fn find(&self, text: &str) -> Option<String> {
        let mut rest = text;
        for mark in &self.after {
            rest = rest.split_once(mark)?.1;
        }
        match rest.split(['"', ',']).next()? {
            "" => package_version(&self.package).ok(),
            version => Some(version.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::super::System;
    use super::*;

    #[test]
    fn every_system_has_its_place_in_the_table() {
        assert_eq!(SPECS.len(), System::value_variants().len());
        for (system, spec) in System::value_variants().iter().zip(SPECS.iter()) {
            let (id, name) = (format!("{system:?}"), spec.name.replace(' ', ""));
            let (id, name) = (id.to_lowercase(), name.to_lowercase());
            let family = name.split(',').next().unwrap();
            assert!(
                id.starts_with(family) || family == "influxdb1",
                "{id}: {name}"
            );
            assert_eq!(id.ends_with("tls"), spec.is_tls);
            assert_eq!(spec.speaks_resp(), spec.write.is_empty());
        }
    }

    #[test]
    fn versions_are_found_behind_their_marks() {
        let found = |system: System, text| SPECS[system as usize].version.find(text);
        let influxdb = r#"{"results":[{"series":[{"name":"build","columns":["Branch","Build Time","Commit","Version"],"values":[["a","","b","1.6.7~rc0"]]}]}]}"#;
        for (system, text, version) in [
            (System::Influxdb, influxdb, "1.6.7~rc0"),
            (
                System::Prometheus,
                r#"{"data":{"version":"2.42.0+ds"}}"#,
                "2.42.0+ds",
            ),
            (
                System::Questdb,
                r#"[["Build Information: QuestDB 9.3.4, JDK 24"]]"#,
                "9.3.4",
            ),
        ] {
            assert_eq!(found(system, text).as_deref(), Some(version));
        }
        assert_eq!(found(System::Victoriametrics, "no metrics"), None);
    }

    #[test]
    fn questions_are_filled_in() {
        let load = CpuLoad::new(8, 3, 1);
        let asked = |system: System| {
            let questions = SPECS[system as usize].questions.as_ref().unwrap();
            filled(&questions.series, &load, 7, "usage_user")
        };
        let promql = "cpu_usage_user{hostname=\"host_7\"}[30s]";
        assert_eq!(asked(System::Prometheus), promql);
        let sql = "SELECT usage_user FROM cpu WHERE hostname='host_7'";
        assert_eq!(asked(System::Influxdb), sql);
    }
}
