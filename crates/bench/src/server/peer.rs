//! The peers, as data: how each is started, written to, and asked what it holds.

use std::time::Duration;

use serde_json::Value;

use super::Process;
use super::certificate::Certificate;
use super::install::{install, package_version};
use crate::base::address::{Address, free_port};
use crate::base::error::{Doing, Error, Result};
use crate::base::http::Http;
use crate::protocol::{PROMETHEUS_HEADERS, Protocol};
use crate::workload::hosts::{CpuLoad, FIELDS, START_MS, STEP_MS};

/// Peers come up within seconds; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The script that installs and runs it, within the project, and what it is told beside.
    script: &'static str,
    environment: &'static [(&'static str, &'static str)],
    /// Whether it speaks TLS alone.
    is_tls: bool,
    /// For the report.
    pub(crate) settings: &'static str,
    /// What is got when it is up; nothing for a server that answers PING.
    ready: &'static str,
    version: fn(&Http) -> Option<String>,
    /// What is posted before a load.
    pub(crate) prepare: Option<&'static str>,
    pub(crate) protocol: Protocol,
    /// Where batches are posted, and with which headers.
    pub(crate) write: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Whether everything sent can be read.
    pub(crate) is_drained: fn(&Http) -> Result<bool>,
    /// How long after a load it may still begin work of its own.
    pub(crate) rest: Duration,
    language: Language,
}

#[derive(Debug)]
enum Language {
    PromQl,
    Sql(Sql),
    None,
}

/// A language with SELECT: where questions are posted and rows found, columns before the counts,
/// and the column of times in milliseconds.
#[derive(Debug)]
struct Sql {
    path: &'static str,
    parameter: &'static str,
    rows: &'static str,
    error: &'static str,
    before: usize,
    time: &'static str,
    order: &'static str,
}

const NOTHING: Peer = Peer {
    name: "",
    script: "",
    environment: &[],
    is_tls: false,
    settings: "",
    ready: "",
    version: |_| None,
    prepare: None,
    protocol: Protocol::Influx,
    write: "/write",
    headers: &[],
    is_drained: |_| Ok(true),
    rest: Duration::from_secs(2),
    language: Language::None,
};

pub(super) const REDISTIMESERIES: Peer = Peer {
    name: "RedisTimeSeries",
    script: "bench/peers/redistimeseries.sh",
    environment: &[("DUP", "LAST"), ("AOF", "0")],
    settings: "--save '' --appendonly no --loadmodule redistimeseries.so DUPLICATE_POLICY LAST",
    protocol: Protocol::Redis,
    ..NOTHING
};

pub(super) const REDISTIMESERIES_AOF: Peer = Peer {
    name: "RedisTimeSeries, AOF",
    environment: &[("DUP", "LAST"), ("AOF", "1")],
    settings: "--save '' --appendonly yes --appendfsync everysec --loadmodule redistimeseries.so \
               DUPLICATE_POLICY LAST",
    ..REDISTIMESERIES
};

pub(super) const REDISTIMESERIES_TLS: Peer = Peer {
    name: "RedisTimeSeries, TLS",
    is_tls: true,
    settings: "--save '' --appendonly no --loadmodule redistimeseries.so DUPLICATE_POLICY LAST \
               --tls-port PORT --tls-auth-clients no",
    ..REDISTIMESERIES
};

pub(super) const VICTORIAMETRICS: Peer = Peer {
    name: "VictoriaMetrics",
    script: "bench/peers/victoriametrics.sh",
    settings: "-retentionPeriod=100y",
    ready: "/health",
    version: |http| {
        let metrics = http.get("/metrics", &[]).ok()?;
        let (_, line) = metrics.split_once("\nvm_app_version{")?;
        let version = line.split("short_version=\"").nth(1)?.split('"').next()?;
        // Debian's build does not know its own version.
        match version {
            "" => package_version("victoria-metrics").ok(),
            version => Some(version.to_owned()),
        }
    },
    is_drained: |http| http.get("/internal/force_flush", &[]).map(|_| true),
    language: Language::PromQl,
    ..NOTHING
};

pub(super) const PROMETHEUS: Peer = Peer {
    name: "Prometheus",
    script: "bench/peers/prometheus.sh",
    settings: "out_of_order_time_window: 1000d --storage.tsdb.retention.time=100y",
    ready: "/-/ready",
    version: |http| {
        let about = http.get_json("/api/v1/status/buildinfo", &[]).ok()?;
        about["data"]["version"].as_str().map(str::to_owned)
    },
    protocol: Protocol::Prometheus,
    write: "/api/v1/write",
    headers: &PROMETHEUS_HEADERS,
    // It looks once a minute whether samples are to become blocks.
    rest: Duration::from_secs(75),
    language: Language::PromQl,
    ..NOTHING
};

