//! Bytes that are no well-formed command, and inline commands.

use crate::harness::{Server, encoded, text};
use std::net::Shutdown;

#[test]
fn inline_commands_and_odd_line_ends() {
    let server = Server::start();
    for (bytes, expected) in [
        (&b"PING\r\n"[..], "+PONG\r\n"),
        (b"\r\n\nPING\n", "+PONG\r\n"),
        (b"PING 'a b' \r\n", "$3\r\na b\r\n"),
        (b"PING \"a\\x41\\n\"\r\n", "$3\r\naA\n\r\n"),
        (b"*0\r\nPING\r\n", "+PONG\r\n"),
        (b"*-1\r\nPING\r\n", "+PONG\r\n"),
        (b"TS.ADD k 1 1\r\nTS.GET k\r\n", ":1\r\n*2\r\n:1\r\n+1\r\n"),
    ] {
        let mut client = server.client();
        client.send(bytes);
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(text(&client.rest()), expected, "{:?}", text(bytes));
    }
}

#[test]
fn broken_bytes_get_an_error_and_the_end() {
    let server = Server::start();
    for (bytes, expected) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*2000000000\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\n:4\r\n", "expected '$', got ':'"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$2000000000\r\n", "invalid bulk length"),
        (b"PING \"a\r\n", "unbalanced quotes in request"),
        (&b"a".repeat(70_000), "too big inline request"),
    ] {
        let mut client = server.client();
        client.send(&encoded("PING"));
        client.send(bytes);
        let expected = format!("+PONG\r\n-ERR Protocol error: {expected}\r\n");
        assert_eq!(text(&client.rest()), expected);
    }
    server.client().expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn http_is_closed_without_an_answer_and_logged() {
    let server = Server::start();
    for request in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\nTS.ADD evil 1 1\r\n",
        "Host: localhost\r\nTS.ADD evil 1 1\r\n",
    ] {
        let mut client = server.client();
        client.send(request.as_bytes());
        assert_eq!(text(&client.rest()), "");
        server.wait_for_log("spoke HTTP");
    }
    server.client().expect(&[("EXISTS evil", ":0\r\n")]);
}

#[test]
fn a_large_argument_arrives_whole_and_leaves_no_trace() {
    let server = Server::start();
    let mut client = server.client();
    let large = "x".repeat(10_000_000);
    let reply = client.ask_words(&["ECHO", &large]);
    assert!(reply == format!("$10000000\r\n{large}\r\n"));
    client.expect(&[("PING", "+PONG\r\n")]);
}
