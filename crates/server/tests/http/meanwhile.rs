//! What the operator does while a body is on its way holds for it.

use crate::harness::{Client, Server};
use crate::http::client::{Answer, Http};
use crate::http::server;

/// Every way to write a sample of `m_v` or `m`, or of a series whose key begins
/// so: the path, lines of the head, and the body.
fn writes() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let otlp = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":
        {"dataPoints":[{"timeUnixNano":"1000000","asDouble":1}]}}]}]}]}"#;
    let json = "Content-Type: application/json\r\n";
    vec![
        ("/write", "", b"m v=1 1000000\n".to_vec()),
        ("/api/v2/write", "", b"m v=1 1000000\n".to_vec()),
        ("/api/v3/write_lp", "", b"m v=1 1\n".to_vec()),
        (
            "/api/put",
            json,
            br#"{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}"#.to_vec(),
        ),
        ("/api/v1/import/prometheus", "", b"m 1 1\n".to_vec()),
        (
            "/api/v1/import/csv?format=1:metric:m,2:time:unix_ms",
            "",
            b"1,1\n".to_vec(),
        ),
        (
            "/api/v1/import",
            "",
            br#"{"metric":{"__name__":"m"},"values":[1],"timestamps":[1]}"#.to_vec(),
        ),
        (
            "/api/v1/write",
            "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n",
            snap::raw::Encoder::new()
                .compress_vec(REMOTE_WRITE)
                .unwrap(),
        ),
        ("/v1/metrics", json, otlp.to_vec()),
    ]
}

/// One series `m` with one sample, 1 at 1.
const REMOTE_WRITE: &[u8] =
    b"\x0a\x1c\x0a\x0d\x0a\x08__name__\x12\x01m\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01";

/// Sends a head, does `meanwhile` once the server waits for the body, and sends
/// the body.
fn send_around(
    server: &Server,
    request: &(&str, &str, Vec<u8>),
    meanwhile: impl FnOnce(),
) -> Answer {
    let (path, head, body) = request;
    let mut http = Http::to(server.http());
    let length = body.len();
    http.send(
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ann:secret\r\n{head}\
             Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(http.head().status, 100, "{path}");
    meanwhile();
    http.send(body);
    http.answer()
}

fn with_ann() -> (Server, Client) {
    let server = server(&["--requirepass", "sesame"]);
    let mut client = server.client();
    client.ask("AUTH sesame");
    set_ann(&mut client);
    (server, client)
}

fn set_ann(client: &mut Client) {
    assert_eq!(client.ask("ACL SETUSER ann on >secret +@all ~*"), "+OK\r\n");
}

#[test]
fn a_body_that_ends_in_a_pause_is_not_written() {
    let (server, mut client) = with_ann();
    for request in &writes() {
        let answer = send_around(&server, request, || {
            assert_eq!(client.ask("CLIENT PAUSE 600000 WRITE"), "+OK\r\n");
        });
        assert_eq!(answer.status, 503, "{}: {}", request.0, answer.text());
        assert!(answer.field("retry-after").is_some());
        assert_eq!(client.ask("DBSIZE"), ":0\r\n", "{}", request.0);
        client.ask("CLIENT UNPAUSE");
        let answer = send_around(&server, request, || {});
        assert!(answer.status < 300, "{}: {}", request.0, answer.text());
        assert_eq!(client.ask("DBSIZE"), ":1\r\n", "{}", request.0);
        client.ask("FLUSHALL");
    }
}

#[test]
fn a_body_of_a_user_who_is_gone_or_may_not_write_any_more_is_not_written() {
    let (server, mut client) = with_ann();
    for request in &writes() {
        for (rule, statuses) in [
            ("ACL DELUSER ann", &[401][..]),
            ("ACL SETUSER ann resetpass >other", &[401]),
            // As an answer in which each protocol says what it refused.
            ("ACL SETUSER ann -ts.add", &[200, 400, 403]),
        ] {
            let answer = send_around(&server, request, || {
                client.ask(rule);
            });
            let text = format!("{} after {rule}: {}", request.0, answer.text());
            assert!(statuses.contains(&answer.status), "{text}");
            assert_eq!(client.ask("DBSIZE"), ":0\r\n", "{text}");
            client.ask("ACL DELUSER ann");
            set_ann(&mut client);
        }
    }
}

#[test]
fn a_reader_who_is_gone_when_the_form_has_come_reads_nothing() {
    let (server, mut client) = with_ann();
    client.ask("TS.ADD m 1 1");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let request = ("/api/v1/export", form, b"match[]=m".to_vec());
    assert_eq!(send_around(&server, &request, || {}).status, 200);
    let answer = send_around(&server, &request, || {
        client.ask("ACL DELUSER ann");
    });
    assert_eq!(answer.status, 401);
}
