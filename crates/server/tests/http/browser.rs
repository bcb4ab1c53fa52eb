//! Requests that a browser makes for pages of others, by HTTP and at the line ports.

use crate::http::client::Http;
use crate::http::server;

fn asked(address: &str, line: &str, head: &str, body: &str) -> (u16, String) {
    let mut http = Http::to(address);
    let length = body.len();
    http.send(
        format!("{line} HTTP/1.1\r\nContent-Length: {length}\r\n{head}\r\n{body}").as_bytes(),
    );
    let answer = http.answer();
    (answer.status, answer.text())
}

#[test]
fn a_page_of_others_writes_and_reads_nothing() {
    let server = server(&["--http-hosts", "metrics.example.org,other.example.org"]);
    let own = format!("Host: {}\r\n", server.http());
    let write = |head: &str| asked(server.http(), "POST /write", head, "m v=1 1");
    let read = |head: &str| asked(server.http(), "GET /api/v1/labels", head, "");
    assert_eq!(write(&own).0, 204);
    assert_eq!(write("Host: metrics.example.org\r\n").0, 204);
    assert_eq!(
        write(&format!("{own}Origin: http://{}\r\n", server.http())).0,
        204
    );
    let (status, text) = write(&format!("{own}Origin: https://evil.example\r\n"));
    assert_eq!(status, 403);
    assert!(
        text.contains("Origin \\\"https://evil.example\\\" is neither"),
        "{text}"
    );
    let (status, text) = read("Host: evil.example:8086\r\n");
    assert_eq!(status, 403);
    assert!(
        text.contains("is not one of http-hosts: add it there or set a password"),
        "{text}"
    );
    assert_eq!(read(&own).0, 200);
    server.wait_for_log("https://evil.example");
    server
        .client()
        .expect(&[("CONFIG SET requirepass sesame", "+OK\r\n")]);
    assert_eq!(read("Host: evil.example:8086\r\n").0, 401);
    let login = "Host: db.example.com\r\nAuthorization: Bearer sesame\r\n";
    assert_eq!(read(login).0, 200);
    assert_eq!(read(&format!("{login}Origin: null\r\n")).0, 403);
}
