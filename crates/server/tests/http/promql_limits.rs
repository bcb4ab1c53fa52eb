//! What bounds queries in PromQL: rights, memory, texts.

use crate::http::client::Http;
use crate::http::promql::{ask, filled, path};
use crate::http::server;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

#[test]
fn a_series_that_may_not_be_read_refuses_the_query() {
    let server = filled(&[]);
    let mut redis = server.client();
    redis.ask("ACL SETUSER some on >pw ~room:1 +ts.mrange +ping");
    redis.ask("ACL SETUSER none on >pw ~* -@all +ping");
    let mut http = Http::to(server.http());
    let mut get = |user: &str, query: &str| {
        let token = format!("Authorization: Token {user}:pw\r\n");
        let path = path("query", &[("query", query), ("time", "8")]);
        http.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n").as_bytes());
        let answer = http.answer();
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        (
            answer.status,
            body["error"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(get("some", "room:1"), (200, String::new()));
    let refused = "no permission to read all matching series".to_owned();
    assert_eq!(get("some", "room:1 + room:2"), (403, refused));
    let refused = "permission to run TS.MRANGE is required".to_owned();
    assert_eq!(get("none", "1"), (403, refused));
}

#[test]
fn memory_and_samples_of_a_query_are_bounded() {
    let server = filled(&["--promql-max-memory", "1mb", "--promql-max-samples", "1000"]);
    let mut http = Http::to(server.http());
    let range = [
        ("query", "room:1"),
        ("start", "1"),
        ("end", "2000"),
        ("step", "1"),
    ];
    let (status, body) = ask(&mut http, "query_range", &range);
    assert_eq!(status, 200, "{body}");
    let range = [
        ("query", "vector(1)"),
        ("start", "1"),
        ("end", "2000"),
        ("step", "1"),
    ];
    let (status, body) = ask(&mut http, "query_range", &range);
    assert_eq!((status, &body["errorType"]), (422, &json!("execution")));
    assert_eq!(
        body["error"],
        "query processing would load too many samples into memory in query execution"
    );
    let many = [
        ("query", "count_values(\"v\", room:1 * time())"),
        ("start", "1"),
        ("end", "9000"),
        ("step", "1"),
        ("lookback_delta", "1d"),
    ];
    let (status, body) = ask(&mut http, "query_range", &many);
    assert_eq!(status, 422, "{body}");
}

#[test]
fn hostile_texts_are_refused_and_others_served() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let post = |http: &mut Http, query: &str| {
        let body = format!("time=8&query={query}");
        let answer = http.post_with("/api/v1/query", form, body.as_bytes());
        (answer.status, answer.text())
    };
    let (status, text) = post(&mut http, &"(".repeat(10_000));
    assert_eq!(status, 400);
    assert!(text.contains("more than 200 nested expressions"), "{text}");
    let (status, text) = post(&mut http, &format!("room:1{}", "%2B1".repeat(1 << 16)));
    assert_eq!(status, 400);
    assert!(text.contains("levels of expressions"), "{text}");
    let (status, text) = post(&mut http, &format!("room:1{}", " ".repeat(256 << 10)));
    assert_eq!(status, 400);
    assert!(text.contains("more than 262144 bytes of text"), "{text}");
    // Linear, where others take for ever.
    let (status, text) = post(
        &mut http,
        &format!("count({{host=~\"{}b\"}})", "(a*)*".repeat(10)),
    );
    assert_eq!(status, 200, "{text}");
    let (status, text) = post(&mut http, "{host=~\"(a|b){1000}\"}");
    assert_eq!(status, 200, "{text}");
    let (status, text) = post(&mut http, "{host=~\"((a{1000}){1000}){1000}\"}");
    assert_eq!(status, 400, "{text}");
    let (status, text) = post(&mut http, "room:1");
    assert_eq!(status, 200, "{text}");
    let plain = server_answers(&mut http);
    assert_eq!(plain, 200);
}

/// As a dashboard asks whose variable has many values selected.
#[test]
fn a_selector_lists_twenty_thousand_hosts() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let hosts: String = (0..20_000).map(|at| format!("h-{at}|")).collect();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    for (list, wanted) in [
        (format!("{hosts}b"), "\"room:2\""),
        (format!("({hosts}a)"), "\"room:1\""),
    ] {
        let body = format!("time=8&query={{__name__=~\"room:.*\",host=~\"{list}\"}}");
        let answer = http.post_with("/api/v1/query", form, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        assert_eq!(text.matches("__name__").count(), 1, "{text}");
        assert!(text.contains(wanted), "{text}");
    }
}

fn server_answers(http: &mut Http) -> u16 {
    http.get("/-/ready").status
}

#[test]
fn forms_are_short() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(format!("query=1{}", " ".repeat(1 << 20)).as_bytes())
        .unwrap();
    let gzip = gzip.finish().unwrap();
    for path in ["query", "parse_query", "status/active_queries/1/cancel"] {
        let path = format!("/api/v1/{path}");
        let packed = http.post_with(&path, &format!("{form}Content-Encoding: gzip\r\n"), &gzip);
        let mut long = Http::to(server.http());
        let length = "Content-Length: 1048577\r\n";
        long.send(format!("POST {path} HTTP/1.1\r\nHost: x\r\n{form}{length}\r\n").as_bytes());
        for answer in [packed, long.answer()] {
            let text = answer.text();
            assert_eq!(answer.status, 413, "{path}: {text}");
            let body: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(body["status"], "error");
            assert_eq!(body["error"], "the body is longer than 1048576 bytes");
        }
    }
}

#[test]
fn series_that_are_found_count_in_the_memory_of_a_query() {
    let server = server(&["--promql-max-memory", "1mb"]);
    let mut http = Http::to(server.http());
    let lines: String = (0..5000)
        .map(|at| format!("many,host=h{at} v=1 1000\n"))
        .collect();
    let written = http.post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204);
    let query =
        |http: &mut Http, query: &str| ask(http, "query", &[("query", query), ("time", "1")]);
    let (status, body) = query(&mut http, "count(many_v{host=~\"h1..\"})");
    assert_eq!(
        (status, &body["data"]["result"][0]["value"][1]),
        (200, &json!("100"))
    );
    let (status, body) = query(&mut http, "count(abs(many_v) > 0) by (host)");
    assert_eq!((status, &body["errorType"]), (422, &json!("execution")));
    let error = "query needs more than 1048576 bytes of memory; narrow the selectors or the range";
    assert_eq!(body["error"], error);
    // Series that are only counted come and go. Two that look the same are two.
    let twins = ["twin:1", "twin:2"]
        .map(|key| format!("TS.ADD {key} 1000 1 LABELS __name__ many_v host h7"));
    let mut redis = server.client();
    for command in twins {
        assert_eq!(redis.ask(&command), ":1000\r\n");
    }
    for (expression, count) in [
        ("count(many_v)", "5002"),
        ("sum(last_over_time(many_v{host!=\"h1\"}[1m]))", "5001"),
        ("count by (__name__) (many_v)", "5002"),
        ("sum(rate(many_v[1m])) or vector(7)", "7"),
        ("count(many_v > 1) or vector(7)", "7"),
    ] {
        let (status, body) = query(&mut http, expression);
        let value = &body["data"]["result"][0]["value"][1];
        assert_eq!(
            (status, value),
            (200, &json!(count)),
            "{expression}: {body}"
        );
    }
    let (status, body) = query(&mut http, "count by (__key__) (many_v{host=\"h7\"})");
    let groups = body["data"]["result"].as_array().unwrap().len();
    assert_eq!((status, groups), (200, 3), "{body}");
    assert!(query(&mut http, "many_v").0 == 422);
}

