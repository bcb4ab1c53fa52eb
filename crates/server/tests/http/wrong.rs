//! Requests that go wrong at their first try, and what is said of them.

use crate::http::client::{Answer, Http};
use crate::http::server;

/// The sentence of a refusal.
pub(crate) fn said(answer: &Answer) -> String {
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    body["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_path_that_is_not_there_and_a_method_that_is_not_taken_are_named() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    for (path, wanted) in [
        ("/nowhere", "no such path: /nowhere"),
        ("/api/v1/labels/?a=b", "no such path: /api/v1/labels/"),
        (
            "/api/v1/queries",
            "no such path: /api/v1/queries; see /metrics, /api/v1/query",
        ),
        (
            "/v1/metrics/",
            "no such path: /v1/metrics/; see /metrics, /api/v1/query and /api/v1/export; to write, \
             /write, /api/v1/write, /v1/metrics, /api/put, /api/v1/import, /api/v1/import/csv and \
             /api/v1/import/prometheus",
        ),
    ] {
        let answer = http.get(path);
        assert_eq!(answer.status, 404);
        assert!(said(&answer).starts_with(wanted), "{}", answer.text());
    }
    let home = http.get("/");
    assert_eq!(home.status, 200);
    for said in ["Latewood", "/metrics", "/health", "docs"] {
        assert!(home.text().contains(said), "{}", home.text());
    }
    let long = http.get(&format!("/{}", "x".repeat(5_000)));
    assert!((404, true) == (long.status, said(&long).len() < 400));
    let answer = http.get("/write");
    assert_eq!((answer.status, answer.field("allow")), (405, Some("post")));
    assert_eq!(said(&answer), "/write does not support GET");
    let answer = http.get("/api/v1/label/%ff/values");
    assert_eq!(answer.status, 400);
    assert_eq!(said(&answer), "the label name is not UTF-8");
}

#[test]
fn a_body_that_is_not_what_it_says_is_told_so() {
    let server = server(&[]);
    let write = |head: &str, body: &[u8]| Http::to(server.http()).post_with("/write", head, body);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, b"m v=1 1\n").unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(write("Content-Encoding: GZIP\r\n", &gzip).status, 204);
    let framed = write(
        "Content-Encoding: snappy\r\n",
        b"\xff\x06\0\0sNaPpY\x01\x02\0\0ab",
    );
    assert_eq!(framed.status, 400);
    assert!(
        said(&framed).contains("framed snappy is not supported"),
        "{}",
        framed.text()
    );
    for (head, wanted) in [
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        ("Transfer-Encoding: chunked\r\n\r\n8\r\nm v=", "end of file"),
        ("Content-Length: 20\r\n\r\nm v=1 1\n", "end of file"),
    ] {
        let mut http = Http::to(server.http());
        http.send(format!("POST /write HTTP/1.1\r\nHost: x\r\n{head}").as_bytes());
        http.end();
        let answer = http.answer();
        assert_eq!(answer.status, 400);
        let said = said(&answer);
        assert!(
            said.starts_with("the body is incomplete") && said.contains(wanted),
            "{said}"
        );
    }
}

#[test]
fn a_statement_is_taken_from_the_path_or_from_a_form() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    assert_eq!(http.post("/query?q=CREATE+DATABASE+x", b"").status, 200);
    let head = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(
        http.post_with("/query", head, b"q=CREATE+DATABASE+x")
            .status,
        200
    );
    // Nobody is asked for a password here, so nobody may send much.
    let long = format!("x={}&q=CREATE+DATABASE+x", "y".repeat(70_000));
    let answer = http.post_with("/query", head, long.as_bytes());
    assert_eq!(answer.status, 413, "{}", answer.text());
    let mut http = Http::to(server.http());
    assert_eq!(http.get("/query?q=SHOW+DATABASES").status, 200);
    for (path, wanted) in [
        ("/query", "missing parameter q"),
        ("/query?q=SELECT+1", "InfluxQL is not supported"),
    ] {
        let answer = http.post(path, b"");
        assert_eq!(answer.status, 400);
        assert!(said(&answer).starts_with(wanted), "{}", answer.text());
    }
}
