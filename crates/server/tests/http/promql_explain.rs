//! Queries in PromQL that are explained.

use crate::http::client::Http;
use crate::http::promql::{ask, body, filled, path};
use crate::http::promql_running::LONG;
use serde_json::{Value, json};

/// What the parts of a query at second 8 do.
fn explained(http: &mut Http, query: &str) -> Value {
    let (status, mut body) = ask(http, "explain", &[("query", query), ("time", "8")]);
    assert_eq!(
        (status, &body["status"]),
        (200, &json!("success")),
        "{body}"
    );
    body["data"].take()
}

/// Some fields of each node.
fn fields(data: &Value, names: &[&str]) -> Value {
    let nodes = data["nodes"].as_array().unwrap().iter();
    nodes
        .map(|node| -> Value { names.iter().map(|name| node[name].clone()).collect() })
        .collect()
}

#[test]
fn an_instant_query_is_explained() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    server.client().ask("TS.ADD room:3 8000 1 LABELS host c");
    let query = "{__name__=~\"room.*\"} * on (host) rate(req_total[4s])";
    let data = explained(&mut http, query);
    assert_eq!(
        fields(
            &data,
            &[
                "kind",
                "text",
                "start",
                "end",
                "parent",
                "series",
                "samples",
                "samplesRead"
            ]
        ),
        json!([
            [
                "binary",
                "{__name__=~\"room.*\"} * on (host) rate(req_total[4s])",
                0,
                52,
                null,
                1,
                1,
                0
            ],
            ["selector", "{__name__=~\"room.*\"}", 0, 20, 0, 1, 1, 8],
            ["function", "rate(req_total[4s])", 33, 52, 0, 1, 1, 0],
            ["range_selector", "req_total[4s]", 38, 51, 2, 1, 4, 4],
        ])
    );
    let matching = &data["nodes"][0]["matching"];
    assert_eq!(
        (&matching["on"], &matching["labels"]),
        (&json!(true), &json!(["host"]))
    );
    assert_eq!(matching["pairs"], 1);
    let series = |metric: &str, host: &str| json!({"labels": {"__name__": metric, "host": host}, "labelsOmitted": 0});
    let alone = [series("room:2", "b"), series("room:3", "c")];
    let left = json!({"series": 3, "matched": 1, "unmatched": 2, "examples": alone});
    assert_eq!(matching["left"], left);
    let right = json!({"series": 1, "matched": 1, "unmatched": 0, "examples": []});
    assert_eq!(matching["right"], right);
    assert_eq!(matching["examples"][0]["left"], series("room:1", "a"));
    assert_eq!(data["resultType"], "vector");
    assert_eq!(
        (&data["start"], &data["end"], &data["steps"]),
        (&json!(8.0), &json!(8.0), &json!(1))
    );
    let stats = &data["stats"];
    assert_eq!(
        (&stats["seriesRead"], &stats["samplesRead"]),
        (&json!(4), &json!(12))
    );
    for (of, name) in [
        (&data["nodes"][1], "ownMs"),
        (&data["nodes"][0], "totalMs"),
        (&data, "evaluationMs"),
    ] {
        assert!(of[name].as_f64().unwrap() >= 0.0, "{name}");
    }
}

#[test]
fn a_range_query_is_explained() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let text = "sum(rate(room:1[3s]))";
    let form = format!("query={text}&start=2&end=8&step=2&limit=1");
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = http.post_with("/api/v1/explain", kind, form.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = body(&answer);
    let data = &body["data"];
    assert_eq!(
        fields(data, &["kind", "name", "steps", "series", "samples"]),
        json!([
            ["aggregation", "sum", 4, 1, 4],
            ["function", "rate", 4, 1, 4],
            ["range_selector", "room:1", 4, 1, 8],
        ])
    );
    assert_eq!(
        (
            &data["resultType"],
            &data["range"],
            &data["steps"],
            &data["step"]
        ),
        (&json!("matrix"), &json!(true), &json!(4), &json!(2.0))
    );
    // What it says, and about which bytes.
    let note = &data["annotations"][0];
    assert_eq!(
        (&note["level"], &note["start"], &note["end"]),
        (&json!("info"), &json!(9), &json!(19))
    );
    let info = body["infos"][0].as_str().unwrap();
    assert!(
        info.contains("might not be a counter") && info.ends_with("(1:10)"),
        "{info}"
    );
}

#[test]
fn late_samples_are_told_of() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let lines: String = (0..5000)
        .map(|at| format!("long v={at} {}\n", at * 2))
        .collect();
    assert_eq!(
        http.post("/write?precision=ms", lines.as_bytes()).status,
        204
    );
    let late = b"long v=1 11\nlong v=1 13\n";
    assert_eq!(http.post("/write?precision=ms", late).status, 204);
    let data = explained(&mut http, "count_over_time(long_v[1h])");
    assert_eq!(
        fields(&data, &["kind", "samples", "samplesRead"]),
        json!([["function", 1, 0], ["range_selector", 4003, 4003]])
    );
    // Until they are in the chunks.
    let merged = &data["nodes"][1]["lateSamplesMerged"];
    assert!(merged.as_u64().unwrap() <= 2, "{merged}");
    assert_eq!(*merged, data["stats"]["lateSamplesMerged"]);
}

