//! Series that a rule writes are written, changed and removed by nobody else.

use super::client::Http;
use super::server;
use crate::harness::{Client, eventually};

const RULES: &str = "
groups:
- name: g
  interval: 50ms
  rules:
  - record: double
    expr: 2 * t
";

const KEY: &str = "double{job=\"a\"}";
const WHY: &str = "ERR TSDB: series is written by rule double of group g";

fn put(http: &mut Http, line: &str) -> (u16, String) {
    let answer = http.post("/api/v1/import/prometheus", line.as_bytes());
    (answer.status, answer.text())
}

#[test]
fn series_of_rules_are_written_by_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rules.yml");
    std::fs::write(&file, RULES).unwrap();
    let server = server(&["--rules", file.to_str().unwrap()]);
    let (mut http, mut client) = (Http::to(server.http()), server.client());
    assert_eq!(put(&mut http, "t{job=\"a\"} 3\n").0, 204);
    let newest = |client: &mut Client| client.ask(&format!("TS.GET {KEY}"));
    eventually("a row", || newest(&mut client).starts_with("*2"));
    let ask = |client: &mut Client, line: &str| client.ask(&line.replace("KEY", KEY));
    assert!(ask(&mut client, "TS.CREATE other").starts_with("+OK"));
    assert!(ask(&mut client, "TS.ADD other 1 1").starts_with(":1"));
    for line in [
        "TS.ADD KEY 5 1",
        "TS.MADD KEY 5 1 other 2 1",
        "TS.INCRBY KEY 1",
        "TS.DECRBY KEY 1",
        "TS.ALTER KEY RETENTION 1",
        "TS.CREATE KEY",
        "TS.DEL KEY 0 9999999999999",
        "TS.CREATERULE other KEY AGGREGATION avg 10",
        "DEL KEY",
        "DEL other KEY",
        "UNLINK KEY",
        "RENAME KEY new",
        "RENAME other KEY",
        "COPY other KEY REPLACE",
        "EXPIRE KEY 100",
        "PERSIST KEY",
    ] {
        let reply = ask(&mut client, line);
        assert!(reply.contains(WHY), "{line}: {reply}");
    }
    assert!(
        ask(&mut client, "TS.GET other").contains(":2"),
        "MADD takes the other"
    );
    let (status, text) = put(&mut http, &format!("{KEY} 5\n"));
    assert!(
        status >= 400 && text.contains(&WHY[10..]),
        "{status} {text}"
    );
    // The rule itself goes on, also after everything is gone.
    assert!(client.ask("FLUSHALL").starts_with("+OK"));
    assert!(ask(&mut client, "TS.ADD KEY 5 1").contains(WHY));
    assert_eq!(put(&mut http, "t{job=\"a\"} 4\n").0, 204);
    eventually("a row after FLUSHALL", || newest(&mut client).contains("8"));
    // What no rule writes any more is everybody's.
    std::fs::write(&file, "groups: []\n").unwrap();
    assert_eq!(http.post("/-/reload", b"").status, 200);
    eventually("anybody may write", || {
        ask(&mut client, "TS.ADD KEY 5 1").starts_with(":5")
    });
}