pub(super) const INFLUXDB: Peer = Peer {
    name: "InfluxDB 1",
    script: "bench/peers/influxdb.sh",
    settings: "index-version=tsi1 cache-snapshot-write-cold-duration=10s store-enabled=false",
    ready: "/ping",
    version: |http| {
        let shown = http.get_json("/query", &[("q", "SHOW DIAGNOSTICS")]).ok()?;
        let all = shown["results"][0]["series"].as_array()?.iter();
        let build = all.clone().find(|one| one["name"] == "build")?;
        let columns = build["columns"].as_array()?;
        let at = columns.iter().position(|name| name == "Version")?;
        build["values"][0][at].as_str().map(str::to_owned)
    },
    prepare: Some("/query?q=CREATE%20DATABASE%20benchmark"),
    write: "/write?db=benchmark",
    // It empties its cache ten seconds after the last write, and compacts then.
    rest: Duration::from_secs(15),
    language: Language::Sql(Sql {
        path: "/query?db=benchmark&epoch=ms",
        parameter: "q",
        rows: "/results/0/series/0/values",
        error: "/results/0/error",
        before: 1,
        time: "",
        order: "",
    }),
    ..NOTHING
};

pub(super) const QUESTDB: Peer = Peer {
    name: "QuestDB",
    script: "bench/peers/questdb.sh",
    settings: "as it comes: table with its log, partitions of a day; telemetry off",
    ready: "/exec?query=select%201",
    version: |http| {
        let rows = QUESTDB_SQL.ask(http, "select build()").ok()?;
        let build = rows[0][0].as_str()?;
        let mut words = build.split(['"', ',', ':']).map(str::trim);
        let version = words.find(|word| word.starts_with(char::is_numeric) && word.contains('.'));
        Some(version.unwrap_or(build).to_owned())
    },
    write: "/write?precision=n",
    is_drained: |http| {
        let state = "select suspended, writerTxn, sequencerTxn, bufferedTxnSize from wal_tables() \
                     where name = 'cpu'";
        let rows = QUESTDB_SQL.ask(http, state)?;
        let row = &rows[0];
        if row[0] == true {
            Err(Error::new("QuestDB has suspended the table"))
        } else {
            Ok(row[1].is_number() && row[1] == row[2] && row[3] == 0)
        }
    },
    language: Language::Sql(QUESTDB_SQL),
    ..NOTHING
};

const QUESTDB_SQL: Sql = Sql {
    path: "/exec",
    parameter: "query",
    rows: "/dataset",
    error: "/error",
    before: 0,
    time: "cast(timestamp as long) / 1000, ",
    order: " order by timestamp",
};

impl Peer {
    /// Starts it on a free port with an empty directory, and waits until it answers.
    pub(super) fn start(&self) -> Result<Process> {
        let mut command = install(self.script)?;
        let port = free_port()?;
        let mut process = Process::prepare(Address::loopback(port))?;
        let data = process.data();
        std::fs::create_dir_all(&data).doing(format!("make {}", data.display()))?;
        let environment = self.environment.iter().copied();
        command.arg("run").arg(port.to_string());
        command.env("PEER_DIR", &data).envs(environment);
        if self.is_tls {
            let certificate = Certificate::make(process.dir())?;
            command.args(["--port", "0", "--tls-port", &port.to_string()]);
            command
                .args(["--tls-auth-clients", "no"])
                .args(certificate.flags());
            process.connect_by(certificate.connector()?);
        }
        if self.ready.is_empty() {
            process.start(&mut command, PATIENCE)?;
            return Ok(process);
        }
        command.arg(data);
        process.start_until(&mut command, PATIENCE, |address| {
            Http::new(address).get(self.ready, &[]).is_ok()
        })?;
        Ok(process)
    }

    /// Its name and version, as it tells them.
    pub(super) fn version(&self, http: &Http) -> String {
        let family = self.name.split(' ').next().unwrap_or_default();
        format!("{family} {}", (self.version)(http).unwrap_or_default())
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
            held += count.parse::<u64>().map_err(|_| odd(&question))?;
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
        let (question, rows, scale) = match &self.language {
            Language::Sql(sql) => {
                let (time, order) = (sql.time, sql.order);
                let host = format!("hostname='host_{host}'");
                let question = format!("SELECT {time}{name} FROM cpu WHERE {host}{order}");
                let rows = sql.ask(http, &question)?;
                (question, rows, 1.0)
            }
            _ => {
                let range = range(load);
                let question = format!("cpu_{name}{{hostname=\"host_{host}\"}}[{range}]");
                let answer = promql(http, load, &question)?;
                (question, answer["values"].clone(), 1e3)
            }
        };
        let sample = |row: &Value| {
            let value = row[1].as_f64().or_else(|| row[1].as_str()?.parse().ok());
            Some(((row[0].as_f64()? * scale).round() as i64, value?))
        };
        let rows = rows.as_array();
        let samples = rows.and_then(|rows| rows.iter().map(sample).collect());
        samples.ok_or_else(|| odd(&question))
    }
}

impl Sql {
    fn ask(&self, http: &Http, question: &str) -> Result<Value> {
        let answer = http.get_json(self.path, &[(self.parameter, question)])?;
        match answer.pointer(self.error).and_then(Value::as_str) {
            Some(error) => Err(Error::new(format!("{question} was answered: {error}"))),
            None => Ok(answer.pointer(self.rows).cloned().unwrap_or_default()),
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

fn odd(question: &str) -> Error {
    Error::new(format!("{question} has an answer of another form"))
}
