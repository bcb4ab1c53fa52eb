//! RENAME, RENAMENX, EXPIRE and its family.

use crate::harness::{Server, eventually, text};

const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

#[test]
fn renames_move_a_series() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD a 1 1 LABELS x y", ":1\r\n"),
        ("RENAME a a", "+OK\r\n"),
        ("RENAMENX a a", ":0\r\n"),
        ("RENAME a b", "+OK\r\n"),
        ("TS.ADD a 2 2", ":2\r\n"),
        ("RENAMENX a b", ":0\r\n"),
        ("TS.GET b", "*2\r\n:1\r\n+1\r\n"),
        ("RENAME a b", "+OK\r\n"),
        ("EXISTS a b", ":1\r\n"),
        ("TS.GET b", "*2\r\n:2\r\n+2\r\n"),
        ("RENAMENX b c", ":1\r\n"),
        ("EXPIRE c 100", ":1\r\n"),
        ("RENAME c d", "+OK\r\n"),
        ("TTL d", ":100\r\n"),
    ]);
    client.expect_errors(&[
        (
            "RENAME",
            "ERR wrong number of arguments for 'rename' command",
        ),
        (
            "RENAMENX a",
            "ERR wrong number of arguments for 'renamenx' command",
        ),
        ("RENAME nokey b", "ERR no such key"),
        ("RENAMENX nokey b", "ERR no such key"),
        ("RENAME nokey nokey", "ERR no such key"),
    ]);
}

#[test]
fn expire_sets_keeps_and_takes_away_times() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD b 1 1", ":1\r\n"),
        ("EXPIRE b 100", ":1\r\n"),
        ("TTL b", ":100\r\n"),
        ("EXPIRE b 50 GT", ":0\r\n"),
        ("EXPIRE b 50 LT", ":1\r\n"),
        ("EXPIRE b 50 NX", ":0\r\n"),
        ("EXPIRE b 50 XX", ":1\r\n"),
        ("EXPIRE b 500 xx gt", ":1\r\n"),
        ("TTL b", ":500\r\n"),
        ("TS.ADD b 2 1", ":2\r\n"),
        ("TS.ALTER b RETENTION 5", "+OK\r\n"),
        ("TS.DEL b - +", ":2\r\n"),
        ("TTL b", ":500\r\n"),
        ("PERSIST b", ":1\r\n"),
        ("PERSIST b", ":0\r\n"),
        ("TTL b", ":-1\r\n"),
        ("PTTL b", ":-1\r\n"),
        ("EXPIRETIME b", ":-1\r\n"),
        ("PEXPIRETIME b", ":-1\r\n"),
        ("EXPIRE b 50 GT", ":0\r\n"),
        ("EXPIREAT b 9999999999 LT", ":1\r\n"),
        ("PEXPIRETIME b", ":9999999999000\r\n"),
        ("PEXPIREAT b 9223372036854775807", ":1\r\n"),
        ("EXPIRETIME b", ":9223372036854776\r\n"),
        ("PEXPIRETIME b", ":9223372036854775807\r\n"),
        ("TTL nokey", ":-2\r\n"),
        ("PTTL nokey", ":-2\r\n"),
        ("EXPIRETIME nokey", ":-2\r\n"),
        ("EXPIRE nokey 5", ":0\r\n"),
        ("PERSIST nokey", ":0\r\n"),
        ("PEXPIREAT b -9223372036854775808", ":1\r\n"),
        ("EXISTS b", ":0\r\n"),
        ("TS.ADD b 1 1", ":1\r\n"),
        ("EXPIRE b 0", ":1\r\n"),
        ("EXISTS b", ":0\r\n"),
    ]);
}

