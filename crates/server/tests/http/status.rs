//! The status API: what the manual lists of each path is there, and nothing else.

use crate::harness::Server;
use crate::http::client::Http;
use crate::http::promql::{ask, body};
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
fn refused_samples_are_counted_once_whoever_refused_them() {
    let server = Server::with(&["--http", "127.0.0.1:0", "--redis-future-limit", "1d"]);
    let mut redis = server.client();
    redis.ask("TS.CREATE m_v DUPLICATE_POLICY BLOCK");
    redis.ask("TS.ADD m_v 1 1");
    redis.ask("TS.ADD m_v 1 1");
    let mut http = Http::to(server.http());
    // A duplicate, a value that is none, and a time far ahead of the clock.
    http.post(
        "/write?precision=ms",
        b"m v=1 1\nm v=x 2\nm v=1 9999999999999\n",
    );
    let refused = "-ERR TSDB: the timestamp is more than 86400 seconds ahead of the clock, for key \
                   'm_v' at 9999999999999\r\n";
    redis.expect(&[
        ("TS.ADD m_v 9999999999999 1", refused),
        ("TS.MADD m_v 9999999999999 1", &format!("*1\r\n{refused}")),
    ]);
    let data = data(&mut http, "status/server", &[]);
    assert_eq!(data["samples"]["refused"], 2);
    assert_eq!(data["samples"]["refused_total"], 6);
    let influx = one_of(&data["intake"], "protocol", "influx");
    let last_ms = influx["refused_last_ms"].as_i64().unwrap();
    let age_ms = data["server"]["time_ms"].as_i64().unwrap() - last_ms;
    assert!((0..600_000).contains(&age_ms), "{age_ms}");
    let otlp = one_of(&data["intake"], "protocol", "otlp");
    assert_eq!(otlp["refused_last_ms"], Value::Null);
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
    assert_eq!(data["cluster"], Value::Null);
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

/// A source with two rules, late samples, and another series.
fn ruled() -> Server {
    let server = logged();
    let mut redis = server.client();
    redis.ask("TS.CREATE src RETENTION 0 CHUNK_SIZE 128 DUPLICATE_POLICY LAST IGNORE 5 0.5 LABELS __name__ m x 1 x 2");
    for (destination, rule) in [("sum", "SUM 100"), ("max", "MAX 1000 50")] {
        redis.ask(&format!("TS.CREATE {destination}"));
        redis.ask(&format!(
            "TS.CREATERULE src {destination} AGGREGATION {rule}"
        ));
    }
    for at in 1..=1000 {
        redis.ask(&format!("TS.ADD src {at}0 {at}"));
    }
    redis.ask("TS.ADD other 5 nan");
    redis.ask("TS.ADD other 7 0.1");
    server
}

#[test]
fn one_series_and_its_rules() {
    let server = ruled();
    let mut http = Http::to(server.http());
    let mut redis = server.client();
    redis.ask("SAVE");
    redis.ask("TS.ADD src 20000 1");
    redis.ask("TS.ADD src 15 1");
    let seen = data(&mut http, "status/series", &[("key", "src")]);
    assert_documented("series", &seen);
    let labels = json!([
        {"name": "__name__", "value": "m"},
        {"name": "x", "value": "1"},
        {"name": "x", "value": "2"},
    ]);
    assert_eq!(seen["labels"], labels);
    assert_eq!(seen["metric"], json!({"__name__": "m", "x": "1"}));
    for (name, value) in [
        ("key", json!("src")),
        ("chunk_size_bytes", json!(128)),
        ("encoding", json!("compressed")),
        ("duplicate_policy", json!("last")),
        ("ignore_max_time_diff_ms", json!(5)),
        ("ignore_max_value_diff", json!(0.5)),
        ("retention_ms", json!(0)),
        ("samples", json!(1002)),
        ("late_pending", json!(1)),
        ("first_ms", json!(10)),
        ("last_ms", json!(20000)),
        ("memory_chunks", json!(1)),
        ("source", Value::Null),
    ] {
        assert_eq!(seen[name], value, "{name}");
    }
    assert!(seen["block_chunks"].as_u64().unwrap() >= 1);
    assert!(seen["block_chunks_bytes"].as_u64().unwrap() > 100);
    let rules = seen["rules"].as_array().unwrap();
    let first = &rules[0];
    for (name, value) in [
        ("source", json!("src")),
        ("destination", json!("sum")),
        ("aggregator", json!("SUM")),
        ("bucket_ms", json!(100)),
        ("align_ms", json!(0)),
        ("failed_buckets", json!(0)),
        ("open", json!({"first_ms": 20000, "last_ms": 20099})),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    assert_eq!((rules.len(), &rules[1]["align_ms"]), (2, &json!(50)));
    let by_labels = [("match[]", "m{x=\"1\"}")];
    let same = data(&mut http, "status/series", &by_labels);
    assert_eq!(same["key"], "src");
    let destination = data(&mut http, "status/series", &[("key", "sum")]);
    assert_documented("series", &destination);
    assert_eq!(destination["source"]["destination"], "sum");
    assert_eq!(destination["rules"], json!([]));
}

#[test]
fn one_series_must_be_named() {
    let server = ruled();
    let mut http = Http::to(server.http());
    for (parameters, status, error) in [
        (&[("key", "none")][..], 404, "the key does not exist"),
        (&[("match[]", "none")], 404, "no series matches"),
        (
            &[("match[]", "{__name__=~\"m|other\"}")],
            400,
            "match[] must match one series, it matches 2",
        ),
        (&[], 400, "one key or one match[] is needed"),
        (
            &[("key", "src"), ("match[]", "m")],
            400,
            "one key or one match[] is needed",
        ),
    ] {
        let answer = ask(&mut http, "status/series", parameters);
        assert_eq!((answer.0, &answer.1["error"]), (status, &json!(error)));
    }
}

#[test]
fn samples_of_a_series_come_in_pages() {
    let server = ruled();
    let mut http = Http::to(server.http());
    let (mut seen, mut start, mut pages) = (Vec::new(), "0".to_owned(), 0);
    loop {
        let parameters = [("key", "src"), ("start", &start), ("limit", "333")];
        let mut page = data(&mut http, "status/series/samples", &parameters);
        assert_documented("series/samples", &page);
        seen.append(page["samples"].as_array_mut().unwrap());
        pages += 1;
        match page["next_start"].as_str() {
            Some(next) => start = next.to_owned(),
            None => break,
        }
    }
    let all: Vec<_> = (1..=1000)
        .map(|at| json!([at * 10, at.to_string(), false]))
        .collect();
    assert_eq!((seen, pages), (all, 4));
    let some = [("key", "src"), ("start", "1.005"), ("end", "1.02")];
    let some = data(&mut http, "status/series/samples", &some);
    assert_eq!(
        (&some["samples"], &some["next_start"]),
        (
            &json!([[1010, "101", false], [1020, "102", false]]),
            &Value::Null
        )
    );
    // Nanoseconds that were sent as milliseconds are pages that end, too.
    let mut redis = server.client();
    let times: Vec<i64> = (1..=5).map(|at| 1_700_000_000_000_000_000 + at).collect();
    for at in &times {
        redis.ask(&format!("TS.ADD far {at} 1"));
    }
    let (mut seen, mut start) = (Vec::new(), "0".to_owned());
    for _ in 0..3 {
        let parameters = [("key", "far"), ("start", &start), ("limit", "2")];
        let page = data(&mut http, "status/series/samples", &parameters);
        let samples = page["samples"].as_array().unwrap();
        seen.extend(samples.iter().map(|sample| sample[0].as_i64().unwrap()));
        start = page["next_start"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((seen, &*start), (times, ""));
    let other = data(&mut http, "status/series/samples", &[("key", "other")]);
    assert_eq!(
        other["samples"],
        json!([[5, "NaN", false], [7, "0.1", false]])
    );
    let long = [("key", "src"), ("limit", "10001")];
    let (status, _) = ask(&mut http, "status/series/samples", &long);
    assert_eq!(status, 400);
}

/// All keys that match, page after page.
fn keys(http: &mut Http, parameters: &[(&str, &str)]) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let parameters = [parameters, &[("limit", "7"), ("cursor", &cursor)]].concat();
        let page = data(http, "status/keys", &parameters);
        assert_documented("keys", &page);
        let keys = page["keys"].as_array().unwrap();
        assert!(keys.len() <= 7);
        found.extend(keys.iter().map(|key| key.as_str().unwrap().to_owned()));
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    found.sort();
    found
}

#[test]
fn keys_are_found_by_prefix_and_pattern() {
    let server = logged();
    let mut redis = server.client();
    let all: Vec<String> = (100..200).map(|at| format!("key:{at}")).collect();
    for key in &all {
        redis.ask(&format!("TS.CREATE {key}"));
    }
    redis.ask("TS.CREATE other*");
    let mut http = Http::to(server.http());
    assert_eq!(keys(&mut http, &[("prefix", "key:")]), all);
    assert_eq!(keys(&mut http, &[("prefix", "key:15")]), all[50..60]);
    assert_eq!(keys(&mut http, &[("pattern", "*:1?7")]).len(), 10);
    assert_eq!(keys(&mut http, &[("prefix", "other*")]), ["other*"]);
    assert_eq!(keys(&mut http, &[]).len(), 101);
    let (status, _) = ask(&mut http, "status/keys", &[("cursor", "x")]);
    assert_eq!(status, 400);
    let both = [("prefix", "k"), ("pattern", "k")];
    let (status, _) = ask(&mut http, "status/keys", &both);
    assert_eq!(status, 400);
}

#[test]
fn rules_come_in_pages() {
    let server = logged();
    let mut redis = server.client();
    for at in 0..9 {
        redis.ask(&format!("TS.CREATE from:{at}"));
        for to in ["a", "b"] {
            redis.ask(&format!("TS.CREATE to:{at}:{to}"));
            redis.ask(&format!(
                "TS.CREATERULE from:{at} to:{at}:{to} AGGREGATION avg 60000"
            ));
        }
    }
    redis.ask("TS.ADD from:0 5 1");
    let mut http = Http::to(server.http());
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let parameters = [("limit", "3"), ("cursor", &cursor)];
        let page = data(&mut http, "status/rules", &parameters);
        assert_documented("rules", &page);
        let rules = page["rules"].as_array().unwrap();
        assert!(rules.len() <= 4, "3, and the rest of a source");
        for rule in rules {
            let destination = rule["destination"].as_str().unwrap();
            assert!(found.insert(destination.to_owned()), "{destination} twice");
            let is_first = rule["source"] == "from:0";
            let open = json!({"first_ms": 0, "last_ms": 59_999});
            assert_eq!(rule["open"], if is_first { open } else { Value::Null });
            assert_eq!(
                (&rule["aggregator"], &rule["failed"]),
                (&json!("AVG"), &json!([]))
            );
        }
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(found.len(), 18);
}

#[test]
fn whoever_may_not_read_a_key_is_told_nothing_of_it() {
    let server = ruled();
    let mut redis = server.client();
    redis.ask("ACL SETUSER some on >pw +@read %R~other %R~sum");
    let mut http = Http::to(server.http());
    for path in ["series", "series/samples"] {
        for key in ["src", "nothing"] {
            let path = format!("/api/v1/status/{path}?key={key}");
            let (status, seen) = ask_as(&mut http, "some", &path);
            assert_eq!(status, 403, "{path} {seen}");
        }
        let path = format!("/api/v1/status/{path}?key=other");
        assert_eq!(ask_as(&mut http, "some", &path).0, 200, "{path}");
    }
    let (_, seen) = ask_as(&mut http, "some", "/api/v1/status/keys");
    let mut keys: Vec<_> = seen["data"]["keys"].as_array().unwrap().clone();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!(keys, ["other", "sum"]);
    let (_, seen) = ask_as(&mut http, "some", "/api/v1/status/rules");
    assert_eq!(seen["data"]["rules"], json!([]));
    // As in TS.INFO, the rule is named; its state would tell of the samples of the source.
    let (_, seen) = ask_as(&mut http, "some", "/api/v1/status/series?key=sum");
    let source = seen["data"]["source"].as_object().unwrap();
    let names: Vec<_> = source.keys().map(String::as_str).collect();
    let known = [
        "source",
        "destination",
        "aggregator",
        "bucket_ms",
        "align_ms",
    ];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    assert_eq!(source["source"], "src");
    redis.ask("ACL SETUSER some -scan -ts.info -ts.range");
    for path in [
        "series?key=other",
        "series/samples?key=other",
        "keys",
        "rules",
    ] {
        let (status, _) = ask_as(&mut http, "some", &format!("/api/v1/status/{path}"));
        assert_eq!(status, 403, "{path}");
    }
}
