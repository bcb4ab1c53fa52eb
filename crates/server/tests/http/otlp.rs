//! OTLP over HTTP.

use crate::http::client::Http;
use crate::http::protobuf::field;
use crate::http::server;
use std::io::Write;

const JSON: &str = "Content-Type: application/json\r\n";
const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

pub(crate) fn request(points: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"service.name",
        "value":{{"stringValue":"shop"}}}}]}},"scopeMetrics":[{{"metrics":[
        {{"name":"temp","gauge":{{"dataPoints":[{points}]}}}}]}}]}}]}}"#
    )
}

#[test]
fn data_points_are_stored_and_refused_ones_a_partial_success() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let good = request(r#"{"timeUnixNano":"1700000000000999999","asDouble":21.5}"#);
    let answer = http.post_with("/v1/metrics", JSON, good.as_bytes());
    assert_eq!((answer.status, &*answer.text()), (200, "{}"));
    let some = request(r#"{"asInt":"1"},{"timeUnixNano":"1700000001000000000","asInt":"22"}"#);
    let answer = http.post_with("/v1/metrics", JSON, some.as_bytes());
    let partial: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (
            answer.status,
            &partial["partialSuccess"]["rejectedDataPoints"]
        ),
        (200, &"1".into())
    );
    let all = server.client().ask("TS.RANGE temp{job=\"shop\"} - +");
    assert_eq!(
        all,
        "*2\r\n*2\r\n:1700000000000\r\n+21.5\r\n*2\r\n:1700000001000\r\n+22\r\n"
    );
}

#[test]
fn a_refused_target_info_is_a_warning() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let long = "x".repeat(300 << 10);
    let attribute =
        format!(r#"}},{{"key":"process.command_args","value":{{"stringValue":"{long}"}}}}]}}"#);
    let body = request(r#"{"timeUnixNano":"1700000000000000000","asDouble":21.5}"#);
    let body = body.replacen("}]}", &attribute, 1);
    let answer = http.post_with("/v1/metrics", JSON, body.as_bytes());
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let partial = &answer["partialSuccess"];
    assert_eq!(partial["rejectedDataPoints"], "0", "{answer}");
    let said = partial["errorMessage"].as_str().unwrap();
    assert!(said.starts_with("target_info: "), "{said}");
    let stored = server.client().ask("TS.GET temp{job=\"shop\"}");
    assert_eq!(stored, "*2\r\n:1700000000000\r\n+21.5\r\n");
}

#[test]
fn requests_that_are_none_are_answered_with_a_status() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let answer = http.post("/v1/metrics", b"{}");
    assert_eq!(answer.status, 415);
    let text = "{\"code\":3,\"message\":\"Content-Type must be";
    assert!(answer.text().starts_with(text), "{}", answer.text());
    let shouted = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(http.post_with("/v1/metrics", shouted, b"{}").status, 200);
    let answer = http.post_with("/v1/metrics", JSON, b"{");
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().starts_with("{\"code\":3,\"message\":"),
        "{}",
        answer.text()
    );
    let answer = http.post_with("/v1/metrics", PROTOBUF, b"\x0a\xff");
    assert_eq!((answer.status, answer.body.first()), (400, Some(&8)));
    let answer = http.post_with("/v1/metrics", PROTOBUF, b"");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[test]
fn a_metric_in_json_that_cannot_be_read_is_named_and_nothing_is_stored() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let good = r#"{"timeUnixNano":"1000000","asInt":"1"}"#;
    let bad = r#"{"timeUnixNano":"2000000","asInt":"two"}"#;
    let body = request(&format!("{good},{bad}"));
    let answer = http.post_with("/v1/metrics", JSON, body.as_bytes());
    assert_eq!(answer.status, 400, "{}", answer.text());
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let said = status["message"].as_str().unwrap();
    let place =
        "metric \"temp\": resourceMetrics[0].scopeMetrics[0].metrics[0].gauge.dataPoints[1].asInt";
    assert!(
        said.starts_with(&format!("{place}: invalid digit")),
        "{said}"
    );
    assert_eq!(server.client().ask("DBSIZE"), ":0\r\n");
}

