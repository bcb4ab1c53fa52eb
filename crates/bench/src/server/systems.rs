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
pub(crate) struct Spec {
    pub(crate) name: String,
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
    language: Language,
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    /// TS commands.
    #[default]
    Ts,
    PromQl,
    Sql(Sql),
}

/// A language with SELECT: where questions are posted and rows found, columns before the counts,
/// the column of times in milliseconds, and the question whether its log is applied.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sql {
    path: String,
    parameter: String,
    rows: String,
    error: String,
    before: usize,
    time: String,
    order: String,
    applied: String,
}

impl Spec {
    /// Whether it takes TS commands.
    pub(super) fn speaks_resp(&self) -> bool {
        matches!(self.language, Language::Ts)
    }

    /// Starts a peer on a free port with an empty directory, and waits until it answers.
    pub(super) fn start(&self) -> Result<Process> {
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
        process.start(&mut command, PATIENCE, &self.ready)?;
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
        let Language::Sql(sql) = &self.language else {
            return Ok(true);
        };
        if sql.applied.is_empty() {
            return Ok(true);
        }
        let row = &sql.ask(http, &sql.applied)?[0];
        if row[0] == true {
            return Err(Error::new(format!("{} has suspended the table", self.name)));
        }
        Ok(row[1].is_number() && row[1] == row[2] && row[3] == 0)
    }

    /// Values it holds.
    pub(super) fn values(&self, http: &Http, load: &CpuLoad) -> Result<u64> {
        if let Language::Sql(sql) = &self.language {
            let counts = FIELDS.map(|field| format!("count({field})")).join(",");
            let rows = sql.ask(http, &format!("SELECT {counts} FROM cpu"))?;
            let counts = rows[0].as_array().into_iter().flatten();
            return Ok(counts.skip(sql.before).filter_map(Value::as_u64).sum());
        }
        let mut held = 0;
        for field in FIELDS {
            let question = format!("sum(count_over_time(cpu_{field}[{}]))", range(load));
            let answer = promql(http, load, &question)?;
            // No result at all means that there is none.
            let count = answer["value"][1].as_str().unwrap_or("0");
            held += count.parse::<u64>().doing(&question)?;
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
        let name = FIELDS[field];
        let (question, rows, scale) = if let Language::Sql(sql) = &self.language {
            let (time, order) = (&sql.time, &sql.order);
            let host = format!("hostname='host_{host}'");
            let question = format!("SELECT {time}{name} FROM cpu WHERE {host}{order}");
            let rows = sql.ask(http, &question)?;
            (question, rows, 1.0)
        } else {
            let range = range(load);
            let question = format!("cpu_{name}{{hostname=\"host_{host}\"}}[{range}]");
            let answer = promql(http, load, &question)?;
            (question, answer["values"].clone(), 1e3)
        };
        let sample = |row: &Value| {
            let value = row[1].as_f64().or_else(|| row[1].as_str()?.parse().ok());
            Some(((row[0].as_f64()? * scale).round() as i64, value?))
        };
        let rows = rows.as_array();
        let samples = rows.and_then(|rows| rows.iter().map(sample).collect());
        samples.ok_or_else(|| Error::new(format!("{question} has an answer of another form")))
    }
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

impl Sql {
    fn ask(&self, http: &Http, question: &str) -> Result<Value> {
        let answer = http.get_json(&self.path, &[(&self.parameter, question)])?;
        match answer.pointer(&self.error).and_then(Value::as_str) {
            Some(error) => Err(Error::new(format!("{question} was answered: {error}"))),
            None => Ok(answer.pointer(&self.rows).cloned().unwrap_or_default()),
        }
    }
}

/// The first result. The last lines are asked for, and everything up to the first.
fn promql(http: &Http, load: &CpuLoad, question: &str) -> Result<Value> {
    let time = (load.end_ms() / 1_000).to_string();
    // VictoriaMetrics would otherwise remember answers; Prometheus does not know the word.
    let query = [("query", question), ("time", &time), ("nocache", "1")];
    let answer = http.get_json("/api/v1/query", &query)?;
    Ok(answer["data"]["result"][0].clone())
}

fn range(load: &CpuLoad) -> String {
    format!("{}s", (load.end_ms() - START_MS + STEP_MS) / 1_000)
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
}
