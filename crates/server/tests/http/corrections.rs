//! Rows of recording rules that late samples change: fresh reads, warnings, verify, backfill.

use super::client::Http;
use super::rules::{File, body};
use crate::harness::{Server, command, eventually};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const RULES: &str = "
groups:
- name: g
  interval: 50ms
  rules:
  - record: double
    expr: 2 * t
  - record: quadruple
    expr: 2 * double
- name: never
  interval: 50ms
  rules:
  - record: fixed
    expr: t @ 100
  - alert: Hot
    expr: t > 100
";

struct World {
    server: Server,
    http: Http,
    _file: File,
}

impl World {
    /// A server whose rules have rows of `t{job=\"a\"}`.
    fn new(options: &[&str]) -> Self {
        let file = File::new(RULES);
        let all = [&["--http", "127.0.0.1:0", "--rules", file.name()], options];
        let server = Server::with(&all.concat());
        let mut http = Http::to(server.http());
        write(&mut http, "t{job=\"a\"} 3\n");
        eventually("rows", || result(&mut http, "quadruple", "") != json!([]));
        Self {
            server,
            http,
            _file: file,
        }
    }

    /// The time of the newest row of `double{job=\"a\"}`, seconds.
    fn row_s(&mut self) -> f64 {
        let found = result(&mut self.http, "timestamp(double{job=\"a\"})", "");
        found[0]["value"][1].as_str().unwrap().parse().unwrap()
    }

    /// Runs `latewood rules`.
    fn tool(&self, words: &[&str]) -> Output {
        let url = format!("http://{}", self.server.http());
        let surroundings = command(Path::new("unused"));
        Command::new(surroundings.get_program())
            .arg("rules")
            .args(words)
            .args(["--url", &url])
            .output()
            .unwrap()
    }
}

