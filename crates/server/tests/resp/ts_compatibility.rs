//! What depends on the version of RedisTimeSeries that is followed: each answer under both settings,
//! as the servers of that version give it.

use crate::harness::{Client, Server};

/// Rows as `t=a,b t=c`, whatever the protocol writes.
fn rows(client: &mut Client, line: &str) -> String {
    let reply = client.ask(line);
    let mut rows = String::new();
    for part in reply.split("\r\n").filter(|part| !part.is_empty()) {
        match part.split_at(1) {
            ("*", _) => {}
            (":", timestamp) => rows.push_str(&format!(" {timestamp}=")),
            (_, value) if rows.ends_with('=') => rows.push_str(value),
            (_, value) => rows.push_str(&format!(",{value}")),
        }
    }
    rows.trim_start().to_owned()
}

/// Two buckets of numbers with a gap, and one of a number and one of NaN.
fn filled(server: &Server) -> Client {
    let mut client = server.client();
    for line in [
        "TS.CREATE k LABELS of k",
        "TS.CREATE n LABELS of n",
        "TS.CREATE x LABELS of n",
    ] {
        assert_eq!(client.ask(line), "+OK\r\n");
    }
    client.ask("TS.MADD k 20 1 k 25 2 k 29 3 k 60 4 k 65 5 n 72 1 n 96 nan x 96 nan");
    client
}

/// A command, the answer of 1.12, and that of 8.10.
const EXCHANGES: &[(&str, &str, &str)] = &[
    (
        "TS.REVRANGE k - + AGGREGATION first,last 10",
        "60=5,4 20=3,1",
        "60=4,5 20=1,3",
    ),
    (
        "TS.RANGE k - + AGGREGATION first,last 10",
        "20=1,3 60=4,5",
        "20=1,3 60=4,5",
    ),
    (
        "TS.REVRANGE k - + AGGREGATION last 10 EMPTY",
        "60=4 50=4 40=4 30=4 20=1",
        "60=5 50=3 40=3 30=3 20=3",
    ),
    (
        "TS.RANGE k 30 90 AGGREGATION last 10 EMPTY",
        "60=5",
        "30=3 40=3 50=3 60=5",
    ),
    (
        "TS.REVRANGE k 30 90 AGGREGATION last 10 EMPTY",
        "60=4",
        "60=5 50=3 40=3 30=3",
    ),
    (
        "TS.RANGE k 30 50 AGGREGATION sum 10 EMPTY",
        "",
        "30=0 40=0 50=0",
    ),
    (
        "TS.REVRANGE k 0 50 AGGREGATION avg 10 EMPTY",
        "20=2",
        "50=NaN 40=NaN 30=NaN 20=2",
    ),
    (
        "TS.RANGE k 30 50 FILTER_BY_VALUE 2 4 AGGREGATION count 10 EMPTY",
        "",
        "30=0 40=0 50=0",
    ),
    (
        "TS.RANGE k 30 50 FILTER_BY_VALUE 4 9 AGGREGATION count 10 EMPTY",
        "",
        "",
    ),
    // Nothing follows the last sample, and NaN is no sample for that.
    ("TS.RANGE n 80 + AGGREGATION count 10 EMPTY", "90=0", "90=0"),
    (
        "TS.RANGE n - + AGGREGATION countall,last 10",
        "70=1,1 90=1,NaN",
        "70=1,1 90=1,1",
    ),
    // Without EMPTY, nothing is carried from before the range, in neither direction.
    (
        "TS.RANGE n 80 + AGGREGATION twa,last,countnan 10",
        "90=NaN,NaN,1",
        "90=NaN,NaN,1",
    ),
    (
        "TS.REVRANGE n 80 + AGGREGATION twa,last,countnan 10",
        "90=NaN,NaN,1",
        "90=NaN,NaN,1",
    ),
    ("TS.RANGE k 73 + AGGREGATION avg 20 EMPTY", "", ""),
];

#[test]
fn rows_are_those_of_the_version() {
    let server = Server::start();
    let mut client = filled(&server);
    for (version, place) in [("1.12", 0), ("8.10", 1), ("default", 1)] {
        let chosen = client.ask(&format!("CLIENT TSVERSION {version}"));
        assert_eq!(chosen, "+OK\r\n");
        for &(line, old, new) in EXCHANGES {
            let expected = [old, new][place];
            assert_eq!(rows(&mut client, line), expected, "{line} as of {version}");
        }
    }
}

