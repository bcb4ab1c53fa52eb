//! TS.ALTER, TS.INCRBY, TS.DECRBY.

use crate::harness::Server;

const CHUNK_SIZE: &str =
    "ERR TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]";
const BAD_NUMBER: &str = "ERR TSDB: invalid increase/decrease value";
const OLDER: &str =
    "TSDB: timestamp must be equal to or higher than the maximum existing timestamp";

#[test]
fn alter_checks_its_words_before_the_key() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "TS.ALTER",
            "ERR wrong number of arguments for 'ts.alter' command",
        ),
        ("TS.ALTER k", "ERR TSDB: the key does not exist"),
        (
            "TS.ALTER k RETENTION x",
            "ERR TSDB: Couldn't parse RETENTION",
        ),
    ]);
    client.expect(&[("TS.CREATE k RETENTION 5", "+OK\r\n")]);
    client.expect_errors(&[
        ("TS.ALTER k RETENTION -1", "TSDB: Couldn't parse RETENTION"),
        ("TS.ALTER k CHUNK_SIZE 47", CHUNK_SIZE),
        (
            "TS.ALTER k ENCODING zip",
            "ERR TSDB: unknown ENCODING parameter",
        ),
        (
            "TS.ALTER k ENCODING",
            "ERR wrong number of arguments for 'ts.alter' command",
        ),
        (
            "TS.ALTER k DUPLICATE_POLICY X",
            "ERR TSDB: Unknown DUPLICATE_POLICY",
        ),
        (
            "TS.ALTER k RETENTION 7 LABELS a (",
            "ERR TSDB: Couldn't parse LABELS",
        ),
        (
            "TS.ALTER k RETENTION 7 IGNORE 1 x",
            "ERR TSDB: Couldn't parse IGNORE",
        ),
    ]);
    assert!(client.ask("TS.INFO k").contains("retentionTime\r\n:5\r\n"));
}

#[test]
fn alter_changes_what_is_named_and_leaves_the_rest() {
    let server = Server::start();
    let mut client = server.client();
    let mut info_after = |line: &str| {
        assert_eq!(client.ask(line), "+OK\r\n", "{line}");
        client.ask("TS.INFO k")
    };
    let created = info_after("TS.CREATE k RETENTION 5 LABELS a b c d");
    assert_eq!(info_after("TS.ALTER k"), created);
    assert_eq!(info_after("TS.ALTER k foo bar"), created);
    assert_eq!(info_after("TS.ALTER k ENCODING UNCOMPRESSED"), created);
    let info = info_after("TS.ALTER k RETENTION 100 CHUNK_SIZE 128 IGNORE 5 5.5");
    for part in [
        "retentionTime\r\n:100\r\n",
        "chunkSize\r\n:128\r\n",
        "duplicatePolicy\r\n+block\r\n",
        "*2\r\n+a\r\n+b\r\n",
        "ignoreMaxTimeDiff\r\n:5\r\n",
    ] {
        let bulk = part.replace("+a\r\n+b", "$1\r\na\r\n$1\r\nb");
        assert!(info.contains(part) || info.contains(&bulk), "{part} {info}");
    }
    let info = info_after("TS.ALTER k LABELS a b DUPLICATE_POLICY MIN");
    assert!(info.contains("min") && info.contains("DUPLICATE_POLICY"));
    let info = info_after("TS.ALTER k LABELS");
    assert!(info.contains("min") && info.contains("labels\r\n*0\r\n"));
}

