//! How late samples come, as `/api/v1/status/lateness` tells it.

use crate::harness::{Numbers, Server, encoded, eventually};
use crate::http::client::Http;
use crate::http::otlp::request;
use crate::http::prometheus::write;
use crate::http::promql::{ask, body};
use crate::http::protobuf::{field, labels, sample};
use crate::http::server;
use latewood_engine::io::sim::seed;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::net::{TcpStream, UdpSocket};

const LINES: [&str; 8] = [
    "--listen-lines",
    "influx-tcp=127.0.0.1:0",
    "--listen-lines",
    "influx-udp=127.0.0.1:0",
    "--listen-lines",
    "opentsdb=127.0.0.1:0",
    "--listen-lines",
    "akumuli=127.0.0.1:0",
];
/// Timestamps are behind this one.
const BASE_MS: u64 = 1_700_000_000_000;
const PROTOCOLS: [&str; 10] = [
    "resp",
    "influx_http",
    "influx_tcp",
    "influx_udp",
    "prometheus_remote_write",
    "prometheus_text",
    "opentsdb_tcp",
    "opentsdb_http",
    "akumuli",
    "otlp",
];

/// Ages of late samples by some name.
type Ages = BTreeMap<String, Vec<u64>>;

/// Connections to a server by all protocols.
struct Senders {
    server: Server,
    http: Http,
    influx: TcpStream,
    opentsdb: TcpStream,
    akumuli: TcpStream,
    datagrams: [UdpSocket; 2],
}

impl Senders {
    fn new() -> Self {
        let server = server(&LINES);
        let connect = |name: &str| TcpStream::connect(server.told(name)).unwrap();
        let datagrams = ["127.0.0.2:0", "127.0.0.3:0"].map(|at| UdpSocket::bind(at).unwrap());
        for socket in &datagrams {
            socket.connect(server.told("influx-udp")).unwrap();
        }
        Self {
            http: Http::to(server.http()),
            influx: connect("influx-tcp"),
            opentsdb: connect("opentsdb"),
            akumuli: connect("akumuli"),
            datagrams,
            server,
        }
    }

    /// Sends samples of `metric`; the address that they come from.
    fn send(&mut self, protocol: &str, metric: &str, times: &[u64]) -> &'static str {
        let lines =
            |line: &dyn Fn(u64) -> String| -> String { times.iter().map(|&at| line(at)).collect() };
        match protocol {
            "resp" => {
                let adds = times
                    .iter()
                    .map(|at| format!("TS.ADD {metric} {at} 1 ON_DUPLICATE LAST"));
                let adds: Vec<u8> = adds.flat_map(|line| encoded(&line)).collect();
                let mut redis = self.server.client();
                redis.send(&adds);
                times.iter().for_each(|_| drop(redis.reply()));
            }
            "influx_http" => {
                let text = lines(&|at| format!("{metric},a=b v=1 {at}\n"));
                let path = "/write?precision=ms";
                assert_eq!(self.http.post(path, text.as_bytes()).status, 204);
            }
            "influx_tcp" => {
                let text = lines(&|at| format!("{metric},a=b v=1 {at}000000\n"));
                self.influx.write_all(text.as_bytes()).unwrap();
            }
            "influx_udp" => {
                let socket = &self.datagrams[times.len() % 2];
                let text = lines(&|at| format!("{metric},a=b v=1 {at}000000\n"));
                socket.send(text.as_bytes()).unwrap();
                return ["127.0.0.2", "127.0.0.3"][times.len() % 2];
            }
            "akumuli" => {
                let text = lines(&|at| format!("+{metric} a=b\r\n:{at}000000\r\n+1\r\n"));
                self.akumuli.write_all(text.as_bytes()).unwrap();
            }
            "prometheus_remote_write" => {
                let samples = times.iter().flat_map(|&at| sample(1.0, at));
                let series = [
                    labels(&[("__name__", metric), ("a", "b")]),
                    samples.collect(),
                ];
                let head = "Content-Type: application/x-protobuf\r\n";
                let message = field(1, &series.concat());
                assert_eq!(write(&mut self.http, head, &message).status, 204);
            }
            "prometheus_text" => {
                let text = lines(&|at| format!("{metric}{{a=\"b\"}} 1 {at}\n"));
                let path = "/api/v1/import/prometheus";
                assert_eq!(self.http.post(path, text.as_bytes()).status, 204);
            }
            "opentsdb_tcp" => {
                let text = lines(&|at| format!("put {metric} {at} 1 a=b\n"));
                self.opentsdb.write_all(text.as_bytes()).unwrap();
            }
            "opentsdb_http" => {
                let point = |at: &u64| json!({"metric": metric, "timestamp": at, "value": 1, "tags": {"a": "b"}});
                let points: Value = times.iter().map(point).collect();
                let sent = self.http.post("/api/put", points.to_string().as_bytes());
                assert_eq!(sent.status, 204);
            }
            _ => {
                let point = |at| format!(r#"{{"timeUnixNano":"{at}000000","asDouble":1}}"#);
                let points: Vec<_> = times.iter().map(point).collect();
                let body = request(&points.join(",")).replace("\"temp\"", &format!("\"{metric}\""));
                let head = "Content-Type: application/json\r\n";
                let sent = self.http.post_with("/v1/metrics", head, body.as_bytes());
                assert_eq!(sent.status, 200);
            }
        }
        "127.0.0.1"
    }