#[test]
fn durations_are_told_of_as_in_go() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    for (timeout, shown) in [
        ("0", "0s"),
        ("1e-10", "0s"),
        ("-90", "-1m30s"),
        ("-3661.25", "-1h1m1.25s"),
        ("-0.0015", "-1.5ms"),
        ("-0.0000015", "-1.5\u{b5}s"),
        ("-1e-9", "-1ns"),
    ] {
        let (status, body) = ask(&mut http, "query", &[("query", "1"), ("timeout", timeout)]);
        assert_eq!(status, 400);
        let error = format!("invalid parameter \"timeout\": timeout must be positive, got {shown}");
        assert_eq!(body["error"], error);
    }
    for name in ["timeout", "step", "lookback_delta"] {
        let mut query = vec![
            ("query", "1"),
            (name, "-1m30s"),
            ("start", "1"),
            ("end", "2"),
        ];
        if name != "step" {
            query.push(("step", "1"));
        }
        let (status, body) = ask(&mut http, "query_range", &query);
        assert_eq!(status, 400);
        let error = body["error"].as_str().unwrap();
        assert!(
            error.ends_with("cannot parse \"-1m30s\" to a valid duration"),
            "{error}"
        );
    }
    let query = [("query", "1"), ("timeout", "0.0000001")];
    assert_eq!(ask(&mut http, "query", &query).0, 503);
    let query = [
        ("query", "room:1"),
        ("lookback_delta", "0.0001"),
        ("time", "8"),
    ];
    assert_eq!(
        ask(&mut http, "query", &query).1["data"]["result"],
        json!([])
    );
    // Steps of 1.5 ms are counted as such, and are of 1 ms.
    let range = |end| {
        [
            ("query", "1"),
            ("start", "0"),
            ("end", end),
            ("step", "0.0015"),
        ]
    };
    let (status, body) = ask(&mut http, "query_range", &range("16.5"));
    assert_eq!(status, 200);
    let values = body["data"]["result"][0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 16_501);
    assert_eq!(ask(&mut http, "query_range", &range("16.502")).0, 400);
}

#[test]
fn only_queries_are_remembered_and_their_texts_are_short() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let long = format!("\"{}\"", "\u{e9}".repeat(1000));
    for (query, status) in [("sum(", 400), ("room:1 + on () room:2", 200), (&*long, 200)] {
        assert_eq!(
            ask(&mut http, "query", &[("query", query), ("time", "8")]).0,
            status
        );
    }
    let (_, body) = ask(&mut http, "status/top_queries", &[]);
    let top = body["data"]["topByCount"].as_array().unwrap();
    assert!(top.iter().all(|one| one["count"] == 1), "{top:?}");
    let mut texts: Vec<&str> = top
        .iter()
        .map(|one| one["query"].as_str().unwrap())
        .collect();
    texts.sort_unstable();
    let shown = format!("\"{}...", "\u{e9}".repeat(511));
    assert_eq!(texts, [&*shown, "room:1 + on () room:2"]);
}
