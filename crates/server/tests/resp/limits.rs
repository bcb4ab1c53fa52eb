//! Clients that want too much: too many, too large, too slow, too silent.

use crate::harness::{Client, PATIENCE, Server, command, encoded, eventually, text};
use latewood_wire::resp::encode_command;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn maxclients_turns_the_next_one_away() {
    let server = Server::with(&["--wal", "off", "--maxclients", "2"]);
    let (mut first, mut second) = (server.client(), server.client());
    first.expect(&[("PING", "+PONG\r\n")]);
    second.expect(&[("PING", "+PONG\r\n")]);
    let mut third = server.client();
    assert_eq!(
        text(&third.rest()),
        "-ERR max number of clients reached\r\n"
    );
    assert_eq!(first.info("rejected_connections"), 1);
    first.expect(&[("CONFIG SET maxclients 3", "+OK\r\n")]);
    server.client().expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn connections_leave_the_database_descriptors_to_open_files_with() {
    let dir = tempfile::tempdir().unwrap();
    let serve = command(dir.path());
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 120 && exec \"$@\"", "sh"])
        .arg(serve.get_program())
        .args(serve.get_args())
        .args(["--listen", "127.0.0.1:0", "--threads", "2"])
        .env("LATEWOOD_HTTP", "127.0.0.1:0")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = Server::adopt(child, dir);
    let mut client = server.client();
    client.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    let mut open: Vec<_> = (0..200).map(|_| server.client()).collect();
    let last = open.last_mut().unwrap();
    assert_eq!(text(&last.rest()), "-ERR max number of clients reached\r\n");
    // Over HTTP, too: this one is closed without an answer.
    let mut http = Client::new(TcpStream::connect(server.http()).unwrap());
    assert_eq!(text(&http.rest()), "");
    client.expect(&[("SAVE", "+OK\r\n"), ("TS.ADD k 2 2", ":2\r\n")]);
    drop(open);
    while client.info("connected_clients") > 1 {
        std::thread::yield_now();
    }
    server.client().expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn thousands_of_half_open_connections_do_not_hurt() {
    let server = Server::with(&["--wal", "off", "--maxclients", "100000"]);
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let room = limit.maximum.unwrap_or(u64::MAX).saturating_sub(500);
    let connections = 10_000.min(usize::try_from(room).unwrap());
    assert!(connections > 100, "no room for connections");
    let mut client = server.client();
    let before = client.info("used_memory_rss");
    let mut half_open = Vec::new();
    for i in 0..connections {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // Silent ones, and ones in the middle of a command.
        if i % 2 == 0 {
            stream.write_all(b"*4\r\n$6\r\nTS.ADD\r\n$3\r\nab").unwrap();
        }
        half_open.push(stream);
    }
    while client.info("connected_clients") < connections as u64 + 1 {
        std::thread::yield_now();
    }
    client.expect(&[
        ("TS.ADD k 1 1", ":1\r\n"),
        ("TS.GET k", "*2\r\n:1\r\n+1\r\n"),
    ]);
    let grown = client.info("used_memory_rss").saturating_sub(before);
    let each = grown / connections as u64;
    assert!(each < 4096, "{each} bytes a connection");
    drop(half_open);
    while client.info("connected_clients") > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_never_reads_is_not_served_on() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.CREATE k", "+OK\r\n")]);
    let mut line = "TS.MADD".to_owned();
    for i in 0..10_000 {
        line += &format!(" k {i} 1");
    }
    client.ask(&line);
    let before = client.info("used_memory_rss");

    let mut silent = TcpStream::connect(server.address()).unwrap();
    silent
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let request = encoded("TS.RANGE k - +").repeat(1000);
    // Each reply is 160 KB: without a limit the server would hold gigabytes.
    let stuck = loop {
        if let Err(error) = silent.write_all(&request) {
            break error.kind();
        }
    };
    assert!(
        matches!(stuck, ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{stuck}"
    );
    let grown = client.info("used_memory_rss").saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for one silent client");
    client.expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn a_pipeline_may_be_sent_whole_before_its_first_reply_is_read() {
    const SAMPLES: usize = 1_000_000;
    let server = Server::start();
    let mut client = server.client();
    client.stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // What the first left unread is not held against the second.
    for begin in [0, SAMPLES] {
        let mut commands = Vec::new();
        for at in begin..begin + SAMPLES {
            encode_command(&mut commands, &["TS.ADD", "k", &at.to_string(), "1"]);
        }
        client.send(&commands);
        for at in begin..begin + SAMPLES {
            assert_eq!(text(&client.reply()), format!(":{at}\r\n"));
        }
    }
}

#[test]
fn a_client_that_reads_late_gets_everything() {
    let server = Server::start();
    let (mut client, mut admin) = (server.client(), server.client());
    client.ask("CLIENT SETNAME late");
    let message = "m".repeat(1000);
    let request = encoded(&format!("ECHO {message}"));
    let replies = 20_000;
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for _ in 0..replies {
            sender.write_all(&request).unwrap();
        }
    });
    // It is late once the server has replies that the socket does not take.
    eventually("a reply that does not fit", || {
        let clients = admin.ask("CLIENT LIST");
        let late = clients.lines().find(|line| line.contains(" name=late "));
        !late.unwrap().contains(" omem=0 ")
    });
    let expected = format!("$1000\r\n{message}\r\n");
    for _ in 0..replies {
        assert!(text(&client.reply()) == expected);
    }
    sending.join().unwrap();
}

