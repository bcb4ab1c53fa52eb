//! Rule files: evaluated, shown, reloaded, told to Alertmanagers.

use super::client::Http;
use super::server;
use crate::harness::{PATIENCE, Server, command, eventually};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

const RULES: &str = "
groups:
- name: a
  interval: 50ms
  rules:
  - record: double
    expr: 2 * t
    labels: {team: db}
- name: b
  interval: 50ms
  limit: 7
  rules:
  - alert: Hot
    expr: t > 1
    labels: {severity: page}
    annotations: {summary: '{{ $labels.job }} is at {{ $value }}'}
  - alert: Cold
    expr: t < 0
    for: 5m
    keep_firing_for: 1m
";

/// A rule file in a folder of its own.
pub(super) struct File {
    _dir: TempDir,
    path: PathBuf,
}

impl File {
    pub(super) fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules.yml");
        std::fs::write(&path, text).unwrap();
        Self { _dir: dir, path }
    }

    pub(super) fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

pub(super) fn body(http: &mut Http, path: &str) -> Value {
    let answer = http.get(path);
    serde_json::from_slice(&answer.body).unwrap()
}

/// Writes `t{job="a"}` now.
fn write(http: &mut Http, value: f64) {
    let line = format!("t{{job=\"a\"}} {value}\n");
    let written = http.post("/api/v1/import/prometheus", line.as_bytes());
    assert_eq!(written.status, 204);
}

fn result(http: &mut Http, query: &str) -> Value {
    body(http, &format!("/api/v1/query?query={query}"))["data"]["result"].take()
}

#[test]
fn rules_write_series_and_are_shown_as_prometheus_does() {
    let file = File::new(RULES);
    let server = server(&["--rules", file.name()]);
    let mut http = Http::to(server.http());
    write(&mut http, 3.0);
    eventually("a row", || result(&mut http, "double") != json!([]));
    let row = result(&mut http, "double");
    assert_eq!(
        row[0]["metric"],
        json!({"__name__": "double", "job": "a", "team": "db"})
    );
    assert_eq!(row[0]["value"][1], "6");
    eventually("an alert", || result(&mut http, "ALERTS") != json!([]));
    let shown = body(&mut http, "/api/v1/rules")["data"].take();
    assert_eq!(shown["mayReload"], true);
    let groups = &shown["groups"];
    let (a, b) = (&groups[0], &groups[1]);
    assert_eq!(a["name"], "a");
    assert_eq!(a["file"], file.name());
    assert_eq!((&a["interval"], &a["limit"]), (&json!(0.05), &json!(0)));
    let record = &a["rules"][0];
    for (field, value) in [
        ("name", json!("double")),
        ("query", json!("2 * t")),
        ("labels", json!({"team": "db"})),
        ("health", json!("ok")),
        ("type", json!("recording")),
        ("rows", json!(1)),
        ("lastError", Value::Null),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    assert!(record["lastEvaluation"].as_str().unwrap().ends_with('Z'));
    let hot = &b["rules"][0];
    assert_eq!(
        (&hot["state"], &hot["type"]),
        (&json!("firing"), &json!("alerting"))
    );
    let alert = &hot["alerts"][0];
    let labels = json!({"alertname": "Hot", "job": "a", "severity": "page"});
    assert_eq!(alert["labels"], labels);
    assert_eq!(alert["annotations"], json!({"summary": "a is at 3"}));
    assert_eq!(
        (&alert["state"], &alert["value"]),
        (&json!("firing"), &json!("3e+00"))
    );
    let cold = &b["rules"][1];
    assert_eq!(
        (&cold["state"], &cold["alerts"]),
        (&json!("inactive"), &json!([]))
    );
    assert_eq!(
        (&cold["duration"], &cold["keepFiringFor"]),
        (&json!(300), &json!(60))
    );
    let alerts = body(&mut http, "/api/v1/alerts")["data"]["alerts"].take();
    assert_eq!(alerts.as_array().unwrap().len(), 1);
    assert_eq!(alerts[0]["labels"], labels);
    let metrics = String::from_utf8(http.get("/metrics").body).unwrap();
    for name in [
        format!(
            "prometheus_rule_group_rules{{rule_group=\"{};b\"}} 2",
            file.name()
        ),
        "prometheus_rule_evaluation_duration_seconds_count ".to_owned(),
        "prometheus_notifications_alertmanagers_discovered 0".to_owned(),
    ] {
        assert!(metrics.contains(&name), "{name}");
    }
}

#[test]
fn a_rule_says_how_late_its_samples_come() {
    let file = File::new(RULES);
    let server = server(&["--rules", file.name()]);
    let mut http = Http::to(server.http());
    let mut delay = |group: usize| {
        let groups = body(&mut http, "/api/v1/rules")["data"]["groups"].take();
        groups[group]["rules"][0]["inputDelay"].clone()
    };
    assert_eq!(delay(0), Value::Null);
    let minute_ago = server_ms() - 60_000;
    let mut sender = Http::to(server.http());
    let line = format!("t{{job=\"a\"}} 3 {minute_ago}\n");
    let written = sender.post("/api/v1/import/prometheus", line.as_bytes());
    assert_eq!(written.status, 204);
    eventually("a delay", || delay(0)["samples"] == 1);
    let offset_s = delay(1)["queryOffset"].as_u64().unwrap();
    assert!((60..120).contains(&offset_s), "{offset_s}");
}

/// The clock, milliseconds.
fn server_ms() -> i64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    since.as_millis() as i64
}

