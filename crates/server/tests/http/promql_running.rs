//! Queries in PromQL that run, wait, or are answered: how they end.

use crate::harness::{Server, eventually};
use crate::http::client::Http;
use crate::http::promql::{ask, filled, path};
use crate::http::server;
use serde_json::Value;

/// A query that takes many seconds and, for each of them, little memory, at any time.
pub(crate) const LONG: &str = "mad_over_time(mad_over_time(vector(1)[1h:1s])[30d:1s])";

#[test]
fn a_query_ends_when_its_time_is_over() {
    let server = filled(&["--promql-timeout", "100ms"]);
    let mut http = Http::to(server.http());
    let query = [("query", LONG), ("time", "1e9"), ("timeout", "1h")];
    let (status, body) = ask(&mut http, "query", &query);
    assert_eq!(status, 503, "{body}");
    assert_eq!(body["errorType"], "timeout");
    assert_eq!(body["error"], "query timed out in expression evaluation");
}

#[test]
fn a_query_may_have_less_time() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let query = [("query", LONG), ("time", "1e9"), ("timeout", "10ms")];
    assert_eq!(ask(&mut http, "query", &query).0, 503);
}

#[test]
fn a_query_that_was_quick_is_answered_all_the_same_when_it_is_not() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let count = [("query", "count(deviation_rank)"), ("time", "1")];
    // Of the same text, at a time without samples.
    let none = [("query", "count(deviation_rank)"), ("time", "1e9")];
    let wrong = [
        ("query", "deviation_rank + on () deviation_rank"),
        ("time", "1"),
    ];
    let mut written = 0;
    for series in [1, 3_000, 20_000] {
        let lines = (written..series).map(|at| format!("deviation_rank{{n=\"{at}\"}} {at} 1000\n"));
        let lines: String = lines.collect();
        let answer = http.post("/api/v1/import/prometheus", lines.as_bytes());
        assert_eq!(answer.status, 204, "{}", answer.text());
        written = series;
        for _ in 0..3 {
            let (status, body) = ask(&mut http, "query", &count);
            assert_eq!(status, 200, "{body}");
            assert_eq!(body["data"]["result"][0]["value"][1], series.to_string());
            let (status, body) = ask(&mut http, "query", &none);
            assert_eq!(
                (status, &body["data"]["result"]),
                (200, &Value::Array(Vec::new()))
            );
            let (status, body) = ask(&mut http, "query", &wrong);
            let is_refused = status == 422 && body["errorType"] == "execution";
            assert_eq!(is_refused, series > 1, "{body}");
        }
    }
    none_runs(&mut http);
}

/// The numbers of the queries that run, the oldest first, once there are `count`.
fn listed(http: &mut Http, count: usize) -> Vec<String> {
    let mut list = Vec::new();
    eventually(&format!("{count} queries"), || {
        list = active(http);
        list.len() == count
    });
    let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
    list.iter().map(id).collect()
}

/// The queries that run.
fn active(http: &mut Http) -> Vec<Value> {
    let (_, mut body) = ask(http, "status/active_queries", &[]);
    match body["data"].take() {
        Value::Array(list) => list,
        other => panic!("{other}"),
    }
}

/// The number of the only query that runs, once there is one.
fn running(http: &mut Http) -> String {
    listed(http, 1).remove(0)
}

fn none_runs(http: &mut Http) {
    listed(http, 0);
}

/// Asks a query that takes long, and waits for nothing.
fn ask_long(server: &Server) -> Http {
    let mut http = Http::to(server.http());
    let query = path("query", &[("query", LONG), ("time", "1e9")]);
    http.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    http
}

fn cancel(http: &mut Http, id: &str) -> u16 {
    let path = format!("/api/v1/status/active_queries/{id}/cancel");
    http.post(&path, b"").status
}

#[test]
fn a_query_can_be_cancelled() {
    let server = filled(&[]);
    let (mut asks, mut other) = (ask_long(&server), Http::to(server.http()));
    let id = running(&mut other);
    assert_eq!(cancel(&mut other, &id), 200);
    let answer = asks.answer();
    assert_eq!(answer.status, 499);
    // Before it runs, or while it does.
    assert!(answer.text().contains("query was canceled in "));
    none_runs(&mut other);
    assert_eq!(cancel(&mut other, &id), 404);
}

#[test]
fn a_query_ends_when_its_client_leaves() {
    let server = filled(&[]);
    let (asks, mut other) = (ask_long(&server), Http::to(server.http()));
    running(&mut other);
    drop(asks);
    none_runs(&mut other);
}

