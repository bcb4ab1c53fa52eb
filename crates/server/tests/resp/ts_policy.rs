//! `ts-compaction-policy`: what comes along with a series a write creates.

use crate::harness::{Server, text};

const POLICY: &str = "max:1m:1h;avg:10s:5d;sum:1M:0:500m;std.p:2h:30d";
const KEYS: &str = "*5\r\n$1\r\nk\r\n$10\r\nk_MAX_1\r\n$11\r\nk_AVG_10000\r\n$15\r\nk_SUM_60000_500\r\n$15\r\nk_STD.P_7200000\r\n";

/// The keys there are, sorted.
fn keys(client: &mut crate::harness::Client) -> Vec<String> {
    let reply = client.ask("KEYS *");
    let mut keys: Vec<String> = reply
        .split("\r\n")
        .skip(2)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    keys.sort();
    keys.retain(|key| !key.is_empty());
    keys
}

#[test]
fn config_keeps_the_text_and_refuses_wrong_ones() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "CONFIG GET ts-compaction-policy",
            "*2\r\n$20\r\nts-compaction-policy\r\n$0\r\n\r\n",
        ),
        (
            "CONFIG SET ts-compaction-policy AVG:10s:0;max:1m:1h",
            "+OK\r\n",
        ),
        (
            "CONFIG GET ts-compaction-policy",
            "*2\r\n$20\r\nts-compaction-policy\r\n$19\r\nAVG:10s:0;max:1m:1h\r\n",
        ),
    ]);
    client.expect_errors(&[(
        "CONFIG SET ts-compaction-policy avg:0m:1h",
        "ERR CONFIG SET failed (possibly related to argument 'ts-compaction-policy') - \
         Invalid compaction policy: avg:0m:1h: \"avg:0m:1h\" has a bucket that is not a time \
         above 0, such as 10s",
    )]);
    client.ask("TS.ADD k 1 1");
    assert_eq!(keys(&mut client), ["k", "k_AVG_10000", "k_MAX_1"]);
    let off = client.ask_words(&["CONFIG", "SET", "ts-compaction-policy", ""]);
    assert_eq!(off, "+OK\r\n");
    client.expect(&[("TS.ADD l 1 1", ":1\r\n"), ("EXISTS l_MAX_1", ":0\r\n")]);
}

#[test]
fn no_key_forges_a_line_of_the_log() {
    let server = Server::with(&["--wal", "off", "--ts-compaction-policy", POLICY]);
    let mut client = server.client();
    let source = "x\n2030-01-01 ERROR forged";
    let added = client.ask_words(&["TS.ADD", source, "1", "1"]);
    assert_eq!(added, ":1\r\n");
    let forget = client.ask_words(&["DEL", source]);
    assert_eq!(forget, ":1\r\n");
    // What came along is still there, and in the way.
    client.ask_words(&["TS.ADD", source, "1", "1"]);
    let line = server.wait_for_log("forged");
    assert!(line.contains("compaction rule not created"), "{line}");
    assert!(line.contains(r"x\n2030-01-01"), "{line}");
}

