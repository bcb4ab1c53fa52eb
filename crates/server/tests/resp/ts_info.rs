//! TS.INFO.

use crate::harness::Server;

/// The reply with the figures of our own structures replaced by `?`.
fn without_sizes(reply: &str) -> String {
    let mut lines: Vec<&str> = reply.split("\r\n").collect();
    for at in 1..lines.len() {
        if ["+memoryUsage", "+size"].contains(&lines[at - 1]) {
            assert!(lines[at].starts_with(':') && lines[at] != ":0");
            lines[at] = "?";
        }
    }
    lines.join("\r\n")
}

#[test]
fn fields_stand_in_the_known_order_in_both_protocols() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "TS.CREATE k RETENTION 1000 CHUNK_SIZE 128 ENCODING UNCOMPRESSED DUPLICATE_POLICY max \
             IGNORE 5 2.5 LABELS a b a c",
            "+OK\r\n",
        ),
        ("TS.ADD k 20 1", ":20\r\n"),
        ("TS.ADD k 10 2", ":10\r\n"),
    ]);
    let head = "+totalSamples\r\n:2\r\n+memoryUsage\r\n?\r\n+firstTimestamp\r\n:10\r\n\
        +lastTimestamp\r\n:20\r\n+retentionTime\r\n:1000\r\n+chunkCount\r\n:1\r\n+chunkSize\r\n\
        :128\r\n+chunkType\r\n+uncompressed\r\n+duplicatePolicy\r\n+max\r\n+labels\r\n";
    let pairs = "*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\na\r\n$1\r\nc\r\n";
    let tail = "+sourceKey\r\n$-1\r\n+rules\r\n*0\r\n+ignoreMaxTimeDiff\r\n:5\r\n\
        +ignoreMaxValDiff\r\n$3\r\n2.5\r\n";
    let reply = client.ask("TS.INFO k");
    assert_eq!(without_sizes(&reply), format!("*28\r\n{head}{pairs}{tail}"));
    let reply = client.ask("TS.INFO k what");
    assert_eq!(without_sizes(&reply), format!("*28\r\n{head}{pairs}{tail}"));

    let pairs = "%2\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\na\r\n$1\r\nc\r\n";
    let tail = "+sourceKey\r\n_\r\n+rules\r\n%0\r\n+ignoreMaxTimeDiff\r\n:5\r\n\
        +ignoreMaxValDiff\r\n,2.5\r\n";
    let reply = server.client3().ask("TS.INFO k");
    assert_eq!(without_sizes(&reply), format!("%14\r\n{head}{pairs}{tail}"));
}

/// As Redis 7.4 was seen to write them.
#[test]
fn doubles_that_are_no_samples_have_one_text_in_both_protocols() {
    let server = Server::start();
    for (given, text) in [
        ("0", "0"),
        ("9223372036854775808", "9223372036854776000"),
        ("1e15", "1000000000000000"),
        ("123456789012345678", "123456789012345680"),
        ("1e20", "1e+20"),
        ("12345e18", "1.2345e+22"),
        ("0.00001", "0.00001"),
        ("1.5e-7", "1.5e-7"),
        ("123456.5e-9", "1.234565e-4"),
        ("inf", "inf"),
    ] {
        let mut client = server.client();
        client.expect(&[(&format!("TS.CREATE k IGNORE 5 {given}"), "+OK\r\n")]);
        let reply = client.ask("TS.INFO k");
        let line = format!("ignoreMaxValDiff\r\n${}\r\n{text}\r\n", text.len());
        assert!(reply.ends_with(&line), "{given}: {reply}");
        let reply = server.client3().ask("TS.INFO k");
        let line = format!("ignoreMaxValDiff\r\n,{text}\r\n");
        assert!(reply.ends_with(&line), "{given}: {reply}");
        client.expect(&[("DEL k", ":1\r\n")]);
    }
}

#[test]
fn debug_describes_the_chunks() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.ADD k 10 1", ":10\r\n"), ("TS.ADD k 20 2", ":20\r\n")]);
    let reply = client.ask("TS.INFO k debug");
    let chunks = reply.split("+keySelfName\r\n").nth(1).unwrap();
    assert!(reply.starts_with("*32\r\n"));
    assert!(
        chunks.starts_with(
            "$1\r\nk\r\n+Chunks\r\n*1\r\n*10\r\n+startTimestamp\r\n:10\r\n+endTimestamp\r\n:20\r\n\
             +samples\r\n:2\r\n+size\r\n:"
        ),
        "{chunks}"
    );
    let reply = server.client3().ask("TS.INFO k DEBUG");
    assert!(reply.contains("+Chunks\r\n*1\r\n%5\r\n") && reply.contains("+bytesPerSample\r\n,"));
}

#[test]
fn an_empty_series_and_no_series() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.CREATE k", "+OK\r\n")]);
    let reply = without_sizes(&client.ask("TS.INFO k"));
    assert!(reply.starts_with("*28\r\n+totalSamples\r\n:0\r\n"));
    assert!(reply.contains("+firstTimestamp\r\n:0\r\n+lastTimestamp\r\n:0\r\n"));
    assert!(reply.contains("+duplicatePolicy\r\n+block\r\n+labels\r\n*0\r\n"));
    client.expect_errors(&[
        (
            "TS.INFO",
            "ERR wrong number of arguments for 'ts.info' command",
        ),
        (
            "TS.INFO k DEBUG x",
            "ERR wrong number of arguments for 'ts.info' command",
        ),
        ("TS.INFO nokey", "ERR TSDB: the key does not exist"),
    ]);
}