#[test]
fn who_may_not_kill_cancels_only_own_queries() {
    let server = filled(&[]);
    server.client().ask("ACL SETUSER some on >pw ~* +ts.mrange");
    let (_asks, mut other) = (ask_long(&server), Http::to(server.http()));
    let id = running(&mut other);
    let cancel = format!("/api/v1/status/active_queries/{id}/cancel");
    let refused = other.post_with(&cancel, "Authorization: Token some:pw\r\n", b"");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(other.post(&cancel, b"").status, 200);
}

#[test]
fn queries_are_listed_and_cancelled_where_they_take_all_places() {
    let server = filled(&["--promql-max-concurrency", "1"]);
    let mut other = Http::to(server.http());
    let mut asked = Vec::new();
    // One runs, 16 wait.
    for count in 1..=17 {
        asked.push(ask_long(&server));
        listed(&mut other, count);
    }
    let (status, body) = ask(&mut other, "query", &[("query", "1")]);
    assert_eq!(status, 503);
    assert_eq!(body["error"], "too many requests to query at a time");
    for id in listed(&mut other, 17) {
        assert_eq!(cancel(&mut other, &id), 200);
    }
    for mut http in asked {
        assert_eq!(http.answer().status, 499);
    }
    assert_eq!(ask(&mut other, "query", &[("query", "1")]).0, 200);
}

#[test]
fn a_query_that_waits_ends_as_one_that_runs() {
    let server = filled(&["--promql-max-concurrency", "1"]);
    let (_runs, mut other) = (ask_long(&server), Http::to(server.http()));
    let first = running(&mut other);
    let timeout = [("query", "1"), ("timeout", "50ms")];
    let (status, body) = ask(&mut Http::to(server.http()), "query", &timeout);
    assert_eq!(status, 503);
    assert_eq!(body["errorType"], "timeout");
    assert_eq!(body["error"], "query timed out in query execution");
    let mut waits = ask_long(&server);
    let id = listed(&mut other, 2).remove(1);
    assert_eq!(cancel(&mut other, &id), 200);
    let answer = waits.answer();
    assert_eq!(answer.status, 499);
    let text = answer.text();
    assert!(
        text.contains("query was canceled in query execution"),
        "{text}"
    );
    let leaves = ask_long(&server);
    listed(&mut other, 2);
    drop(leaves);
    assert_eq!(listed(&mut other, 1), [first]);
}

/// More than what waits on its way to a reader.
const MANY_SAMPLES: &str = "vector(1)[200d:10s]";

#[test]
fn a_query_can_be_cancelled_while_its_answer_is_read() {
    let server = filled(&[]);
    let (mut asks, mut other) = (Http::to(server.http()), Http::to(server.http()));
    let query = path("query", &[("query", MANY_SAMPLES), ("time", "1e9")]);
    asks.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    assert_eq!(asks.head().status, 200);
    let id = running(&mut other);
    assert_eq!(cancel(&mut other, &id), 200);
    none_runs(&mut other);
    let rest = asks.rest();
    assert!(!rest.ends_with(b"\r\n0\r\n\r\n"), "{} bytes", rest.len());
}

#[test]
fn a_slow_reader_gets_all_though_the_time_of_the_query_is_over() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let lines: String = (0..100)
        .map(|at| format!("wide,host=h{at:03} v={at} 1700000000000\n"))
        .collect();
    let written = http.post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204);
    let range = path(
        "query_range",
        &[
            ("query", "wide_v"),
            ("start", "1700000000"),
            ("end", "1700011000"),
            ("step", "1"),
            ("lookback_delta", "1d"),
            ("timeout", "4s"),
        ],
    );
    http.send(format!("GET {range} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes());
    assert_eq!(http.head().status, 200);
    // Most of it cannot be under way yet.
    let mut other = Http::to(server.http());
    eventually("the end of its time", || {
        active(&mut other)[0]["durationSeconds"].as_f64() > Some(4.1)
    });
    let rest = http.rest();
    assert!(rest.len() > 100 * 11_001 * 17, "{} bytes", rest.len());
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn unread_answers_of_one_user_keep_no_query_of_another_out() {
    let server = filled(&[]);
    server
        .client()
        .ask("ACL SETUSER hog on >pw %R~* +@read +ping");
    let query = path("query", &[("query", MANY_SAMPLES), ("time", "1e9")]);
    let ask = |head: &str| {
        let mut asks = Http::to(server.http());
        asks.send(format!("GET {query} HTTP/1.1\r\nHost: x\r\n{head}\r\n").as_bytes());
        asks
    };
    let mut unread = Vec::new();
    let refused = loop {
        assert!(unread.len() < 300, "no answer was refused");
        let mut asks = ask("Authorization: Token hog:pw\r\n");
        let head = asks.head();
        if head.status != 200 {
            break head;
        }
        unread.push(asks);
    };
    assert_eq!(refused.status, 503);
    let mut other = Http::to(server.http());
    assert_eq!(other.get("/api/v1/query?query=1").status, 200);
    assert_eq!(ask("").head().status, 200);
}
