//! `/api/put` of OpenTSDB.

use crate::http::client::Http;
use crate::http::server;
use std::io::Write;

#[test]
fn points_are_stored_and_bad_ones_told_of_when_asked() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let good = br#"{"metric":"sys.cpu","timestamp":1346846400,"value":18,"tags":{"host":"w"}}"#;
    assert_eq!(http.post("/api/put", good).status, 204);
    let some =
        br#"[{"metric":"sys.cpu","timestamp":1346846401500,"value":"19.5","tags":{"host":"w"}},
        {"metric":"sys.cpu","timestamp":1,"value":"x","tags":{"host":"w"}}]"#;
    let answer = http.post("/api/put", some);
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("One or more data points had errors"),
        "{}",
        answer.text()
    );
    let answer = http.post("/api/put?summary", some);
    assert_eq!(
        (answer.status, &*answer.text()),
        (400, "{\"failed\":1,\"success\":1}\n")
    );
    let answer = http.post("/api/put?details&sync", some);
    let details: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        details["errors"][0]["error"],
        "Unable to parse value to a number"
    );
    assert_eq!(details["errors"][0]["datapoint"]["value"], "x");
    let answer = http.post("/api/put?summary", good);
    assert_eq!(
        (answer.status, &*answer.text()),
        (200, "{\"failed\":0,\"success\":1}\n")
    );
    assert_eq!(
        redis.ask("TS.RANGE sys.cpu{host=\"w\"} - +"),
        "*2\r\n*2\r\n:1346846400000\r\n+18\r\n*2\r\n:1346846401500\r\n+19.5\r\n"
    );
}

#[test]
fn bodies_that_are_none_and_compressed_ones() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    for (body, message) in [("[]", "No datapoints found"), ("{", "Unable to parse")] {
        let answer = http.post("/api/put?details", body.as_bytes());
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(br#"[{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}]"#)
        .unwrap();
    let body = gzip.finish().unwrap();
    let answer = http.post_with("/api/put", "Content-Encoding: gzip\r\n", &body);
    assert_eq!(answer.status, 204);
    let last = server.client().ask("TS.GET m{a=\"b\"}");
    assert_eq!(last, "*2\r\n:1000\r\n+1\r\n");
}

#[test]
fn a_small_body_that_would_take_much_memory_is_refused() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let body = format!("[{}1]", "1,".repeat(16 << 20));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let head = "Content-Encoding: gzip\r\n";
    let answer = http.post_with("/api/put", head, &gzip.finish().unwrap());
    assert_eq!(answer.status, 413, "{}", answer.text());
}

#[test]
fn a_refused_point_is_told_as_it_was_sent() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let point = r#"{"value": 1.50, "metric":"m", "more":[1e0,{"x":[ ]}]}"#;
    let answer = http.post("/api/put?details", point.as_bytes());
    let expected = format!(
        r#"{{"errors":[{{"datapoint":{point},"error":"Invalid timestamp"}}],"failed":1,"success":0}}"#
    );
    assert_eq!(
        (answer.status, answer.text()),
        (400, format!("{expected}\n"))
    );
}