#[test]
fn a_small_body_that_would_take_much_memory_is_refused() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    // Each of two bytes, and of some hundreds once it is read.
    let points = b"\x0a\x00".repeat(2 << 20);
    let metric = field(2, &field(10, &points));
    let protobuf = field(1, &field(2, &metric));
    let metrics = "{},".repeat(1 << 20);
    let json =
        format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metrics}{{}}]}}]}}]}}"#);
    for (head, body) in [(PROTOBUF, &*protobuf), (JSON, json.as_bytes())] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(body).unwrap();
        let head = format!("{head}Content-Encoding: gzip\r\n");
        let answer = http.post_with("/v1/metrics", &head, &gzip.finish().unwrap());
        assert_eq!(answer.status, 413, "{}", answer.text());
        assert!(
            answer.text().contains("send smaller requests"),
            "{}",
            answer.text()
        );
    }
    // What comes as many samples is taken, also where it comes at once.
    let points: Vec<_> = (1..=20_000)
        .map(|at| format!(r#"{{"timeUnixNano":"{at}000000","asInt":"1"}}"#))
        .collect();
    let answer = http.post_with("/v1/metrics", JSON, request(&points.join(",")).as_bytes());
    assert_eq!((answer.status, &*answer.text()), (200, "{}"));
    let newest = server.client().ask("TS.GET temp{job=\"shop\"}");
    assert_eq!(newest, "*2\r\n:20000\r\n+1\r\n");
}

#[test]
fn the_path_of_prometheus_is_served_and_names_are_translated_as_there() {
    let server = server(&[
        "--otlp-translation",
        "UnderscoreEscapingWithSuffixes",
        "--otlp-promote",
        "host.name",
    ]);
    let mut http = Http::to(server.http());
    let body = r#"{"resourceMetrics":[{"resource":{"attributes":[
        {"key":"service.name","value":{"stringValue":"shop"}},
        {"key":"service.instance.id","value":{"stringValue":"i-1"}},
        {"key":"host.name","value":{"stringValue":"a"}},
        {"key":"process.pid","value":{"intValue":"7"}}]},"scopeMetrics":[{"metrics":[
        {"name":"http.wait","unit":"s","sum":{"isMonotonic":true,"aggregationTemporality":2,
        "dataPoints":[{"timeUnixNano":"1700000000000000000","asDouble":"1.5"}]}}]}]}]}"#;
    let answer = http.post_with("/api/v1/otlp/v1/metrics", JSON, body.as_bytes());
    assert_eq!((answer.status, &*answer.text()), (200, "{}"));
    let mut redis = server.client();
    let wait = r#"http_wait_seconds_total{host_name="a",instance="i-1",job="shop"}"#;
    let info = r#"target_info{host_name="a",instance="i-1",job="shop",process_pid="7"}"#;
    for (key, value) in [(wait, "1.5"), (info, "1")] {
        let words = [&b"TS.GET"[..], key.as_bytes()];
        let expected = format!("*2\r\n:1700000000000\r\n+{value}\r\n");
        assert_eq!(redis.ask_words(&words), expected, "{key}");
    }
}

#[test]
fn an_empty_metric_is_a_warning_and_a_refused_one_gets_no_metadata() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let empty = request("");
    let answer = http.post_with("/v1/metrics", JSON, empty.as_bytes());
    let partial: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let expected = serde_json::json!({"partialSuccess": {"rejectedDataPoints": "0",
        "errorMessage": "the metric \"temp\" has no data points"}});
    assert_eq!((answer.status, partial), (200, expected));
    // Far ahead of the clock: the intake refuses it, after the decoder took it.
    let late = request(r#"{"timeUnixNano":"9000000000000000000","asInt":"1"}"#);
    let answer = http.post_with("/v1/metrics", JSON, late.as_bytes());
    let text = answer.text();
    assert!(text.contains("\"rejectedDataPoints\":\"1\""), "{text}");
    assert!(text.contains("; is it in nanoseconds?"), "{text}");
    let metadata = http.get("/api/v1/metadata").text();
    assert!(metadata.contains("\"data\":{}"), "{metadata}");
}
