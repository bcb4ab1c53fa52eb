//! The status API: what the manual lists of each path is there, and nothing else.

use crate::client::Http;
use crate::harness::Server;
use crate::promql::{ask, body};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The fields that the manual lists under a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let manual = include_str!("../../../../docs/api-status.md");
    let section = manual.split("\n## ").find_map(|section| {
        let (title, text) = section.split_once('\n')?;
        (title == heading).then_some(text)
    });
    let rows = section.unwrap().lines();
    let rows = rows.filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    names
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

/// The paths to the values of `value`, those that are null or empty among them.
fn fields(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(all) if !all.is_empty() => {
            for (name, value) in all {
                fields(value, &below(name), out);
            }
        }
        Value::Array(all) if all.iter().any(|one| one.is_object()) => {
            for one in all {
                fields(one, &format!("{path}[]"), out);
            }
        }
        _ => drop(out.insert(path.to_owned())),
    }
}

/// Compares the fields of `data` with those that the manual lists. What it lists as `x.*` has
/// names that differ; what is below a field that is null or empty cannot be there.
fn assert_documented(heading: &str, data: &Value) {
    let listed = documented(heading);
    let mut found = BTreeSet::new();
    fields(data, "", &mut found);
    let is_any = |name: &str| {
        let any = |listed: &String| {
            listed
                .strip_suffix('*')
                .is_some_and(|of| name.starts_with(of))
        };
        listed.iter().any(any)
    };
    let unlisted: Vec<_> = found
        .iter()
        .filter(|name| !listed.contains(*name) && !is_any(name))
        .filter(|name| !listed.contains(&format!("{name}.*")))
        .filter(|name| {
            !listed
                .iter()
                .any(|listed| listed.starts_with(&format!("{name}[]")))
        })
        .collect();
    assert!(unlisted.is_empty(), "not in the manual: {unlisted:?}");
    let is_there = |listed: &&String| {
        let of = listed.trim_end_matches('*').trim_end_matches('.');
        found.iter().any(|name| {
            let above = [format!("{name}."), format!("{name}[]")];
            name == of
                || name.starts_with(&format!("{of}."))
                || name.starts_with(&format!("{of}[]"))
                || above.iter().any(|above| of.starts_with(above))
        })
    };
    let missing: Vec<_> = listed.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "only in the manual: {missing:?}");
}

/// A server with a log.
fn logged() -> Server {
    Server::with(&["--http", "127.0.0.1:0"])
}

fn data(http: &mut Http, endpoint: &str, parameters: &[(&str, &str)]) -> Value {
    let (status, mut body) = ask(http, endpoint, parameters);
    assert_eq!(status, 200, "{endpoint}: {body}");
    body["data"].take()
}

/// What `user`, whose password is `pw`, is answered.
fn ask_as(http: &mut Http, user: &str, path: &str) -> (u16, Value) {
    let token = format!("Authorization: Token {user}:pw\r\n");
    http.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n").as_bytes());
    let answer = http.answer();
    (answer.status, body(&answer))
}

fn one_of<'a>(list: &'a Value, name: &str, value: &str) -> &'a Value {
    let mut all = list.as_array().unwrap().iter();
    all.find(|one| one[name] == value).unwrap()
}

#[test]
fn the_server_at_one_look() {
    let server = logged();
    let mut redis = server.client();
    for at in [1000, 3000, 2000, 3000] {
        redis.ask(&format!("TS.ADD a {at} 1 ON_DUPLICATE LAST"));
    }
    redis.ask("TS.ADD a");
    redis.ask(&format!("TS.ADD {} 1 1", "k".repeat(70_000)));
    redis.ask("CONFIG SET maxclients 321");
    let mut http = Http::to(server.http());
    let written = http.post("/write?precision=ms", b"m v=1 1\nm v=\"text\" 2\n");
    assert_eq!(written.status, 204, "{}", written.text());
    let data = data(&mut http, "status/server", &[]);
    assert_documented("server", &data);
    assert_eq!(data["state"]["ready"], true);
    assert_eq!(data["state"]["writes_stopped"], Value::Null);
    let samples = &data["samples"];
    assert_eq!(samples["series"], 2);
    assert_eq!(samples["late"], 1);
    assert_eq!(samples["duplicate"], 1);
    assert_eq!(samples["sent_by_redis"], 5);
    let influx = one_of(&data["intake"], "protocol", "influx");
    assert_eq!(
        (&influx["samples"], &influx["strings"]),
        (&json!(1), &json!(1))
    );
    let own = one_of(&data["reads"], "endpoint", "server");
    assert_eq!(own["requests"], 1);
    assert_eq!(data["errors"]["by_code"]["ERR"], 2);
    let keys = one_of(&data["limits"], "limit", "keys");
    assert_eq!(keys["refused"], 1);
    let age_ms = data["server"]["time_ms"].as_i64().unwrap() - keys["last_ms"].as_i64().unwrap();
    assert!((0..600_000).contains(&age_ms), "{age_ms}");
    let series = one_of(&data["limits"], "limit", "series");
    assert_eq!(
        (&series["refused"], &series["last_ms"]),
        (&json!(0), &Value::Null)
    );
    let open = one_of(&data["connections"]["listeners"], "listener", "redis");
    assert_eq!(open["open"], 1);
    assert_eq!(data["connections"]["maximum"], 321);
    assert!(data["log"]["groups"].as_u64().unwrap() >= 4);
    assert!(data["disk"]["free_bytes"].as_u64().unwrap() > 0);
    let option = one_of(&data["settings"], "name", "maxclients");
    assert_eq!(option["value"], "321");
    assert_ne!(option["default"], "321");
}

#[test]
fn the_server_is_looked_at_by_whom_info_is_for() {
    let server = logged();
    let mut redis = server.client();
    redis.ask("CONFIG SET requirepass hidden");
    redis.ask("ACL SETUSER some on >pw +info");
    redis.ask("ACL SETUSER other on >pw +ping");
    let mut http = Http::to(server.http());
    let (status, seen) = ask_as(&mut http, "some", "/api/v1/status/server");
    assert_eq!((status, &seen["data"]["settings"]), (200, &Value::Null));
    let (status, seen) = ask_as(&mut http, "other", "/api/v1/status/server");
    assert_eq!(
        (status, &seen["error"]),
        (403, &json!("permission to run INFO is required"))
    );
    redis.ask("ACL SETUSER some +config");
    let (_, seen) = ask_as(&mut http, "some", "/api/v1/status/server");
    assert!(seen["data"]["settings"].is_array());
    assert!(!seen.to_string().contains("hidden"));
    redis.ask("CLIENT PAUSE 600000 ALL");
    let (status, seen) = ask_as(&mut http, "some", "/api/v1/status/server");
    assert_eq!(
        (status, &seen["data"]["state"]["reads_paused"]),
        (200, &json!(true))
    );
    let (status, _) = ask_as(&mut http, "some", "/api/v1/status/server?x=1");
    assert_eq!(status, 400);
}