#[test]
fn rules_are_filtered_and_paged() {
    let file = File::new(RULES);
    let server = server(&["--rules", file.name()]);
    let mut http = Http::to(server.http());
    let mut names = |query: &str| -> Vec<String> {
        let answer = body(&mut http, &format!("/api/v1/rules?{query}"));
        let groups = answer["data"]["groups"].as_array().unwrap().clone();
        let rules = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap());
        rules
            .map(|rule| rule["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(""), ["double", "Hot", "Cold"]);
    assert_eq!(names("type=record"), ["double"]);
    assert_eq!(names("type=alert"), ["Hot", "Cold"]);
    assert_eq!(
        names("rule_name[]=Hot&rule_name[]=double"),
        ["double", "Hot"]
    );
    assert_eq!(names("rule_group[]=b"), ["Hot", "Cold"]);
    assert_eq!(names("file[]=other"), Vec::<String>::new());
    assert_eq!(names(&format!("file[]={}", file.name())).len(), 3);
    assert_eq!(names("match[]={team=%22db%22}"), ["double"]);
    let first = body(&mut http, "/api/v1/rules?group_limit=1");
    assert_eq!(first["data"]["groups"][0]["name"], "a");
    let token = first["data"]["groupNextToken"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), 64);
    let path = format!("/api/v1/rules?group_limit=1&group_next_token={token}&exclude_alerts=true");
    let second = body(&mut http, &path);
    assert_eq!(second["data"]["groups"][0]["name"], "b");
    assert_eq!(second["data"]["groupNextToken"], Value::Null);
    assert_eq!(
        second["data"]["groups"][0]["rules"][0]["alerts"],
        Value::Null
    );
    for (query, wrong) in [
        ("type=x", "type"),
        ("group_limit=0", "greater than 0"),
        ("group_limit=x", "valid number"),
        ("group_next_token=x", "group_limit needs to be present"),
        (
            "group_limit=1&group_next_token=x",
            "were rule groups changed?",
        ),
        ("exclude_alerts=x", "exclude_alerts"),
    ] {
        let answer = http.get(&format!("/api/v1/rules?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains(wrong), "{query}: {text}");
    }
}

#[test]
fn files_are_read_again_and_wrong_ones_change_nothing() {
    let file = File::new(RULES);
    let server = server(&["--rules", file.name()]);
    let mut http = Http::to(server.http());
    let first = |http: &mut Http| body(http, "/api/v1/rules")["data"]["groups"][0]["name"].take();
    std::fs::write(
        &file.path,
        "groups:\n- name: x\n  rules:\n  - {record: r, expr: 'sum('}\n",
    )
    .unwrap();
    let answer = http.post("/-/reload", b"");
    assert_eq!(answer.status, 500);
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.contains("rules.yml: 4:"), "{text}");
    assert_eq!(first(&mut http), "a");
    std::fs::write(
        &file.path,
        "groups:\n- name: x\n  rules:\n  - {record: r, expr: sum(t)}\n",
    )
    .unwrap();
    assert_eq!(http.post("/-/reload", b"").status, 200);
    assert_eq!(first(&mut http), "x");
    std::fs::write(&file.path, "groups: []\n").unwrap();
    server.hang_up();
    server.wait_for_log("reloaded the rule files");
    assert_eq!(
        body(&mut http, "/api/v1/rules")["data"]["groups"],
        json!([])
    );
    assert_eq!(http.get("/-/reload").status, 405);
}

#[test]
fn a_server_does_not_start_with_a_wrong_file() {
    let file = File::new("groups:\n- name: x\n  rules:\n  - {record: r, expr: 'sum('}\n");
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path())
        .args(["--rules", file.name()])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("rules.yml: 4:"), "{text}");
}