fn write(http: &mut Http, lines: &str) {
    let written = http.post("/api/v1/import/prometheus", lines.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
}

fn result(http: &mut Http, query: &str, more: &str) -> Value {
    let query = query
        .replace('{', "%7B")
        .replace('}', "%7D")
        .replace('"', "%22");
    let mut answer = body(http, &format!("/api/v1/query?query={query}{more}"));
    answer["data"]["result"].take()
}

/// The lines of an answer.
fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn post(http: &mut Http, path: &str, form: &str) -> (u16, Vec<u8>) {
    let head = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = http.post_with(path, head, form.as_bytes());
    (answer.status, answer.body)
}

#[test]
fn fresh_rows_have_late_samples_and_nothing_differs() {
    for options in [&[][..], &["--wal", "off"]] {
        let mut world = World::new(options);
        let at_s = world.row_s();
        // It was not there when the row was written.
        let at_ms = (at_s * 1000.0) as i64 - 1;
        let http = &mut world.http;
        write(http, &format!("t{{job=\"late\"}} 5 {at_ms}\n"));
        let fresh = format!("&time={at_s}&fresh=1");
        let rows = result(http, "quadruple{job=\"late\"}", &fresh);
        assert_eq!(rows[0]["value"][1], "20", "{rows}");
        let rows = result(http, "double{job=\"late\"}", &fresh);
        assert_eq!(rows[0]["value"][1], "10", "{rows}");
        let path = "/api/v1/rules/verify";
        let (status, told) = post(http, path, &format!("from={}&to={at_s}", at_s - 60.0));
        assert_eq!(status, 200);
        let told = lines(&told);
        let last = told.last().unwrap();
        assert_eq!(
            (&last["rules"], &last["differences"]),
            (&json!(2), &json!(0))
        );
        assert!(last["steps"].as_u64() > Some(0), "{last}");
        let skipped = last["skipped"].as_array().unwrap();
        assert_eq!(skipped.len(), 1);
        assert!(
            skipped[0]["reason"]
                .as_str()
                .unwrap()
                .contains("fixed time")
        );
        let output = world.tool(&["verify", "--from", &format!("{}", at_s - 60.0)]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(lines(&output.stdout).last().unwrap()["differences"], 0);
    }
}

#[test]
fn rules_tell_how_they_are_corrected() {
    let mut world = World::new(&[]);
    let at_ms = (world.row_s() * 1000.0) as i64 - 1;
    let http = &mut world.http;
    write(http, &format!("t{{job=\"late\"}} 5 {at_ms}\n"));
    let mut rule = |group: usize, at: usize| {
        let mut groups = body(http, "/api/v1/rules")["data"]["groups"].take();
        groups[group]["rules"][at].take()
    };
    eventually("a correction", || {
        rule(0, 0)["corrections"]["rowsWritten"].as_u64() > Some(0)
    });
    let corrections = rule(0, 1)["corrections"].take();
    assert_eq!(corrections["corrected"], true);
    assert_eq!(corrections["failure"], "");
    assert!(corrections["since"].as_str().unwrap().ends_with('Z'));
    assert_eq!(corrections["final"], Value::Null);
    let fixed = rule(1, 0)["corrections"].take();
    assert_eq!(fixed["corrected"], false);
    assert!(
        fixed["reason"].as_str().unwrap().contains("fixed time"),
        "{fixed}"
    );
    assert_eq!(rule(1, 1)["corrections"], Value::Null);
    let metrics = String::from_utf8(http.get("/metrics").body).unwrap();
    let written = metrics
        .lines()
        .find_map(|line| line.strip_prefix("latewood_rules_corrected_rows_total "));
    assert_ne!(written.unwrap(), "0");
}

#[test]
fn a_backfill_makes_rows_of_before_the_rule() {
    let mut world = World::new(&[]);
    let first_s = world.row_s() - 40.0;
    let first_ms = (first_s * 1000.0) as i64;
    write(&mut world.http, &format!("t{{job=\"old\"}} 7 {first_ms}\n"));
    let fresh = format!("&time={}&fresh=1", first_s + 20.0);
    let query = "quadruple{job=\"old\"}";
    assert_eq!(result(&mut world.http, query, &fresh), json!([]));
    let from = format!("{}", first_s - 1.0);
    let output = world.tool(&["backfill", "--from", &from, "--group", "g"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let begun = lines(&output.stdout);
    assert_eq!(begun[0]["rules"], 2);
    assert!(begun[0]["steps"].as_u64() > Some(1000), "{begun:?}");
    assert_eq!(begun[0]["skipped"], json!([]));
    assert_eq!(begun[0]["differences"], Value::Null);
    let rows = result(&mut world.http, query, &fresh);
    assert_eq!(rows[0]["value"][1], "28", "{rows}");
    let output = world.tool(&["verify", "--from", &from]);
    assert_eq!(output.status.code(), Some(0), "{:?}", lines(&output.stdout));
}

#[test]
fn a_backfill_of_nothing_says_why_and_one_is_cancelled() {
    let mut world = World::new(&[]);
    let from = format!("{}", world.row_s() - 40.0);
    for what in ["backfill", "verify"] {
        let output = world.tool(&[what, "--from", &from, "--rule", "fixed"]);
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.contains("no rule can be") && told.contains("fixed time"),
            "{told}"
        );
    }
    // Before 1970, where there are no steps.
    let output = world.tool(&["verify", "--from", "-1", "--to", "-0.5", "--group", "g"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("are final, or there is none"));
    let output = world.tool(&["backfill", "--cancel"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = lines(&output.stdout);
    assert_eq!(told[0]["skipped"].as_array().unwrap().len(), 1, "{told:?}");
    assert!(told[0]["steps"].is_u64());
    let output = world.tool(&["backfill", "--cancel", "--from", "1"]);
    assert_eq!(output.status.code(), Some(2));
    let output = world.tool(&["backfill"]);
    assert_eq!(output.status.code(), Some(2));
    let path = "/api/v1/rules/backfill";
    for (form, wrong) in [
        ("cancel=true&from=1", "give neither from nor to"),
        ("cancel=perhaps", "expected true or false"),
    ] {
        let (status, told) = post(&mut world.http, path, form);
        let told = String::from_utf8(told).unwrap();
        assert!(status == 400 && told.contains(wrong), "{form}: {told}");
    }
}

#[test]
fn a_query_of_rows_that_wait_is_warned() {
    // The corrector rests for a long time after each pass.
    let mut world = World::new(&["--rules-correction-cpu", "1"]);
    let at_s = world.row_s();
    let at_ms = (at_s * 1000.0) as i64 - 1;
    let mut number = 0;
    eventually("a warning", || {
        number += 1;
        write(
            &mut world.http,
            &format!("t{{job=\"{number}\"}} 5 {at_ms}\n"),
        );
        let answer = body(
            &mut world.http,
            &format!("/api/v1/query?query=quadruple&time={at_s}"),
        );
        let warnings = answer["warnings"].to_string();
        warnings.contains("rule \\\"double\\\" of group \\\"g\\\": rows")
            && warnings.contains("wait for late samples to be worked in")
    });
    // Other queries are not.
    let answer = body(&mut world.http, "/api/v1/query?query=t");
    assert_eq!(answer["warnings"], Value::Null);
    let wrong = world.http.get("/api/v1/query?query=t&fresh=perhaps");
    assert_eq!(wrong.status, 400);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let world = World::new(&[
        "--user",
        "some on nopass ~t* +@all",
        "--user",
        "reader on nopass ~* +@read",
    ]);
    let mut http = Http::to(world.server.http());
    for (form, wrong) in [
        ("", "\"from\\\": a time is needed"),
        ("from=x", "from"),
        ("from=9&to=8", "it is before from"),
        ("from=4000000000", "it is in the future"),
        ("from=9&group=g", "unknown parameter"),
        ("from=9&rule_name[]=Hot", "no such recording rule"),
    ] {
        for path in ["verify", "backfill"] {
            let (status, told) = post(&mut http, &format!("/api/v1/rules/{path}"), form);
            let told = String::from_utf8(told).unwrap();
            assert!(
                status == 400 && told.contains(wrong),
                "{path} {form}: {told}"
            );
        }
    }
    // `some:` and `reader:` in base64.
    for (user, path) in [
        ("c29tZTo=", "verify"),
        ("cmVhZGVyOg==", "verify"),
        ("cmVhZGVyOg==", "backfill"),
    ] {
        let head = format!(
            "Authorization: Basic {user}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        );
        let path = format!("/api/v1/rules/{path}");
        assert_eq!(
            http.post_with(&path, &head, b"from=1").status,
            403,
            "{user}"
        );
    }
    let output = world.tool(&["verify", "--from", "soon"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("from"), "{told}");
    let surroundings = command(Path::new("unused"));
    let output = Command::new(surroundings.get_program())
        .args([
            "rules",
            "verify",
            "--from",
            "1",
            "--url",
            "http://127.0.0.1:1",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("cannot ask http://127.0.0.1:1"), "{told}");
}
