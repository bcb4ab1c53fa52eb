//! Telnet lines of OpenTSDB.

use super::{Lines, eventually, samples, serve, serve_with};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

#[test]
fn points_are_stored_and_errors_answered_in_opentsdbs_words() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put sys.cpu 1356998400 42.5 host=web01 cpu=0\r\n");
    sender.send("put sys.cpu 1356998399500 1 cpu=0 host=web01\nput sys.cpu x 1 host=a\n");
    assert_eq!(
        sender.answer(),
        "put: invalid value: Invalid character in timestamp x"
    );
    sender.send("put sys.cpu 1356998400 NaN host=a\nfly\nversion\n\n");
    let refused = sender.answer();
    assert_eq!(
        refused,
        "put: illegal argument: value is NaN or Infinite: NaN"
    );
    assert_eq!(sender.answer(), "unknown command: fly.  Try `help'.");
    assert!(sender.answer().starts_with("latewood "));
    sender.send("put sys.cpu 1356998401 43 host=web01 cpu=0\nstats\n");
    assert!(sender.answer().starts_with("tsd.rpc.received "));
    assert!(sender.finish().contains(" 1 type=timestamp\n"));

    let key = "sys.cpu{cpu=\"0\",host=\"web01\"}";
    let expected = ["1356998399500 1", "1356998400000 42.5", "1356998401000 43"];
    assert_eq!(samples(&server.server, key), expected);
    let found = server
        .server
        .client()
        .ask("TS.QUERYINDEX __name__=sys.cpu host=web01");
    assert!(found.contains(key), "{found}");
}

#[test]
fn a_browser_that_is_sent_here_writes_nothing() {
    let server = serve();
    let mut browser = Lines::connect(server.address_of("opentsdb"));
    browser.send("PO");
    browser.wait_until_read();
    browser.send("ST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\nput m 1 1 h=a\n");
    let said = browser.finish();
    assert!(said.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{said}");
    assert_eq!(server.server.client().ask("TS.QUERYINDEX h=a"), "*0\r\n");
}

#[test]
fn answers_come_in_the_order_of_the_lines() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send(
        "put a 1 x h=a\nversion\nput good 1 1 h=a\nstats\nfly\nput b 1 y h=a\nhelp\nput c 1 z h=a\nexit\n",
    );
    let said = sender.finish();
    let first_words = said.lines().map(|line| {
        let words: Vec<_> = line.split([' ', ':', '"']).collect();
        match words[0] {
            "put" => format!("put {}", words[words.len() - 2]),
            first => first.to_owned(),
        }
    });
    let mut first_words: Vec<_> = first_words.collect();
    first_words.dedup_by(|a, b| a.starts_with("tsd.") && b.starts_with("tsd."));
    let expected = [
        "put x",
        "latewood",
        "tsd.rpc.received",
        "unknown",
        "put y",
        "available",
        "put z",
    ];
    assert_eq!(first_words, expected, "{said}");
    // What stands before it is in the figures of `stats`.
    assert!(said.contains(" 1 type=put\n"), "{said}");
    assert!(said.contains(" 1 type=value\n"), "{said}");
}

#[test]
fn what_is_acknowledged_by_silence_survives_a_kill() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    for at in 0..1000 {
        sender.send(&format!("put late {} {at} n=1\n", 2_000_000 - at));
    }
    sender.send("version\n");
    sender.answer();
    let dir = server.server.kill();
    let server = super::Server::over(dir, &[]);
    assert_eq!(samples(&server, "late{n=\"1\"}").len(), 1000);
}

#[test]
fn a_series_that_was_deleted_or_renamed_is_created_anew() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    for (at, command) in ["DEL m{h=\"a\"}", "RENAME m{h=\"a\"} other", "FLUSHALL"]
        .iter()
        .enumerate()
    {
        sender.send(&format!("put m {} 1 h=a\nversion\n", at + 1));
        sender.answer();
        server.server.client().ask(command);
    }
    sender.send("put m 9 1 h=a\nversion\n");
    sender.answer();
    assert_eq!(samples(&server.server, "m{h=\"a\"}"), ["9000 1"]);
}

