//! OTLP over HTTP.

use crate::client::Http;
use crate::server;

const JSON: &str = "Content-Type: application/json\r\n";
const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

fn request(points: &str) -> String {
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
    let all = server
        .client()
        .ask("TS.RANGE temp{service.name=\"shop\"} - +");
    assert_eq!(
        all,
        "*2\r\n*2\r\n:1700000000000\r\n+21.5\r\n*2\r\n:1700000001000\r\n+22\r\n"
    );
}

#[test]
fn requests_that_are_none_are_answered_with_a_status() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    assert_eq!(http.post("/v1/metrics", b"{}").status, 415);
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