#[test]
fn expire_refuses_in_words() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.ADD b 1 1", ":1\r\n")]);
    let mixed = "ERR NX and XX, GT or LT options at the same time are not compatible";
    client.expect_errors(&[
        (
            "EXPIRE b",
            "ERR wrong number of arguments for 'expire' command",
        ),
        ("TTL a b", "ERR wrong number of arguments for 'ttl' command"),
        ("EXPIRE b x", NOT_AN_INTEGER),
        ("EXPIRE nokey x", NOT_AN_INTEGER),
        ("EXPIRE b 50 NX XX", mixed),
        ("EXPIRE b 50 NX GT", mixed),
        (
            "EXPIRE b 50 GT LT",
            "ERR GT and LT options at the same time are not compatible",
        ),
        ("EXPIRE b 50 foo", "ERR Unsupported option foo"),
        ("EXPIRE nokey x foo", "ERR Unsupported option foo"),
        (
            "EXPIRE b 9223372036854775807",
            "ERR invalid expire time in 'expire' command",
        ),
        (
            "PEXPIRE b 9223372036854775807",
            "ERR invalid expire time in 'pexpire' command",
        ),
        (
            "EXPIREAT b 9223372036854775807",
            "ERR invalid expire time in 'expireat' command",
        ),
        (
            "EXPIRE b -9223372036854775808",
            "ERR invalid expire time in 'expire' command",
        ),
    ]);
    client.expect(&[("TTL b", ":-1\r\n")]);
}

#[test]
fn a_series_goes_when_its_time_comes_and_stays_gone() {
    let server = Server::with(&[]);
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD k 1 1", ":1\r\n"),
        ("TS.ADD long 1 1", ":1\r\n"),
        ("PEXPIRE k 30", ":1\r\n"),
        ("EXPIRE long 1000", ":1\r\n"),
    ]);
    client.wait_until("EXISTS k", ":0\r\n");
    client.expect(&[
        ("DBSIZE", ":1\r\n"),
        ("KEYS *", "*1\r\n$4\r\nlong\r\n"),
        ("PTTL k", ":-2\r\n"),
        ("DEL k", ":0\r\n"),
    ]);
    eventually("an expired key", || client.info("expired_keys") == 1);
    let info = client.ask("INFO keyspace");
    let avg = info.split("db0:keys=1,expires=1,avg_ttl=").nth(1).unwrap();
    let avg: u64 = avg.trim().parse().unwrap();
    assert!((900_000..=1_000_000).contains(&avg), "{avg}");
    let server = Server::over(server.kill(), &[]);
    let mut client = server.client();
    client.expect(&[("EXISTS k", ":0\r\n"), ("DBSIZE", ":1\r\n")]);
    let ttl: u64 = client.ask("TTL long")[1..].trim().parse().unwrap();
    assert!((900..=1_000).contains(&ttl), "{ttl}");
}

#[test]
fn how_often_expired_series_are_looked_for_is_set() {
    let server = Server::with(&["--hz", "1"]);
    let mut client = server.client();
    client.expect(&[
        ("CONFIG GET hz", "*2\r\n$2\r\nhz\r\n$1\r\n1\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
        ("PEXPIRE k 1", ":1\r\n"),
        ("CONFIG SET hz 500", "+OK\r\n"),
    ]);
    for refused in ["0", "501", "-1", "often"] {
        let reply = client.ask(&format!("CONFIG SET hz {refused}"));
        assert!(reply.starts_with("-ERR CONFIG SET failed"), "{reply}");
    }
    eventually("an expired key", || client.info("expired_keys") == 1);
}

#[test]
fn a_series_ends_once_retention_leaves_nothing_of_it() {
    let server = Server::with(&["--retention", "1s", "--drop-empty-series", "none"]);
    let (mut client, mut listener) = (server.client(), server.client());
    client.expect(&[
        ("CONFIG SET notify-keyspace-events Ex", "+OK\r\n"),
        (
            "CONFIG GET drop-empty-series",
            "*2\r\n$17\r\ndrop-empty-series\r\n$4\r\nnone\r\n",
        ),
    ]);
    assert!(
        client
            .ask("CONFIG SET drop-empty-series some")
            .starts_with("-ERR")
    );
    listener.ask("SUBSCRIBE __keyevent@0__:expired");
    client.ask("TS.ADD k * 1");
    client.expect(&[("CONFIG SET drop-empty-series all", "+OK\r\n")]);
    client.wait_until("EXISTS k", ":0\r\n");
    let told = text(&listener.reply());
    assert!(told.ends_with("$1\r\nk\r\n"), "{told}");
    eventually("a series that ended", || client.info("series_ended") == 1);
    assert_eq!(client.info("expired_keys"), 0);
    client.ask("TS.ADD k * 2");
    client.expect(&[("EXISTS k", ":1\r\n")]);
}