#[test]
fn add_and_incrby_bring_compactions_along() {
    let server = Server::with(&["--wal", "off", "--ts-compaction-policy", POLICY]);
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE c", "+OK\r\n"),
        (
            "TS.MADD q 1 1",
            "*1\r\n-ERR TSDB: the key is not a TSDB key\r\n",
        ),
        (
            "TS.ADD n -5 1",
            "-ERR TSDB: invalid timestamp, must be a nonnegative integer\r\n",
        ),
        ("DBSIZE", ":1\r\n"),
        ("DEL c", ":1\r\n"),
        (
            "TS.ADD k 1000 5 CHUNK_SIZE 128 RETENTION 77 LABELS a b aggregation zz",
            ":1000\r\n",
        ),
    ]);
    let mut expected: Vec<&str> = KEYS.split("\r\n").skip(2).step_by(2).collect();
    expected.sort_unstable();
    expected.retain(|key| !key.is_empty());
    assert_eq!(keys(&mut client), expected);
    let info = client.ask("TS.INFO k_SUM_60000_500");
    for part in [
        "retentionTime\r\n:0\r\n",
        "chunkSize\r\n:4096\r\n",
        "duplicatePolicy\r\n$-1\r\n",
        "*4\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$11\r\naggregation\r\n$2\r\nzz\r\n\
         *2\r\n$11\r\naggregation\r\n$3\r\nSUM\r\n*2\r\n$11\r\ntime_bucket\r\n$5\r\n60000\r\n",
        "sourceKey\r\n$1\r\nk\r\n",
    ] {
        assert!(info.contains(part), "{part:?} not in {info:?}");
    }
    client.expect(&[
        ("TS.ADD k 1001 6", ":1001\r\n"),
        ("TS.RANGE k_MAX_1 - +", "*1\r\n*2\r\n:1000\r\n+5\r\n"),
        ("TS.INCRBY i 2 TIMESTAMP 100", ":100\r\n"),
        ("EXISTS i_MAX_1 i_STD.P_7200000", ":2\r\n"),
        ("TS.DECRBY d 2 TIMESTAMP 100", ":100\r\n"),
        ("EXISTS d_MAX_1 d_STD.P_7200000", ":2\r\n"),
        ("TS.CREATE j_AVG_10000", "+OK\r\n"),
        ("TS.ADD j 1 1", ":1\r\n"),
    ]);
    server.wait_for_log("j_AVG_10000");
    let info = client.ask("TS.INFO j");
    assert!(info.contains("j_MAX_1") && !info.contains("j_AVG_10000"));
}

#[test]
fn new_keys_are_told_of_in_their_order() {
    let server = Server::with(&[
        "--wal",
        "off",
        "--ts-compaction-policy",
        "max:1m:0;avg:1s:0",
    ]);
    let (mut writer, mut listener) = (server.client(), server.client());
    let mut watcher = server.client();
    writer.expect(&[("CONFIG SET notify-keyspace-events AEn", "+OK\r\n")]);
    listener.ask("PSUBSCRIBE __keyevent@0__:*");
    watcher.expect(&[
        ("WATCH k_AVG_1000", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("PING", "+QUEUED\r\n"),
    ]);
    writer.expect(&[
        ("TS.ADD k 1 1", ":1\r\n"),
        ("TS.INCRBY i 1 TIMESTAMP 5", ":5\r\n"),
    ]);
    watcher.expect(&[("EXEC", "*-1\r\n")]);
    for expected in [
        "new k",
        "new k_MAX_1",
        "new k_AVG_1000",
        "ts.add k",
        "new i",
        "new i_MAX_1",
        "new i_AVG_1000",
        "ts.incrby i",
    ] {
        let message = text(&listener.reply());
        let words: Vec<&str> = message.split("\r\n").collect();
        let event = words[6].strip_prefix("__keyevent@0__:").unwrap();
        assert_eq!(format!("{event} {}", words[8]), expected);
    }
}

#[test]
fn a_pipeline_and_a_restart_keep_rules() {
    let server = Server::with(&["--ts-compaction-policy", "sum:10m:0"]);
    let mut client = server.client();
    let mut pipeline = String::new();
    for number in 0..50 {
        pipeline.push_str(&format!(
            "TS.ADD s{number} 1 1\r\nTS.ADD s{number} 11 1\r\n"
        ));
    }
    client.send(pipeline.as_bytes());
    for _ in 0..50 {
        assert_eq!(text(&client.reply()), ":1\r\n");
        assert_eq!(text(&client.reply()), ":11\r\n");
    }
    let server = Server::over(server.kill(), &[]);
    let mut client = server.client();
    client.expect(&[("DBSIZE", ":100\r\n")]);
    for number in 0..50 {
        let range = format!("TS.RANGE s{number}_SUM_10 - +");
        client.expect(&[(range.as_str(), "*1\r\n*2\r\n:0\r\n+1\r\n")]);
    }
}