    /// Waits until `samples` have arrived: lines are not answered.
    fn wait(&mut self, samples: u64) {
        eventually(&format!("{samples} samples"), || {
            asked(&mut self.http, &[("span", "2h")])["total"]["samples"] == samples
        });
    }
}

fn asked(http: &mut Http, parameters: &[(&str, &str)]) -> Value {
    let (status, mut body) = ask(http, "status/lateness", parameters);
    assert_eq!(status, 200, "{body}");
    body["data"].take()
}

/// Compares figures with the ages of late samples and the number of all.
fn check(figures: &Value, ages: &[u64], samples: Option<u64>) {
    let mut ages = ages.to_vec();
    ages.sort_unstable();
    assert_eq!(figures["lateSamples"], ages.len(), "{figures}");
    let max = ages.last().copied().unwrap_or(0);
    assert_eq!(figures["lateAgeMs"]["max"], max, "{figures}");
    let on_time = samples.map(|samples| samples - ages.len() as u64);
    let age = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
    let age = age.map(|(name, share)| (&figures["lateAgeMs"][name], share, 0));
    let delay = [("p99", 0.99), ("p999", 0.999)];
    let delay = delay.map(|(name, share)| (&figures["delayMs"][name], share, on_time.unwrap_or(0)));
    let delay = delay.iter().filter(|_| samples.is_some());
    for (told, share, on_time) in age.iter().chain(delay) {
        let wanted = (share * (on_time + ages.len() as u64) as f64)
            .ceil()
            .max(1.0) as u64;
        let exact = wanted
            .checked_sub(on_time + 1)
            .and_then(|at| ages.get(at as usize))
            .copied()
            .unwrap_or(0);
        let told = told.as_u64().unwrap();
        let is_right = told >= exact && told as f64 <= exact as f64 * 1.125;
        assert!(is_right, "{share}: {exact} in {figures}");
    }
}

/// What was sent: samples by protocol, and ages of the late ones.
#[derive(Default)]
struct Sent {
    samples: BTreeMap<&'static str, u64>,
    protocols: Ages,
    metrics: Ages,
    addresses: Ages,
    newest: HashMap<String, u64>,
}

