//! What bounds queries in PromQL: rights, time, memory, and hostile texts.

use crate::client::Http;
use crate::promql::{ask, filled, path};
use crate::server;
use flate2::read::GzDecoder;
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant};

/// A query that takes many seconds and little memory, at any time.
fn long() -> String {
    ["max_over_time(vector(1)[100d:1s])"; 24].join(" + ")
}

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
fn a_query_ends_when_its_time_is_over() {
    let server = filled(&["--promql-timeout", "100ms"]);
    let mut http = Http::to(server.http());
    let long = long();
    let query = [("query", &*long), ("time", "1e9"), ("timeout", "1h")];
    let (status, body) = ask(&mut http, "query", &query);
    assert_eq!(status, 503, "{body}");
    assert_eq!(body["errorType"], "timeout");
    assert_eq!(body["error"], "query timed out in expression evaluation");
}

#[test]
fn a_query_may_have_less_time() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let query = [("query", &*long()), ("time", "1e9"), ("timeout", "10ms")];
    assert_eq!(ask(&mut http, "query", &query).0, 503);
}

/// The number of the only query that runs, once there is one.
fn running(http: &mut Http) -> String {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, body) = ask(http, "status/active_queries", &[]);
        let list = body["data"].as_array().unwrap();
        if let [one] = &list[..] {
            assert_eq!(one["query"], long());
            return one["id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < patience, "{body}");
        std::thread::yield_now();
    }
}

fn none_runs(http: &mut Http) {
    let patience = Instant::now() + Duration::from_secs(30);
    while ask(http, "status/active_queries", &[]).1["data"] != json!([]) {
        assert!(Instant::now() < patience);
        std::thread::yield_now();
    }
}

#[test]
fn a_query_can_be_cancelled() {
    let server = filled(&[]);
    let (mut asks, mut other) = (Http::to(server.http()), Http::to(server.http()));
    let query = path("query", &[("query", &long()), ("time", "1e9")]);
    asks.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    let id = running(&mut other);
    let cancelled = other.post(&format!("/api/v1/status/active_queries/{id}/cancel"), b"");
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let answer = asks.answer();
    assert_eq!(answer.status, 499);
    assert!(
        answer
            .text()
            .contains("query was canceled in expression evaluation")
    );
    none_runs(&mut other);
    let again = other.post(&format!("/api/v1/status/active_queries/{id}/cancel"), b"");
    assert_eq!(again.status, 404, "{}", again.text());
    let (_, top) = ask(&mut other, "status/top_queries", &[("topN", "1")]);
    assert_eq!(top["data"]["topBySumDuration"][0]["query"], long());
    assert_eq!(top["data"]["topBySumDuration"][0]["count"], 1);
}

#[test]
fn a_query_ends_when_its_client_leaves() {
    let server = filled(&[]);
    let (mut asks, mut other) = (Http::to(server.http()), Http::to(server.http()));
    let query = path("query", &[("query", &long()), ("time", "1e9")]);
    asks.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    running(&mut other);
    drop(asks);
    none_runs(&mut other);
}

#[test]
fn who_may_not_kill_cancels_only_own_queries() {
    let server = filled(&[]);
    server.client().ask("ACL SETUSER some on >pw ~* +ts.mrange");
    let (mut asks, mut other) = (Http::to(server.http()), Http::to(server.http()));
    let query = path("query", &[("query", &long()), ("time", "1e9")]);
    asks.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    let id = running(&mut other);
    let cancel = format!("/api/v1/status/active_queries/{id}/cancel");
    let refused = other.post_with(&cancel, "Authorization: Token some:pw\r\n", b"");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(other.post(&cancel, b"").status, 200);
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
    let (status, text) = post(&mut http, &format!("room:1{}", "%2B1".repeat(1 << 18)));
    assert_eq!(status, 400);
    assert!(text.contains("levels of expressions"), "{text}");
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

/// A long answer comes in many pieces, which hold together what one query gives.
#[test]
fn a_long_answer_is_whole() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let lines: String = (0..300)
        .map(|at| format!("wide,host=h{at:03} v={at} 1000\n"))
        .collect();
    assert_eq!(
        http.post("/write?precision=ms", lines.as_bytes()).status,
        204
    );
    let range = [
        ("query", "wide_v"),
        ("start", "1"),
        ("end", "900"),
        ("step", "1"),
        ("lookback_delta", "1d"),
    ];
    let (status, body) = ask(&mut http, "query_range", &range);
    assert_eq!(status, 200);
    let series = body["data"]["result"].as_array().unwrap();
    assert_eq!(series.len(), 300);
    for coding in ["gzip", "zstd", "br, zstd;q=0.1, gzip;q=0"] {
        let path = path("query_range", &range);
        http.send(
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\n\r\n")
                .as_bytes(),
        );
        let answer = http.answer();
        let plain = match answer.field("content-encoding") {
            Some("gzip") => {
                let mut plain = Vec::new();
                GzDecoder::new(&answer.body[..])
                    .read_to_end(&mut plain)
                    .unwrap();
                plain
            }
            Some("zstd") => zstd::decode_all(&answer.body[..]).unwrap(),
            other => panic!("{coding}: {other:?}"),
        };
        assert_eq!(
            coding == "gzip",
            answer.field("content-encoding") == Some("gzip")
        );
        assert!(answer.body.len() * 4 < plain.len());
        let same: serde_json::Value = serde_json::from_slice(&plain).unwrap();
        assert!(same == body, "{coding}");
    }
    for (at, one) in series.iter().enumerate() {
        assert_eq!(one["metric"]["host"], format!("h{at:03}"));
        let values = one["values"].as_array().unwrap();
        assert_eq!(values.len(), 900);
        assert_eq!(values[899], json!([900, at.to_string()]));
    }
}
