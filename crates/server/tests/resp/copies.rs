//! COPY, DUMP, RESTORE, OBJECT, TOUCH, RANDOMKEY, SELECT, MOVE, SWAPDB.

use crate::harness::{Client, Server, text};
use latewood_wire::resp::encode_command;
use std::collections::BTreeSet;

const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const SAME: &str = "ERR source and destination objects are the same";
const OUT_OF_RANGE: &str = "ERR DB index is out of range";

#[test]
fn copies_are_whole_and_their_errors_those_of_redis() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD a 1 1 RETENTION 500 LABELS x y", ":1\r\n"),
        ("TS.ADD a 2 2", ":2\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("COPY a b", ":1\r\n"),
        ("TTL b", ":100\r\n"),
        (
            "TS.RANGE b - +",
            "*2\r\n*2\r\n:1\r\n+1\r\n*2\r\n:2\r\n+2\r\n",
        ),
        ("TS.QUERYINDEX x=y", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("TS.ADD a 3 3", ":3\r\n"),
        ("COPY a b DB 0", ":0\r\n"),
        ("TS.GET b", "*2\r\n:2\r\n+2\r\n"),
        ("COPY a b replace db 0", ":1\r\n"),
        ("TS.GET b", "*2\r\n:3\r\n+3\r\n"),
        ("COPY nokey b REPLACE", ":0\r\n"),
        ("EXISTS a b", ":2\r\n"),
    ]);
    client.expect_errors(&[
        ("COPY a", "ERR wrong number of arguments for 'copy' command"),
        ("COPY a a", SAME),
        ("COPY nokey nokey REPLACE", SAME),
        ("COPY a a DB x", NOT_AN_INTEGER),
        ("COPY a b FOO", "ERR syntax error"),
        ("COPY a b DB", "ERR syntax error"),
        ("COPY a b DB 1", OUT_OF_RANGE),
        ("COPY a b DB 99", OUT_OF_RANGE),
    ]);
}

#[test]
fn a_copy_has_no_rules() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10", "+OK\r\n"),
        ("TS.MADD s 1 1 s 2 2 s 11 5", "*3\r\n:1\r\n:2\r\n:11\r\n"),
        // What the rule owes is in the copy of its destination.
        ("COPY d d2", ":1\r\n"),
        ("TS.RANGE d2 - +", "*1\r\n*2\r\n:0\r\n+3\r\n"),
        ("COPY s s2", ":1\r\n"),
        ("TS.MADD s 21 1 s2 31 7", "*2\r\n:21\r\n:31\r\n"),
        (
            "TS.RANGE d - +",
            "*2\r\n*2\r\n:0\r\n+3\r\n*2\r\n:10\r\n+5\r\n",
        ),
        ("TS.RANGE d2 - +", "*1\r\n*2\r\n:0\r\n+3\r\n"),
    ]);
}

/// The payload of DUMP.
fn dump(client: &mut Client, key: &str) -> Vec<u8> {
    let mut command = Vec::new();
    encode_command(&mut command, &["DUMP", key]);
    client.send(&command);
    let reply = client.reply();
    let line = reply.iter().position(|&byte| byte == b'\n').unwrap();
    reply[line + 1..reply.len() - 2].to_vec()
}

/// Sends RESTORE of `payload`; the words after it are in `options`.
fn restore(client: &mut Client, key: &str, ttl: &str, payload: &[u8], options: &str) -> String {
    let options = options.split_whitespace().map(str::as_bytes);
    let words = [b"RESTORE", key.as_bytes(), ttl.as_bytes(), payload];
    let words: Vec<&[u8]> = words.into_iter().chain(options).collect();
    let mut command = Vec::new();
    encode_command(&mut command, &words);
    client.send(&command);
    text(&client.reply())
}

#[test]
fn a_restore_over_max_series_says_which_key_there_is_no_room_for() {
    let server = Server::with(&["--wal", "off", "--max-series", "1"]);
    let mut client = server.client();
    client.expect(&[("TS.ADD a 1 1.5", ":1\r\n")]);
    let payload = dump(&mut client, "a");
    assert_eq!(
        restore(&mut client, "room:9", "0", &payload, ""),
        "-ERR TSDB: there are as many series as max-series allows, for key 'room:9'\r\n"
    );
    client.expect(&[("EXISTS room:9", ":0\r\n")]);
}