impl Sent {
    /// Takes note of samples of `metric` by `protocol` from `address`.
    fn note(&mut self, protocol: &'static str, metric: &str, times: &[u64], address: &str) {
        let shown = if protocol.starts_with("influx") {
            format!("{metric}_v")
        } else {
            metric.to_owned()
        };
        let newest = self.newest.entry(metric.to_owned()).or_default();
        for &at in times {
            if at < *newest {
                let ages = [
                    (&mut self.protocols, protocol),
                    (&mut self.metrics, &shown),
                    (&mut self.addresses, address),
                ];
                for (ages, name) in ages {
                    ages.entry(name.to_owned()).or_default().push(*newest - at);
                }
            }
            *newest = at.max(*newest);
        }
        *self.samples.entry(protocol).or_default() += times.len() as u64;
    }

    fn all(&self) -> u64 {
        self.samples.values().sum()
    }

    fn late(&self) -> Vec<u64> {
        self.protocols.values().flatten().copied().collect()
    }

    /// Compares the figures of each protocol and of the heat map.
    fn check_protocols(&self, http: &mut Http) {
        let told = asked(http, &[("span", "2h"), ("limit", "64")]);
        check(&told["total"], &self.late(), Some(self.all()));
        let rows = told["rows"].as_array().unwrap();
        assert_eq!(rows.len(), self.samples.len());
        for row in rows {
            let name = row["protocol"].as_str().unwrap();
            let ages = self.protocols.get(name).cloned().unwrap_or_default();
            assert_eq!(row["samples"], self.samples[name]);
            check(row, &ages, Some(self.samples[name]));
            let only = asked(http, &[("span", "2h"), ("protocol", name)]);
            check(&only["total"], &ages, Some(self.samples[name]));
        }
        let minutes = told["heatMap"]["minutes"].as_array().unwrap();
        let sum = |name: &str| -> u64 {
            let cells = minutes
                .iter()
                .flat_map(|minute| minute[name].as_array().unwrap());
            cells.map(|cell| cell[1].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("lateAges"), self.late().len() as u64);
        assert_eq!(sum("arrivalAges"), self.all());
    }

    /// Compares the rows of metrics and of senders.
    fn check_names(&self, http: &mut Http) {
        let all = [("metric", &self.metrics), ("sender", &self.addresses)];
        for (by, expected) in all {
            let told = asked(http, &[("span", "2h"), ("limit", "64"), ("by", by)]);
            let rows = told["rows"].as_array().unwrap();
            let names = rows.iter().map(|row| row[by].as_str().unwrap());
            let names: BTreeSet<_> = names.collect();
            assert!(names.iter().eq(expected.keys()), "{names:?}");
            for row in rows {
                check(row, &expected[row[by].as_str().unwrap()], None);
            }
            assert_eq!(told["others"]["lateSamples"], 0);
        }
    }
}

#[test]
fn late_samples_of_every_protocol_are_counted_as_in_a_model() {
    let mut numbers = Numbers(seed());
    let (mut senders, mut sent) = (Senders::new(), Sent::default());
    for _ in 0..150 {
        let protocol = PROTOCOLS[numbers.below(PROTOCOLS.len() as u64) as usize];
        let metric = format!("{protocol}_{}", numbers.below(3));
        let newest = BASE_MS + sent.all() * 500;
        let times: Vec<u64> = (0..=numbers.below(20))
            .map(|_| {
                let bits = 1 + numbers.below(20);
                newest - numbers.below(1 << bits)
            })
            .collect();
        let address = senders.send(protocol, &metric, &times);
        sent.note(protocol, &metric, &times, address);
        // What is not answered must not meet what is sent next, or be lost.
        senders.wait(sent.all());
    }
    sent.check_protocols(&mut senders.http);
    sent.check_names(&mut senders.http);
    let (mut redis, late) = (senders.server.client(), sent.late());
    assert_eq!(redis.info("samples_late"), late.len() as u64);
    assert_eq!(redis.info("late_1h_samples"), late.len() as u64);
    assert_eq!(
        redis.info("late_1h_age_max_ms"),
        *late.iter().max().unwrap()
    );
    assert!(redis.info("memory_lateness_bytes") < 4 << 20);
}

/// A server with a late sample of each of three series, by 1, 2 and 3 seconds.
fn three() -> (Server, Http) {
    let server = server(&[]);
    let mut redis = server.client();
    for (at, key) in ["m1", "m2", "m3"].into_iter().enumerate() {
        redis.ask(&format!("TS.ADD {key} 9000 1"));
        redis.ask(&format!("TS.ADD {key} {} 1", 8000 - 1000 * at));
    }
    let http = Http::to(server.http());
    (server, http)
}

/// The fields of an answer, objects in lists as one.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, value) in fields_of {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                fields(value, &path, found);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for value in values {
                fields(value, &format!("{path}[]"), found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn the_manual_lists_the_fields() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let section = manual.split("### Late samples\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let named = rows.flat_map(|row| row.split('|').next().unwrap().split('`'));
    let is_name = |name: &&str| !name.trim_matches([',', ' ']).is_empty();
    let listed: BTreeSet<String> = named.filter(is_name).map(str::to_owned).collect();
    let (server, mut http) = three();
    let mut redis = server.client();
    redis.ask("CONFIG SET lateness-label site");
    redis.ask("TS.ADD m1 1 1");
    let mut found = BTreeSet::new();
    for by in ["protocol", "metric", "sender", "label"] {
        let told = asked(&mut http, &[("by", by)]);
        fields(&told, "", &mut found);
    }
    found.retain(|name| name != "others");
    assert_eq!(listed, found);
}

#[test]
fn names_are_for_those_who_may_see_them() {
    let (server, mut http) = three();
    let mut redis = server.client();
    redis.ask("ACL SETUSER some on >pw ~m2 +ping +ts.querylabels");
    redis.ask("ACL SETUSER looks on >pw +ping +client|list");
    redis.ask("ACL SETUSER none on >pw");
    let mut get = |user: &str, by: &str| {
        let path = format!("/api/v1/status/lateness?by={by}");
        http.send(
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token {user}:pw\r\n\r\n")
                .as_bytes(),
        );
        let answer = http.answer();
        (answer.status, body(&answer))
    };
    let (status, told) = get("some", "protocol");
    assert_eq!(
        (status, &told["data"]["total"]["lateSamples"]),
        (200, &json!(3))
    );
    let (_, told) = get("some", "metric");
    let rows = told["data"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["metric"]), (1, &json!("m2")));
    assert_eq!(told["data"]["others"]["lateSamples"], 2);
    for (user, by, command) in [
        ("some", "sender", "CLIENT LIST"),
        ("looks", "metric", "TS.QUERYLABELS"),
        ("looks", "label", "TS.QUERYLABELS"),
        ("none", "protocol", "PING"),
    ] {
        let (status, told) = get(user, by);
        assert_eq!(status, 403, "{user} {by}");
        let error = format!("permission to run {command} is required");
        assert_eq!(told["error"], json!(error));
    }
    let (_, told) = get("looks", "sender");
    let row = &told["data"]["rows"][0];
    assert_eq!(
        (&row["sender"], &row["user"]),
        (&json!("127.0.0.1"), &json!("default"))
    );
}

#[test]
fn late_samples_are_counted_by_a_chosen_label() {
    let server = server(&["--lateness-label", "site"]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    redis.ask("TS.ADD a 9000 1 LABELS site north site south");
    redis.ask("TS.ADD b 9000 1 LABELS other x");
    redis.ask("TS.MADD a 8000 1 b 7000 1 a 6000 1");
    let lines = "cpu,site=east,host=1 v=1 9\ncpu,site=east,host=1 v=1 8\ncpu,site=east,host=2 v=1 9\ncpu,site=east,host=2 v=1 5\ncpu,site=east,host=2 v=1 4\n";
    assert_eq!(
        http.post("/write?precision=s", lines.as_bytes()).status,
        204
    );
    let shown = |http: &mut Http| {
        let told = asked(http, &[("by", "label")]);
        let rows = told["rows"].as_array().unwrap().iter();
        let row = |row: &Value| {
            let number = |value: &Value| value.as_u64().unwrap();
            let value = row["value"].as_str().unwrap().to_owned();
            (
                value,
                number(&row["lateSamples"]),
                number(&row["lateAgeMs"]["max"]),
            )
        };
        let rows: Vec<_> = rows.map(row).collect();
        (told["label"].as_str().map(str::to_owned), rows)
    };
    let row = |value: &str, late, max_ms| (value.to_owned(), late, max_ms);
    let rows = vec![
        row("east", 3, 5000),
        row("north", 2, 3000),
        row("", 1, 2000),
    ];
    assert_eq!(shown(&mut http), (Some("site".to_owned()), rows));
    // Who may not read every key sees no value.
    redis.ask("ACL SETUSER some on >pw ~a +ping +ts.querylabels");
    http.send(b"GET /api/v1/status/lateness?by=label HTTP/1.1\r\nHost: x\r\nAuthorization: Token some:pw\r\n\r\n");
    let told = body(&http.answer());
    assert_eq!(told["data"]["rows"], json!([]));
    assert_eq!(told["data"]["others"]["lateSamples"], 6);
    // Another label is counted anew, the same one goes on.
    redis.ask("CONFIG SET lateness-label site");
    assert_eq!(shown(&mut http).1.len(), 3);
    assert_eq!(redis.ask("CONFIG SET lateness-label other"), "+OK\r\n");
    assert_eq!(shown(&mut http), (Some("other".to_owned()), vec![]));
    redis.ask("TS.ADD b 1000 1");
    assert_eq!(shown(&mut http).1, [row("x", 1, 8000)]);
    let refused = redis.ask("CONFIG SET lateness-label __name__");
    assert!(refused.starts_with('-'), "{refused}");
    assert_eq!(redis.ask("CONFIG SET lateness-label ''"), "+OK\r\n");
    let (status, told) = ask(&mut http, "status/lateness", &[("by", "label")]);
    let error = "late samples are counted by no label: see --lateness-label";
    assert_eq!((status, &told["error"]), (400, &json!(error)));
    assert_eq!(asked(&mut http, &[])["label"], Value::Null);
}

#[test]
fn parameters_out_of_range_are_refused_and_rows_are_limited() {
    let (server, mut http) = three();
    for (name, value, error) in [
        ("by", "host", "by must be protocol, metric, sender or label"),
        ("limit", "0", "limit must be from 1 to 64"),
        ("limit", "65", "limit must be from 1 to 64"),
        ("span", "30s", "span must be from 1m to 2h"),
        ("span", "3h", "span must be from 1m to 2h"),
    ] {
        let (status, body) = ask(&mut http, "status/lateness", &[(name, value)]);
        assert_eq!((status, &body["error"]), (400, &json!(error)));
    }
    for some in [
        &[("protocol", "smtp")][..],
        &[("protocol", "resp"), ("by", "metric")],
        &[("nothing", "1")],
        &[("span", "x")],
    ] {
        let (status, body) = ask(&mut http, "status/lateness", some);
        assert_eq!(
            (status, &body["errorType"]),
            (400, &json!("bad_data")),
            "{some:?}"
        );
    }
    let told = asked(&mut http, &[("by", "metric"), ("limit", "1")]);
    assert_eq!(told["rows"].as_array().unwrap().len(), 1);
    assert_eq!(told["others"]["lateSamples"], 2);
    // What came stays counted when the series are gone.
    server.client().ask("FLUSHALL");
    let told = asked(&mut http, &[]);
    assert_eq!(told["total"]["lateSamples"], 3);
    assert_eq!(told["total"]["delayMs"]["p99"], 3000);
    let metrics = http.get("/metrics").text();
    for line in [
        "latewood_late_samples_total{route=\"resp\"} 3\n",
        "latewood_late_delay_seconds{share=\"0.99\"} 3\n",
        "latewood_late_age_max_seconds 3\n",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}