#[test]
fn times_in_the_wrong_unit_name_the_series() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put m 9999999999999 1 h=a\n");
    let refused = sender.answer();
    assert!(
        refused.starts_with("put: illegal argument: m{h=\"a\"} at 9999999999999"),
        "{refused}"
    );
}

#[test]
fn a_line_without_end_costs_itself_alone_and_a_silent_sender_its_connection() {
    let server = serve_with(&["--timeout", "1"]);
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    let long = "x".repeat(300_000);
    sender.send(&format!("put m 1 1 h={long}\nput m 2 2 h=a\n"));
    let refused = sender.answer();
    assert_eq!(
        refused,
        "put: illegal argument: the line is longer than 65536 bytes"
    );
    // The server closes what says nothing for a second.
    assert_eq!(sender.answer(), "");
    assert_eq!(samples(&server.server, "m{h=\"a\"}"), ["2000 2"]);
}

#[test]
fn the_default_users_keys_bound_what_may_be_written() {
    let server = serve_with(&["--user", "default on nopass ~open* +@all"]);
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put closed 1 1 h=a\nput open 1 1 h=a\n");
    let refused = sender.answer();
    assert!(
        refused.contains("no permission to write to closed{h=\"a\"}"),
        "{refused}"
    );
    sender.finish();
    assert_eq!(samples(&server.server, "open{h=\"a\"}"), ["1000 1"]);
}

#[test]
fn a_stop_ends_connections_and_keeps_what_came() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put m 1 1 h=a\nversion\n");
    sender.answer();
    let (ended_well, dir) = server.server.terminate();
    assert!(ended_well);
    assert_eq!(sender.answer(), "");
    let server = super::Server::over(dir, &[]);
    assert_eq!(samples(&server, "m{h=\"a\"}"), ["1000 1"]);
}

#[test]
fn a_stop_ends_a_connection_that_never_pauses() {
    let server = serve();
    let mut sender = TcpStream::connect(server.address_of("opentsdb")).unwrap();
    let mut read = BufReader::new(sender.try_clone().unwrap());
    let lines = "put m 1 1 h=a\n".repeat(10_000);
    let sent = std::thread::spawn(move || while sender.write_all(lines.as_bytes()).is_ok() {});
    // Until it is under way: what is wrong is answered.
    let mut other = Lines::connect(server.address_of("opentsdb"));
    other.send("version\n");
    other.answer();
    let exists = ["EXISTS", "m{h=\"a\"}"];
    eventually("lines", || {
        server.server.client().ask_words(&exists) == ":1\r\n"
    });
    let (ended_well, dir) = server.server.terminate();
    assert!(ended_well);
    sent.join().unwrap();
    // Reset or ended: it was not left open.
    let _ = read.read_to_string(&mut String::new());
    let server = super::Server::over(dir, &[]);
    assert_eq!(samples(&server, "m{h=\"a\"}"), ["1000 1"]);
}

#[test]
fn a_pause_of_writes_holds_lines_up() {
    let server = serve();
    let mut redis = server.server.client();
    redis.ask("CLIENT PAUSE 600000 WRITE");
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put m 1 1 h=a\nversion\n");
    sender.wait_until_read();
    for _ in 0..20 {
        redis.expect(&[("EXISTS m{h=\"a\"}", ":0\r\n")]);
    }
    redis.ask("CLIENT UNPAUSE");
    assert!(sender.answer().starts_with("latewood "));
    assert_eq!(samples(&server.server, "m{h=\"a\"}"), ["1000 1"]);
}

#[test]
fn a_line_that_is_cut_off_is_refused_and_not_taken_for_a_shorter_one() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("opentsdb"));
    sender.send("put m 1 1 h=a\nput m 2 2 h=ab");
    let refused = sender.finish();
    assert_eq!(refused, "put: the connection ended inside a line\n");
    assert_eq!(samples(&server.server, "m{h=\"a\"}"), ["1000 1"]);
}
