//! What survives a stop, and what a reply promises.

use crate::harness::{Server, command, encoded, text};

fn write_some(server: &Server) {
    let mut client = server.client();
    for i in 0..1000 {
        client.send(&encoded(&format!("TS.ADD k:{} {i} {i}", i % 7)));
    }
    for i in 0..1000 {
        assert_eq!(text(&client.reply()), format!(":{i}\r\n"));
    }
    client.expect(&[
        ("TS.CREATE empty LABELS a b", "+OK\r\n"),
        ("TS.DEL k:0 7 7", ":1\r\n"),
    ]);
}

fn check_all(server: &Server) {
    let mut client = server.client();
    client.expect(&[("DBSIZE", ":8\r\n")]);
    for series in 0..7 {
        let expected: Vec<String> = (0..1000)
            .filter(|i| i % 7 == series && *i != 7)
            .map(|i| format!("*2\r\n:{i}\r\n+{i}\r\n"))
            .collect();
        let reply = client.ask(&format!("TS.RANGE k:{series} - +"));
        assert_eq!(
            reply,
            format!("*{}\r\n{}", expected.len(), expected.concat())
        );
    }
    assert!(
        client
            .ask("TS.INFO empty")
            .contains("$1\r\na\r\n$1\r\nb\r\n")
    );
}

#[test]
fn a_graceful_stop_keeps_everything() {
    let server = Server::with(&[]);
    write_some(&server);
    let (ended_well, dir) = server.terminate();
    assert!(ended_well);
    check_all(&Server::over(dir, &[]));
}

#[test]
fn a_kill_keeps_what_was_acknowledged() {
    for durability in ["interval", "sync"] {
        let server = Server::with(&["--durability", durability]);
        write_some(&server);
        check_all(&Server::over(server.kill(), &[]));
    }
}

#[test]
fn a_connection_chooses_its_durability() {
    let server = Server::with(&["--durability", "none"]);
    let mut client = server.client();
    client.expect(&[
        ("CLIENT DURABILITY", "+none\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
    ]);
    let before = client.info("wal_syncs");
    client.expect(&[
        ("CLIENT DURABILITY SYNC", "+OK\r\n"),
        ("CLIENT DURABILITY", "+sync\r\n"),
        ("TS.ADD k 2 1", ":2\r\n"),
    ]);
    assert!(client.info("wal_syncs") > before);
    assert_eq!(
        client.info("wal_durable_position"),
        client.info("wal_position")
    );
    client.expect(&[
        (
            "CLIENT DURABILITY often",
            "-ERR durability must be sync, interval or none\r\n",
        ),
        ("RESET", "+RESET\r\n"),
        ("CLIENT DURABILITY", "+none\r\n"),
    ]);
}

#[test]
fn synced_and_unsynced_commands_mix_in_one_pipeline() {
    let server = Server::with(&[]);
    let mut client = server.client();
    let mut expected = String::new();
    for line in [
        "CLIENT DURABILITY sync",
        "TS.ADD k 1 1",
        "TS.GET k",
        "CLIENT DURABILITY none",
        "TS.MADD k 2 2 x 1 1",
        "DEL k",
    ] {
        client.send(&encoded(line));
    }
    expected.push_str("+OK\r\n:1\r\n*2\r\n:1\r\n+1\r\n+OK\r\n");
    expected.push_str("*2\r\n:2\r\n-ERR TSDB: the key is not a TSDB key\r\n:1\r\n");
    let replies: Vec<u8> = (0..6).flat_map(|_| client.reply()).collect();
    assert_eq!(text(&replies), expected);
}

#[test]
fn a_taken_directory_is_refused_in_words() {
    let server = Server::start();
    let output = command(server.dir())
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let refusal = text(&output.stderr);
    assert!(!output.status.success());
    assert!(refusal.contains("cannot open"), "{refusal}");
    server.client().expect(&[("PING", "+PONG\r\n")]);
}