#[test]
fn explaining_needs_the_rights_of_the_query() {
    let server = filled(&[]);
    let mut redis = server.client();
    redis.ask("ACL SETUSER some on >pw ~room:1 +ts.mrange +ping");
    redis.ask("ACL SETUSER none on >pw ~* -@all +ping");
    let mut http = Http::to(server.http());
    let mut get = |user: &str, query: &str| {
        let token = format!("Authorization: Token {user}:pw\r\n");
        let path = path("explain", &[("query", query), ("time", "8")]);
        http.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n").as_bytes());
        let answer = http.answer();
        (
            answer.status,
            body(&answer)["error"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    assert_eq!(get("some", "room:1"), (200, String::new()));
    let refused = "no permission to read all matching series".to_owned();
    assert_eq!(get("some", "room:1 + room:2"), (403, refused));
    let refused = "permission to run TS.MRANGE is required".to_owned();
    assert_eq!(get("none", "1"), (403, refused));
}

#[test]
fn errors_are_those_of_the_query() {
    let server = filled(&["--promql-max-samples", "1000"]);
    let mut http = Http::to(server.http());
    let long = ["max_over_time(vector(1)[100d:5m])"; 200].join(" + ");
    let step = [("start", "1"), ("end", "9"), ("step", "1")];
    let wide = [("start", "1"), ("end", "2000"), ("step", "1")];
    for (query, rest) in [
        ("sum(", &[("time", "8")][..]),
        ("1", &[("time", "x")]),
        ("1", &[("timeout", "-1s")]),
        ("{host=~\".+\"} + on () room:1", &[("time", "8")]),
        ("room:1[5m]", &step),
        ("\"text\"", &step),
        ("vector(1)", &wide),
        ("vector(1)", &[("start", "1"), ("end", "0"), ("step", "1")]),
        ("vector(1)", &[("start", "1"), ("end", "2"), ("step", "0")]),
        (&long, &[("time", "1e9"), ("timeout", "1us")]),
    ] {
        let parameters = [&[("query", query)], rest].concat();
        let endpoint = if rest[0].0 == "start" {
            "query_range"
        } else {
            "query"
        };
        let expected = ask(&mut http, endpoint, &parameters);
        assert!(expected.0 >= 400, "{query}: {expected:?}");
        assert_eq!(ask(&mut http, "explain", &parameters), expected, "{query}");
    }
    // One of its parameters makes it a range query, which needs all.
    let (status, body) = ask(&mut http, "explain", &[("query", "1"), ("step", "1")]);
    assert_eq!((status, &body["errorType"]), (400, &json!("bad_data")));
}

#[test]
fn hostile_queries_are_explained_or_refused() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let mut post = |query: &str| {
        let body = format!("time=8&query={}", query.replace('+', "%2B"));
        http.post_with("/api/v1/explain", form, body.as_bytes())
    };
    for (query, wrong) in [
        ("(".repeat(10_000), "more than 200 nested expressions"),
        (
            format!("1{}", "+1".repeat(1 << 16)),
            "levels of expressions",
        ),
        (
            " ".repeat((256 << 10) + 1),
            "more than 262144 bytes of text",
        ),
    ] {
        let answer = post(&query);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(wrong), "{}", answer.text());
    }
    // Two large trees at a time leave no memory taken: one after the other, it comes back.
    let tree = |levels: u32| (0..levels).fold("1".to_owned(), |sum, _| format!("({sum}+{sum})"));
    for _ in 0..3 {
        let answer = post(&tree(15));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body.len() < 4 << 20, "{}", answer.body.len());
        assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
        let data = body(&answer)["data"].take();
        assert_eq!(data["nodes"].as_array().unwrap().len(), 2000);
        assert_eq!(data["nodesOmitted"], (1 << 16) - 1 - 2000);
        assert_eq!(data["nodes"][0]["samples"], 1);
    }
    let answer = post(&format!("room:1{}", "+room:1".repeat(900)));
    assert_eq!(answer.status, 200);
    let data = body(&answer)["data"].take();
    assert_eq!(
        (&data["nodesOmitted"], &data["nodes"][900]["depth"]),
        (&json!(0), &json!(900))
    );
}

#[test]
fn an_explanation_is_listed_cancelled_and_counted() {
    let server = filled(&[]);
    let (mut asks, mut other) = (Http::to(server.http()), Http::to(server.http()));
    let explain = path("explain", &[("query", LONG), ("time", "1e9")]);
    asks.send(format!("GET {explain} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    let id = loop {
        let (_, body) = ask(&mut other, "status/active_queries", &[]);
        if let Some(id) = body["data"][0]["id"].as_str() {
            break id.to_owned();
        }
        std::thread::yield_now();
    };
    let cancel = format!("/api/v1/status/active_queries/{id}/cancel");
    assert_eq!(other.post(&cancel, b"").status, 200);
    let answer = asks.answer();
    assert_eq!(answer.status, 499, "{}", answer.text());
    assert_eq!(server.client().info("read_explain_requests"), 1);
}