#[test]
fn many_rules_are_taken_and_more_are_refused() {
    let rule = |at: usize| format!("  - {{record: 'r{at}', expr: 'sum(t) + {at}'}}\n");
    let rules: String = (0..10_000).map(rule).collect();
    let file = File::new(&format!(
        "groups:\n- name: many\n  interval: 1h\n  rules:\n{rules}"
    ));
    let server = server(&["--rules", file.name(), "--max-rules", "10000"]);
    let mut http = Http::to(server.http());
    let shown = body(&mut http, "/api/v1/rules");
    let shown = shown["data"]["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(shown.len(), 10_000);
    std::fs::write(
        &file.path,
        format!("groups:\n- name: many\n  rules:\n{rules}{}", rule(1)),
    )
    .unwrap();
    let answer = http.post("/-/reload", b"");
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.contains("more than 10000 rules"), "{text}");
    std::fs::write(&file.path, " ".repeat(11 << 20)).unwrap();
    let answer = http.post("/-/reload", b"");
    assert_eq!(answer.status, 500);
}

#[test]
fn who_may_not_read_everything_sees_no_rules_and_reloads_nothing() {
    let file = File::new(RULES);
    let server = server(&[
        "--rules",
        file.name(),
        "--user",
        "some on nopass ~t* +@read",
        "--user",
        "all on nopass ~* +@read",
    ]);
    let mut http = Http::to(server.http());
    // `some:` and `all:` in base64.
    for (user, groups) in [("c29tZTo=", 0), ("YWxsOg==", 2)] {
        let head = format!("Authorization: Basic {user}\r\n");
        http.send(format!("GET /api/v1/rules HTTP/1.1\r\nHost: x\r\n{head}\r\n").as_bytes());
        let answer = http.answer();
        let shown: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_ne!(shown["data"]["mayReload"], true);
        let warnings = shown["warnings"].to_string();
        let shown = shown["data"]["groups"].as_array().unwrap().len();
        assert_eq!(shown, groups, "{user}");
        let says_why = warnings.contains("user \\\"some\\\" may not read every series");
        assert_eq!(says_why, groups == 0, "{warnings}");
        assert_eq!(http.post_with("/-/reload", &head, b"").status, 403);
    }
}

/// An Alertmanager that answers requests and hands on their bodies.
fn alertmanager() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut stream, mut bytes) = (stream, Vec::new());
            let mut buffer = [0; 4096];
            let body = loop {
                // The sender tries again when a connection breaks.
                let Ok(read @ 1..) = stream.read(&mut buffer) else {
                    break None;
                };
                bytes.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let head = head.to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if body.len() >= length {
                    assert!(head.starts_with("post /api/v2/alerts http/1.1"), "{head}");
                    assert!(head.contains("authorization: basic bwu6c2vjcmv0"), "{head}");
                    break Some(body.to_owned());
                }
            };
            let Some(body) = body else {
                continue;
            };
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer);
            if sender.send(serde_json::from_str(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

#[test]
fn alertmanagers_are_told_and_one_that_hangs_harms_nothing() {
    let (url, told) = alertmanager();
    // Nobody answers there.
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = format!("http://{}", hangs.local_addr().unwrap());
    // Nobody listens there, nor will another test.
    let refusing = "http://me:secret@127.0.0.1:1";
    let file = File::new(RULES);
    let server: Server = server(&[
        "--rules",
        file.name(),
        "--alertmanager",
        &hanging,
        "--alertmanager",
        &url,
        "--alertmanager",
        refusing,
        "--external-url",
        "http://db-1/",
        "--external-labels",
        "site=north,severity=none",
    ]);
    let mut http = Http::to(server.http());
    write(&mut http, 3.0);
    let alerts = told.recv_timeout(PATIENCE).unwrap();
    let alert = &alerts[0];
    // Labels of the alert come before those of the server.
    let labels = json!({"alertname": "Hot", "job": "a", "severity": "page", "site": "north"});
    assert_eq!(alert["labels"], labels);
    assert_eq!(alert["annotations"], json!({"summary": "a is at 3"}));
    let link = "http://db-1/graph?g0.expr=t+%3E+1&g0.tab=1";
    assert_eq!(alert["generatorURL"], link);
    assert!(alert["endsAt"].as_str() > alert["startsAt"].as_str());
    // It ends.
    write(&mut http, 0.0);
    let resolved = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(resolved[0]["labels"], labels);
    assert_eq!(result(&mut http, "ALERTS"), json!([]));
    let shown = body(&mut http, "/api/v1/alertmanagers")["data"].take();
    let urls = shown["activeAlertmanagers"].to_string();
    assert!(
        urls.contains("/api/v2/alerts") && !urls.contains("secret"),
        "{urls}"
    );
    let told = &shown["activeAlertmanagers"][1];
    assert_eq!(told["lastError"], Value::Null);
    assert!(told["sent"].as_u64().unwrap() >= 1, "{told}");
    let refused = &shown["activeAlertmanagers"][2];
    let why = refused["lastError"]["text"].as_str().unwrap();
    assert!(why.contains("refused"), "{why}");
    assert!(refused["dropped"].as_u64().unwrap() >= 1, "{refused}");
    let (ended_well, _) = server.terminate();
    assert!(ended_well);
}