#[test]
fn increments_add_to_the_newest_value() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.INCRBY k 5 TIMESTAMP 10 LABELS a b", ":10\r\n"),
        ("TS.INCRBY k 5 TIMESTAMP 10", ":10\r\n"),
        ("TS.DECRBY k .5 LABELS TIMESTAMP 20", ":20\r\n"),
        ("TS.INCRBY k +1 TIMESTAMP 20 TIMESTAMP x", ":20\r\n"),
        (
            "TS.RANGE k - +",
            "*2\r\n*2\r\n:10\r\n+10\r\n*2\r\n:20\r\n+10.5\r\n",
        ),
        ("TS.INCRBY k 1 TIMESTAMP 19", &format!("-{OLDER}\r\n")),
        ("TS.DEL k - +", ":2\r\n"),
        ("TS.DECRBY k 3 TIMESTAMP 2", ":2\r\n"),
        ("TS.GET k", "*2\r\n:2\r\n+-3\r\n"),
        ("TS.ADD nan 1 nan", ":1\r\n"),
        (
            "TS.INCRBY nan 1 TIMESTAMP 2",
            "-ERR TSDB: cannot increment/decrement NaN value\r\n",
        ),
        // RedisTimeSeries overwrites under any policy.
        ("TS.INCRBY b 1 TIMESTAMP 5 DUPLICATE_POLICY BLOCK", ":5\r\n"),
        ("TS.INCRBY b 1 TIMESTAMP 5", ":5\r\n"),
        ("TS.GET b", "*2\r\n:5\r\n+2\r\n"),
        ("TS.INCRBY TIMESTAMP 5 TIMESTAMP 3", ":3\r\n"),
        ("TS.INCRBY i inf TIMESTAMP 3", ":3\r\n"),
        ("TS.CREATE r RETENTION 100", "+OK\r\n"),
        ("TS.INCRBY r 10 TIMESTAMP 1000 RETENTION x", ":1000\r\n"),
        ("TS.INCRBY r 10 TIMESTAMP 5000", ":5000\r\n"),
        ("TS.RANGE r - +", "*1\r\n*2\r\n:5000\r\n+20\r\n"),
    ]);
}

#[test]
fn increments_by_the_clock_and_refused_ones() {
    let server = Server::start();
    let mut client = server.client();
    let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    for line in ["TS.INCRBY k 1", "TS.DECRBY k 1 TIMESTAMP *"] {
        let reply = client.ask(line);
        let timestamp: u128 = reply.trim_start_matches(':').trim().parse().unwrap();
        let after = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        assert!((before..=after).contains(&timestamp), "{timestamp}");
    }
    client.expect_errors(&[
        (
            "TS.INCRBY n",
            "ERR wrong number of arguments for 'ts.incrby' command",
        ),
        (
            "TS.DECRBY n",
            "ERR wrong number of arguments for 'ts.decrby' command",
        ),
        ("TS.INCRBY n x", BAD_NUMBER),
        ("TS.INCRBY n nan", BAD_NUMBER),
        ("TS.INCRBY n 1e400", BAD_NUMBER),
        ("TS.INCRBY n 1abc", BAD_NUMBER),
        ("TS.INCRBY n ''", BAD_NUMBER),
        (
            "TS.INCRBY n x RETENTION x TIMESTAMP x",
            "ERR TSDB: invalid increase/decrease value",
        ),
        ("TS.INCRBY n x TIMESTAMP x", BAD_NUMBER),
        (
            "TS.DECRBY n RETENTION TIMESTAMP 57",
            "ERR TSDB: invalid increase/decrease value",
        ),
        ("TS.INCRBY n RETENTION 5", BAD_NUMBER),
        ("TS.INCRBY n UNCOMPRESSED", BAD_NUMBER),
        (
            "TS.INCRBY n LABELS a (b)",
            "ERR TSDB: invalid increase/decrease value",
        ),
        ("TS.INCRBY n 1 TIMESTAMP x", "ERR TSDB: invalid timestamp"),
        ("TS.INCRBY n 1 TIMESTAMP", "ERR TSDB: invalid timestamp"),
        (
            "TS.INCRBY n 1 TIMESTAMP -1",
            "ERR TSDB: invalid timestamp, must be a nonnegative integer",
        ),
    ]);
    client.expect(&[("EXISTS n", ":0\r\n")]);
}