#[test]
fn groups_and_series_without_rows_are_those_of_the_version() {
    let server = Server::start();
    let mut client = filled(&server);
    let of_group =
        |value: &str| format!("*1\r\n*3\r\n$4\r\nof=n\r\n*0\r\n*1\r\n*2\r\n:96\r\n+{value}\r\n");
    let count = "TS.MRANGE 90 + FILTER of=n GROUPBY of REDUCE count";
    let sum = "TS.MRANGE 90 + FILTER of=n GROUPBY of REDUCE sum";
    let excluded = "TS.MRANGE 30 50 EXCLUDEEMPTY AGGREGATION count 10 EMPTY FILTER of=k";
    client.expect(&[
        (count, &of_group("0")),
        (sum, &of_group("NaN")),
        (
            excluded,
            "*1\r\n*3\r\n$1\r\nk\r\n*0\r\n*3\r\n*2\r\n:30\r\n+0\r\n*2\r\n:40\r\n+0\r\n*2\r\n:50\r\n+0\r\n",
        ),
        ("CLIENT TSVERSION 1.12", "+OK\r\n"),
        (count, &of_group("NaN")),
        (sum, &of_group("NaN")),
        (excluded, "*0\r\n"),
    ]);
}

/// Since 8.0 a series keeps the duplicate policy that the server had when it was made.
#[test]
fn the_duplicate_policy_is_that_of_the_version() {
    let server = Server::start();
    let mut client = server.client();
    let refused = "-ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set \
                   to BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is \
                   MAX/MIN/SUM\r\n";
    client.expect(&[
        ("TS.ADD a 1 1", ":1\r\n"),
        ("CONFIG SET ts-duplicate-policy last", "+OK\r\n"),
        ("TS.ADD a 1 2", refused),
        ("TS.ADD b 1 1", ":1\r\n"),
        ("TS.ADD b 1 2", ":1\r\n"),
        ("CONFIG SET ts-compatibility 1.12", "+OK\r\n"),
        (
            "CONFIG GET ts-compatibility",
            "*2\r\n$16\r\nts-compatibility\r\n$4\r\n1.12\r\n",
        ),
        ("TS.CREATE c", "+OK\r\n"),
        ("TS.ADD c 1 1", ":1\r\n"),
        ("TS.ADD d 1 1", ":1\r\n"),
        ("CONFIG SET ts-duplicate-policy block", "+OK\r\n"),
        ("TS.ADD b 1 3", ":1\r\n"),
        ("TS.ADD c 1 2", refused),
        ("TS.ADD d 1 2", refused),
    ]);
    for (key, policy) in [("a", "+block"), ("b", "+last"), ("c", "$-1"), ("d", "$-1")] {
        let info = client.ask(&format!("TS.INFO {key}"));
        assert!(
            info.contains(&format!("duplicatePolicy\r\n{policy}\r\n")),
            "{key}: {info}"
        );
    }
}

#[test]
fn errors_and_names_are_those_of_the_version() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "TS.INCRBY k 0.1 TIMESTAMP RETENTION",
            "ERR TSDB: invalid timestamp",
        ),
        (
            "CLIENT TSVERSION 8",
            "ERR the version must be 1.12, 8.10 or default",
        ),
        (
            "CLIENT TSVERSION 8.10 x",
            "ERR wrong number of arguments for 'client|tsversion' command",
        ),
    ]);
    assert!(client.ask("INFO").contains("redis_version:8.10.0\r\n"));
    assert!(client.ask("HELLO").contains("8.10.0"));
    client.expect(&[
        ("CLIENT TSVERSION 1.12", "+OK\r\n"),
        ("CLIENT TSVERSION", "+1.12\r\n"),
    ]);
    client.expect_errors(&[(
        "TS.INCRBY k 0.1 TIMESTAMP RETENTION",
        "ERR TSDB: Couldn't parse RETENTION",
    )]);
    for line in ["INFO", "INFO modules", "HELLO", "MODULE LIST"] {
        let reply = client.ask(line);
        assert!(
            reply.contains("7.4.1") || reply.contains("11202"),
            "{line}: {reply}"
        );
    }
    client.expect(&[("RESET", "+RESET\r\n"), ("CLIENT TSVERSION", "+8.10\r\n")]);
}