#[test]
fn what_was_dumped_is_restored() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD a 1 1.5 LABELS x y", ":1\r\n"),
        ("TS.ADD a 1000 nan", ":1000\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("DUMP nokey", "$-1\r\n"),
        ("CONFIG SET notify-keyspace-events KEA", "+OK\r\n"),
    ]);
    let mut listener = server.client();
    listener.ask("PSUBSCRIBE __keyevent@0__:*");
    let payload = dump(&mut client, "a");
    let mut restored = |key, ttl, options| restore(&mut client, key, ttl, &payload, options);
    assert_eq!(restored("b", "0", ""), "+OK\r\n");
    let busy = "-BUSYKEY Target key name already exists.\r\n";
    assert_eq!(restored("b", "0", ""), busy);
    assert_eq!(restored("b", "100000", "REPLACE IDLETIME 5"), "+OK\r\n");
    assert_eq!(restored("b", "1", "REPLACE ABSTTL"), "+OK\r\n");
    assert_eq!(restored("b", "1", "ABSTTL"), "+OK\r\n");
    assert_eq!(restored("c", "99999999999999", "absttl freq 9"), "+OK\r\n");
    let overflow = "-ERR invalid expire time in 'restore' command\r\n";
    assert_eq!(restored("d", "9223372036854775807", ""), overflow);
    for event in ["restore", "restore", "del", "restore"] {
        let message = text(&listener.reply());
        assert!(message.contains(&format!(":{event}\r\n")), "{message}");
    }
    client.expect(&[
        ("EXISTS b d", ":0\r\n"),
        ("PEXPIRETIME c", ":99999999999999\r\n"),
        (
            "TS.RANGE c - +",
            "*2\r\n*2\r\n:1\r\n+1.5\r\n*2\r\n:1000\r\n+NaN\r\n",
        ),
        ("TS.QUERYINDEX x=y", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"),
    ]);
}

#[test]
fn payloads_and_options_are_checked_in_the_order_of_redis() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.ADD b 1 1", ":1\r\n")]);
    let payload = dump(&mut client, "b");
    let wrong = "ERR DUMP payload version or checksum are wrong";
    client.expect_errors(&[
        (
            "RESTORE c 0",
            "ERR wrong number of arguments for 'restore' command",
        ),
        ("RESTORE b x x", "BUSYKEY Target key name already exists."),
        ("RESTORE c x x", NOT_AN_INTEGER),
        (
            "RESTORE b -1 x REPLACE",
            "ERR Invalid TTL value, must be >= 0",
        ),
        ("RESTORE b 0 x BAD", "ERR syntax error"),
        ("RESTORE c 0 x IDLETIME", "ERR syntax error"),
        ("RESTORE c 0 x IDLETIME x", NOT_AN_INTEGER),
        (
            "RESTORE c 0 x IDLETIME -1",
            "ERR Invalid IDLETIME value, must be >= 0",
        ),
        (
            "RESTORE c 0 x FREQ 256",
            "ERR Invalid FREQ value, must be >= 0 and <= 255",
        ),
        ("RESTORE c 0 x FREQ 1 IDLETIME 1", "ERR syntax error"),
        ("RESTORE c 0 x IDLETIME 1 FREQ 1", "ERR syntax error"),
        ("RESTORE c 0 x IDLETIME 1 IDLETIME 2", wrong),
        ("RESTORE c 0 ''", wrong),
        ("RESTORE c 1 x ABSTTL", wrong),
    ]);
    let mut later = payload.clone();
    later[3] = 9;
    let sum_at = later.len() - 4;
    let sum = crc_fast::crc32_iscsi(&later[..sum_at]);
    later[sum_at..].copy_from_slice(&sum.to_le_bytes());
    let mut empty = b"LWD\x01".to_vec();
    let sum = crc_fast::crc32_iscsi(&empty);
    empty.extend_from_slice(&sum.to_le_bytes());
    for (payload, error) in [
        (&payload[1..], wrong),
        (
            b"\x00\x01v\x0c\x00Z~\xfar\xe3\x12\x14\x87",
            "ERR Bad data format: a value of type string is not a time series",
        ),
        (
            &later,
            "ERR the payload has version 9 of Latewood's DUMP format, this server reads 1",
        ),
        (&empty, "ERR Bad data format"),
    ] {
        let reply = restore(&mut client, "c", "0", payload, "");
        assert_eq!(reply, format!("-{error}\r\n"));
    }
    client.expect(&[("DBSIZE", ":1\r\n")]);
}

/// A payload that RedisTimeSeries 1.12 or 8.10 wrote; `*.rows` has what the series held.
fn of_redis(server: &str, name: &str) -> Vec<u8> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../rdb/tests/golden");
    std::fs::read(format!("{golden}/{server}.{name}")).unwrap()
}