#[test]
fn idle_connections_end_where_that_is_asked() {
    let server = Server::with(&["--wal", "off", "--timeout", "1"]);
    let mut idle = server.client();
    assert_eq!(idle.rest(), b"");
    assert!(server.client().info("timed_out_connections") >= 1);
}

#[test]
fn a_client_without_a_password_may_not_send_much() {
    let server = Server::with(&["--wal", "off", "--requirepass", "sesame"]);
    let mut client = server.client();
    client.send(b"*100\r\n");
    let expected = "-ERR Protocol error: unauthenticated multibulk length\r\n";
    assert_eq!(text(&client.rest()), expected);
    let mut client = server.client();
    client.send(b"*2\r\n$4\r\nECHO\r\n$100000\r\n");
    let expected = "-ERR Protocol error: unauthenticated bulk length\r\n";
    assert_eq!(text(&client.rest()), expected);
}

#[test]
fn series_over_max_series_are_refused_by_name_and_counted() {
    let server = Server::with(&["--wal", "off", "--max-series", "2"]);
    let mut client = server.client();
    client.expect(&[
        (
            "CONFIG GET max-series",
            "*2\r\n$10\r\nmax-series\r\n$1\r\n2\r\n",
        ),
        ("TS.ADD a 1 1 LABELS x y", ":1\r\n"),
        ("TS.ADD b 1 1 LABELS x y", ":1\r\n"),
        (
            "TS.ADD room:9 1 1",
            "-ERR TSDB: there are as many series as max-series allows, for key 'room:9'\r\n",
        ),
        (
            "TS.INCRBY room:9 1",
            "-ERR TSDB: there are as many series as max-series allows, for key 'room:9'\r\n",
        ),
        (
            "TS.CREATE room:9",
            "-ERR TSDB: there are as many series as max-series allows, for key 'room:9'\r\n",
        ),
        (
            "COPY a room:9",
            "-ERR TSDB: there are as many series as max-series allows, for key 'room:9'\r\n",
        ),
        ("EXISTS room:9", ":0\r\n"),
        ("TS.MADD a 2 2 b 2 2", "*2\r\n:2\r\n:2\r\n"),
        ("CONFIG SET max-series 3", "+OK\r\n"),
        ("TS.ADD room:9 1 1 LABELS x y", ":1\r\n"),
        (
            "TS.ADD d 1 1",
            "-ERR TSDB: there are as many series as max-series allows, for key 'd'\r\n",
        ),
        ("DEL a", ":1\r\n"),
        ("TS.ADD d 1 1 LABELS x y", ":1\r\n"),
    ]);
    assert_eq!(client.info("refused_series"), 5);
    let refused = client.ask("CONFIG SET max-series 4294967295");
    assert!(refused.contains("4294967295 is out of range: 0 (no limit of its own), or 1 to"));
}

#[test]
fn queries_and_labels_over_a_limit_are_refused_and_counted() {
    let server = Server::with(&["--wal", "off", "--max-query-series", "2"]);
    let mut client = server.client();
    for key in ["a", "b", "c"] {
        client.ask(&format!("TS.ADD {key} 1 1 LABELS x y name {key}"));
    }
    let refused = "-ERR TSDB: the filter matches 3 series, more than the 2 that \
                   max-query-series allows\r\n";
    client.expect(&[
        ("TS.MGET FILTER x=y", refused),
        ("TS.MRANGE - + FILTER x=y", refused),
        ("TS.MREVRANGE - + FILTER x=y", refused),
        ("TS.QUERYINDEX x=y", refused),
        ("TS.QUERYINDEX x=y name=a", "*1\r\n$1\r\na\r\n"),
    ]);
    assert_eq!(client.info("refused_queries"), 4);
    client.expect(&[("CONFIG SET max-query-series 0", "+OK\r\n")]);
    assert!(client.ask("TS.QUERYINDEX x=y").starts_with("*3\r\n"));

    let mut line = "TS.ADD many 1 1 LABELS".to_owned();
    (0..1025).for_each(|n| line.push_str(&format!(" n{n} v")));
    client.expect(&[
        (
            &line,
            "-ERR TSDB: more than 1024 labels, for key 'many'\r\n",
        ),
        ("EXISTS many", ":0\r\n"),
    ]);
    assert_eq!(client.info("refused_labels"), 1);
    let long = "k".repeat(65537);
    let refused = client.ask(&format!("TS.ADD {long} 1 1"));
    let shown = "k".repeat(64);
    assert_eq!(
        refused,
        format!("-ERR TSDB: a key is longer than 65536 bytes, for key '{shown}...'\r\n")
    );
    assert_eq!(client.info("refused_keys"), 1);
}
