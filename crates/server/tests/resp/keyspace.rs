//! DEL, UNLINK, EXISTS, TYPE, KEYS, SCAN, DBSIZE, FLUSHALL, FLUSHDB.

use crate::harness::{Client, Server};
use std::collections::BTreeSet;

fn filled(server: &Server, series: usize) -> Client {
    let mut client = server.client();
    for i in 0..series {
        assert_eq!(client.ask(&format!("TS.CREATE key:{i}")), "+OK\r\n");
    }
    client
}

#[test]
fn keys_come_and_go() {
    let server = Server::start();
    let mut client = filled(&server, 5);
    client.expect(&[
        ("DBSIZE", ":5\r\n"),
        ("EXISTS key:0 key:0 nokey", ":2\r\n"),
        ("TYPE key:0", "+TSDB-TYPE\r\n"),
        ("TYPE nokey", "+none\r\n"),
        ("DEL key:0 key:0 nokey", ":1\r\n"),
        ("UNLINK key:1 key:2", ":2\r\n"),
        ("EXISTS key:0 key:1 key:2", ":0\r\n"),
        ("TS.ADD key:0 5 5", ":5\r\n"),
        ("TS.RANGE key:0 - +", "*1\r\n*2\r\n:5\r\n+5\r\n"),
        ("DBSIZE", ":3\r\n"),
        ("KEYS key:0", "*1\r\n$5\r\nkey:0\r\n"),
        ("KEYS nothing*", "*0\r\n"),
        ("FLUSHALL ASYNC", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("KEYS *", "*0\r\n"),
        ("TS.ADD key:0 1 1", ":1\r\n"),
        ("FLUSHDB SYNC", "+OK\r\n"),
        ("EXISTS key:0", ":0\r\n"),
    ]);
    client.expect_errors(&[
        ("DEL", "ERR wrong number of arguments for 'del' command"),
        (
            "EXISTS",
            "ERR wrong number of arguments for 'exists' command",
        ),
        (
            "TYPE a b",
            "ERR wrong number of arguments for 'type' command",
        ),
        ("KEYS", "ERR wrong number of arguments for 'keys' command"),
        (
            "DBSIZE x",
            "ERR wrong number of arguments for 'dbsize' command",
        ),
        ("FLUSHALL x", "ERR syntax error"),
        ("FLUSHDB ASYNC SYNC", "ERR syntax error"),
    ]);
}

/// All keys of a scan with these words, each once.
fn scan(client: &mut Client, options: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.ask(&format!("SCAN {cursor}{options}"));
        let mut lines = reply
            .split("\r\n")
            .filter(|line| !line.starts_with(['*', '$']));
        cursor = lines.next().unwrap().to_owned();
        for key in lines.filter(|line| !line.is_empty()) {
            assert!(found.insert(key.to_owned()), "{key} came twice");
        }
        if cursor == "0" {
            return found;
        }
    }
}

#[test]
fn a_scan_meets_every_key_once() {
    let server = Server::start();
    let mut client = filled(&server, 200);
    let all: BTreeSet<String> = (0..200).map(|i| format!("key:{i}")).collect();
    assert_eq!(scan(&mut client, ""), all);
    assert_eq!(scan(&mut client, " COUNT 7"), all);
    assert_eq!(scan(&mut client, " COUNT 1000 TYPE tsdb-type"), all);
    assert_eq!(scan(&mut client, " MATCH key:1?9").len(), 10);
    assert!(scan(&mut client, " TYPE string").is_empty());
    client.expect_errors(&[
        ("SCAN", "ERR wrong number of arguments for 'scan' command"),
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN -1", "ERR invalid cursor"),
        ("SCAN 99999999999999999999999", "ERR invalid cursor"),
        ("SCAN 0 x", "ERR syntax error"),
        ("SCAN 0 MATCH", "ERR syntax error"),
        (
            "SCAN 0 COUNT x",
            "ERR value is not an integer or out of range",
        ),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
    ]);
    // A cursor from nowhere ends the scan or goes on; it never fails.
    assert!(
        client
            .ask("SCAN 18446744073709551615")
            .starts_with("*2\r\n$1\r\n0\r\n")
    );
}