#[test]
fn payloads_of_redis_are_taken_and_given() {
    let server = Server::start();
    let mut client = server.client();
    for redis in ["redis-7.4", "redis-8.2"] {
        let payload = of_redis(redis, "room-1.dump");
        assert_eq!(
            restore(&mut client, "r", "0", &payload, "REPLACE"),
            "+OK\r\n"
        );
        let info = client.ask("TS.INFO r");
        for part in [
            "duplicatePolicy\r\n+last\r\n",
            "chunkSize\r\n:128\r\n",
            "rules\r\n*0\r\n",
        ] {
            assert!(info.contains(part), "{part} in {info}");
        }
        let rows = String::from_utf8(of_redis(redis, "rows")).unwrap();
        let rows: Vec<&str> = rows
            .lines()
            .filter(|row| row.starts_with("room:1 "))
            .collect();
        let bits = client.ask("LATEWOOD RANGE r - +");
        assert!(bits.starts_with(&format!("*{}\r\n", rows.len())), "{bits}");
        let all = client.ask("TS.RANGE r - +");
        client.expect(&[("CONFIG SET dump-format redis", "+OK\r\n")]);
        let given = dump(&mut client, "r");
        assert!(
            given.starts_with(b"\x07\x81"),
            "the type of a module's value"
        );
        assert_eq!(restore(&mut client, "s", "0", &given, "REPLACE"), "+OK\r\n");
        assert_eq!(client.ask("TS.RANGE s - +"), all);
        assert_eq!(client.ask("TS.INFO s"), client.ask("TS.INFO r"));
        client.expect(&[("CONFIG SET dump-format latewood", "+OK\r\n")]);
        assert!(dump(&mut client, "s").starts_with(b"LWD"));
    }
    let plain = of_redis("redis-8.2", "plain.dump");
    assert_eq!(restore(&mut client, "p", "0", &plain, ""), "+OK\r\n");
    assert_eq!(
        restore(&mut client, "p", "0", &plain, ""),
        "-BUSYKEY Target key name already exists.\r\n"
    );
    client.expect(&[("TS.GET p", "*2\r\n:1900\r\n+23.75\r\n")]);
    let mut damaged = plain.clone();
    let sum_at = damaged.len() - 8;
    damaged[70] ^= 0xff;
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &damaged[..sum_at]);
    damaged[sum_at..].copy_from_slice(&sum.to_le_bytes());
    let refused = restore(&mut client, "q", "0", &damaged, "");
    assert!(refused.starts_with("-ERR Bad data format: "), "{refused}");
    client.expect(&[("EXISTS q", ":0\r\n")]);
}

#[test]
fn objects_are_looked_at() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("RANDOMKEY", "$-1\r\n"),
        ("TS.ADD a 1 1", ":1\r\n"),
        ("RANDOMKEY", "$1\r\na\r\n"),
        ("TOUCH a nokey a", ":2\r\n"),
        ("OBJECT ENCODING a", "$3\r\nraw\r\n"),
        ("OBJECT REFCOUNT a", ":1\r\n"),
        ("OBJECT ENCODING nokey", "$-1\r\n"),
        ("OBJECT REFCOUNT nokey", "$-1\r\n"),
        ("OBJECT FREQ nokey", "$-1\r\n"),
        ("OBJECT IDLETIME nokey", "$-1\r\n"),
    ]);
    assert!(client.ask("OBJECT HELP").contains("OBJECT <subcommand>"));
    assert!(client.ask("OBJECT FREQ a").starts_with("-ERR An LFU"));
    client.expect_errors(&[
        (
            "OBJECT IDLETIME a",
            "ERR the time of the last access to a series is not tracked by Latewood (docs/compatibility.md)",
        ),
        (
            "OBJECT ENCODING a b",
            "ERR wrong number of arguments for 'object|encoding' command",
        ),
        (
            "OBJECT FOO a",
            "ERR unknown subcommand 'FOO'. Try OBJECT HELP.",
        ),
    ]);
}

#[test]
fn every_key_comes_up_at_random() {
    let server = Server::start();
    let mut client = server.client();
    for n in 0..400 {
        client.ask(&format!("TS.CREATE k{n}"));
    }
    // Few left among many places: the walk finds them too.
    for n in 5..400 {
        client.ask(&format!("DEL k{n}"));
    }
    let found: BTreeSet<String> = (0..2000).map(|_| client.ask("RANDOMKEY")).collect();
    assert_eq!(found.len(), 5, "{found:?}");
}

#[test]
fn there_is_one_database() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("SELECT 0", "+OK\r\n"), ("SWAPDB 0 0", "+OK\r\n")]);
    let too_long = "ERR value is out of range, value must between -2147483648 and 2147483647";
    client.expect_errors(&[
        ("SELECT 1", OUT_OF_RANGE),
        ("SELECT -1", OUT_OF_RANGE),
        ("SELECT x", NOT_AN_INTEGER),
        ("SELECT 99999999999", too_long),
        ("MOVE k 0", SAME),
        ("MOVE k 1", OUT_OF_RANGE),
        ("MOVE k x", NOT_AN_INTEGER),
        ("MOVE k 99999999999", too_long),
        ("SWAPDB x 0", "ERR invalid first DB index"),
        ("SWAPDB 0 99999999999", "ERR invalid second DB index"),
        ("SWAPDB 0 1", OUT_OF_RANGE),
    ]);
}
