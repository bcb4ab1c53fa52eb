//! A query that is asked again sees every change of series in between.

use crate::http::client::Http;
use crate::http::promql::path;
use crate::http::server;

/// The labels and values of an instant query, one row a series, or what was refused.
fn ask(http: &mut Http, query: &str, user: &str) -> Vec<String> {
    let path = path("query", &[("query", query), ("time", "100")]);
    let head = format!("Authorization: Token {user}:secret\r\n");
    let answer = http.post_with(&path, &head, b"");
    let json: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
    let Some(rows) = json["data"]["result"].as_array() else {
        return vec![json["error"].to_string()];
    };
    let row = |row: &serde_json::Value| format!("{} {}", row["metric"], row["value"][1]);
    rows.iter().map(row).collect()
}

#[test]
fn what_was_found_before_changes_with_keys_labels_and_rights() {
    let server = server(&["--requirepass", "secret"]);
    let mut redis = server.client();
    redis.ask("AUTH secret");
    redis.ask("ACL SETUSER some on >secret +@read %R~a*");
    let mut http = Http::to(server.http());
    let query = "{job=~\"j|k\"}";
    let rows = |http: &mut Http| {
        let first = ask(http, query, "default");
        assert_eq!(ask(http, query, "default"), first, "asked again");
        first
    };
    let row = |name: &str, job: &str, value: i32| {
        format!("{{\"__name__\":\"{name}\",\"job\":\"{job}\"}} \"{value}\"")
    };
    assert!(rows(&mut http).is_empty());
    redis.ask("TS.ADD a1 99000 1 LABELS job j");
    assert_eq!(rows(&mut http), [row("a1", "j", 1)]);
    assert_eq!(ask(&mut http, query, "some"), [row("a1", "j", 1)]);
    redis.ask("TS.ADD a1 99500 2");
    assert_eq!(rows(&mut http), [row("a1", "j", 2)]);
    redis.ask("TS.ADD b1 99000 3 LABELS job j");
    assert_eq!(rows(&mut http), [row("a1", "j", 2), row("b1", "j", 3)]);
    // Who may not read it all is refused what others have just read.
    let refused = ask(&mut http, query, "some");
    assert!(
        refused.len() == 1 && refused[0].contains("permission"),
        "{refused:?}"
    );
    redis.ask("TS.ALTER a1 LABELS job k");
    assert_eq!(rows(&mut http), [row("a1", "k", 2), row("b1", "j", 3)]);
    redis.ask("RENAME b1 a0");
    assert_eq!(rows(&mut http), [row("a0", "j", 3), row("a1", "k", 2)]);
    redis.ask("COPY a0 a2");
    assert_eq!(rows(&mut http).len(), 3);
    redis.ask("DEL a0");
    assert_eq!(rows(&mut http), [row("a1", "k", 2), row("a2", "j", 3)]);
    redis.ask("PEXPIRE a1 1");
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(rows(&mut http), [row("a2", "j", 3)]);
    redis.ask("TS.ADD a1 99000 5 LABELS job j");
    assert_eq!(rows(&mut http), [row("a1", "j", 5), row("a2", "j", 3)]);
    redis.ask("FLUSHALL");
    assert!(rows(&mut http).is_empty());
    redis.ask("TS.ADD a2 99000 6 LABELS job j");
    assert_eq!(rows(&mut http), [row("a2", "j", 6)]);
}
