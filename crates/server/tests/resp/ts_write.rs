//! TS.CREATE, TS.ADD, TS.MADD, TS.DEL, TS.GET.

use crate::harness::Server;

const BLOCKED: &str = "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY \
is set to BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM";

const CHUNK_SIZE: &str =
    "ERR TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]";

#[test]
fn create_refuses_sizes_and_words_it_does_not_know() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "TS.CREATE",
            "ERR wrong number of arguments for 'ts.create' command",
        ),
        (
            "TS.CREATE a RETENTION",
            "ERR TSDB: Couldn't parse RETENTION",
        ),
        (
            "TS.CREATE a RETENTION x",
            "ERR TSDB: Couldn't parse RETENTION",
        ),
        (
            "TS.CREATE a RETENTION 1.5",
            "ERR TSDB: Couldn't parse RETENTION",
        ),
        (
            "TS.CREATE a RETENTION +5",
            "ERR TSDB: Couldn't parse RETENTION",
        ),
        ("TS.CREATE a RETENTION -1", "TSDB: Couldn't parse RETENTION"),
        (
            "TS.CREATE a CHUNK_SIZE",
            "ERR TSDB: Couldn't parse CHUNK_SIZE",
        ),
        (
            "TS.CREATE a CHUNK_SIZE x",
            "ERR TSDB: Couldn't parse CHUNK_SIZE",
        ),
        ("TS.CREATE a CHUNK_SIZE 47", CHUNK_SIZE),
        ("TS.CREATE a CHUNK_SIZE -8", CHUNK_SIZE),
        ("TS.CREATE a CHUNK_SIZE 50", CHUNK_SIZE),
        ("TS.CREATE a CHUNK_SIZE 1048584", CHUNK_SIZE),
        ("TS.CREATE a CHUNK_SIZE 99999999999", CHUNK_SIZE),
        (
            "TS.CREATE a ENCODING",
            "ERR wrong number of arguments for 'ts.create' command",
        ),
        (
            "TS.CREATE a ENCODING zip",
            "ERR TSDB: unknown ENCODING parameter",
        ),
        (
            "TS.CREATE a DUPLICATE_POLICY",
            "ERR TSDB: Couldn't parse DUPLICATE_POLICY",
        ),
        (
            "TS.CREATE a DUPLICATE_POLICY x",
            "ERR TSDB: Unknown DUPLICATE_POLICY",
        ),
    ]);
    client.expect(&[("EXISTS a", ":0\r\n")]);
}

#[test]
fn create_refuses_bad_ignore_and_labels() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        ("TS.CREATE a IGNORE", "ERR TSDB: Couldn't parse IGNORE"),
        ("TS.CREATE a IGNORE 1", "ERR TSDB: Couldn't parse IGNORE"),
        (
            "TS.CREATE a IGNORE 1 nan",
            "ERR TSDB: Couldn't parse IGNORE",
        ),
        (
            "TS.CREATE a IGNORE -1 1",
            "ERR TSDB: IGNORE arguments cannot be negative",
        ),
        (
            "TS.CREATE a IGNORE 1 -1",
            "ERR TSDB: IGNORE arguments cannot be negative",
        ),
        ("TS.CREATE a LABELS a ''", "ERR TSDB: Couldn't parse LABELS"),
        ("TS.CREATE a LABELS '' b", "ERR TSDB: Couldn't parse LABELS"),
        (
            "TS.CREATE a LABELS a b,c",
            "ERR TSDB: Couldn't parse LABELS",
        ),
    ]);
    client.expect(&[("EXISTS a", ":0\r\n")]);
}

#[test]
fn create_checks_its_options_in_order() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "TS.CREATE a RETENTION x LABELS a (",
            "ERR TSDB: Couldn't parse LABELS",
        ),
        ("TS.CREATE a ENCODING x CHUNK_SIZE 47", CHUNK_SIZE),
        (
            "TS.CREATE a ENCODING x DUPLICATE_POLICY x",
            "ERR TSDB: unknown ENCODING parameter",
        ),
        (
            "TS.CREATE a IGNORE x 1 DUPLICATE_POLICY x",
            "ERR TSDB: Unknown DUPLICATE_POLICY",
        ),
    ]);
    client.expect(&[
        ("EXISTS a", ":0\r\n"),
        (
            "TS.CREATE a RETENTION 5 CHUNK_SIZE 48 LABELS a b c",
            "+OK\r\n",
        ),
        ("TS.CREATE a", "-ERR TSDB: key already exists\r\n"),
        ("TS.CREATE b what is this", "+OK\r\n"),
        ("TS.CREATE RETENTION RETENTION 5", "+OK\r\n"),
        ("TS.CREATE c IGNORE 1 inf", "+OK\r\n"),
        ("TYPE a", "+TSDB-TYPE\r\n"),
    ]);
}

#[test]
fn add_takes_samples_of_any_age_and_refuses_the_rest_in_words() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "TS.ADD k 1",
            "ERR wrong number of arguments for 'ts.add' command",
        ),
        ("TS.ADD k x x", "ERR TSDB: invalid value"),
        ("TS.ADD k x 1", "ERR TSDB: invalid timestamp"),
        ("TS.ADD k 1.5 1", "ERR TSDB: invalid timestamp"),
        ("TS.ADD k +1 1", "ERR TSDB: invalid timestamp"),
        ("TS.ADD k 007 1", "ERR TSDB: invalid timestamp"),
        (
            "TS.ADD k 9223372036854775808 1",
            "ERR TSDB: invalid timestamp",
        ),
        (
            "TS.ADD k -1 1",
            "ERR TSDB: invalid timestamp, must be a nonnegative integer",
        ),
        ("TS.ADD k 1 inf", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 1e400", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 .5", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 1,5", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 0x10", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 ''", "ERR TSDB: invalid value"),
        ("TS.ADD k 1 1 CHUNK_SIZE 47", CHUNK_SIZE),
    ]);
    client.expect(&[
        ("EXISTS k", ":0\r\n"),
        ("TS.ADD k 1000 1 RETENTION 500 LABELS a b", ":1000\r\n"),
        ("TS.ADD k 900 2", ":900\r\n"),
        (
            "TS.ADD k 400 2",
            "-ERR TSDB: Timestamp is older than retention\r\n",
        ),
        // Options of a series that is there are not read.
        ("TS.ADD k 1100 3 RETENTION x", ":1100\r\n"),
        (
            "TS.ADD k 1100 5 ON_DUPLICATE x",
            "-ERR TSDB: Unknown DUPLICATE_POLICY\r\n",
        ),
        (
            "TS.ADD k 1100 5 ON_DUPLICATE",
            "-ERR TSDB: Couldn't parse DUPLICATE_POLICY\r\n",
        ),
        ("TS.ADD k 1100 5 ON_DUPLICATE sum", ":1100\r\n"),
        (
            "TS.RANGE k - +",
            "*3\r\n*2\r\n:900\r\n+2\r\n*2\r\n:1000\r\n+1\r\n*2\r\n:1100\r\n+8\r\n",
        ),
        ("TS.ADD n 1 1 ON_DUPLICATE x", ":1\r\n"),
        ("TS.ADD n 9223372036854775807 1", ":9223372036854775807\r\n"),
    ]);
    client.expect_errors(&[
        ("TS.ADD n 1 2", BLOCKED),
        ("TS.ADD n 1 2 ON_DUPLICATE block", BLOCKED),
    ]);
}

#[test]
fn the_clock_stands_in_for_a_star() {
    let server = Server::start();
    let mut client = server.client();
    let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    for line in ["TS.ADD k * 1", "TS.ADD k * 1 ON_DUPLICATE last LABELS a b"] {
        let reply = client.ask(line);
        let timestamp: u128 = reply.trim_start_matches(':').trim().parse().unwrap();
        let after = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        assert!((before..=after).contains(&timestamp), "{timestamp}");
    }
}

#[test]
fn every_policy_and_the_ignore_rule_act_as_named() {
    let server = Server::start();
    let mut client = server.client();
    for (policy, value) in [
        ("first", "5"),
        ("last", "3"),
        ("min", "3"),
        ("max", "5"),
        ("sum", "8"),
    ] {
        client.expect(&[
            (
                &format!("TS.CREATE {policy} DUPLICATE_POLICY {policy}"),
                "+OK\r\n",
            ),
            (&format!("TS.ADD {policy} 1 5"), ":1\r\n"),
            (&format!("TS.ADD {policy} 1 3"), ":1\r\n"),
            (
                &format!("TS.GET {policy}"),
                &format!("*2\r\n:1\r\n+{value}\r\n"),
            ),
        ]);
    }
    client.expect(&[
        ("TS.ADD y 5 1 DUPLICATE_POLICY last IGNORE 10 10", ":5\r\n"),
        ("TS.ADD y 6 2", ":5\r\n"),
        ("TS.ADD y 16 20", ":16\r\n"),
        ("TS.MADD y 17 20 y 18 31", "*2\r\n:16\r\n:18\r\n"),
        (
            "TS.RANGE y - +",
            "*3\r\n*2\r\n:5\r\n+1\r\n*2\r\n:16\r\n+20\r\n*2\r\n:18\r\n+31\r\n",
        ),
    ]);
}

#[test]
fn madd_answers_each_sample() {
    let server = Server::start();
    let mut client = server.client();
    let arity = "ERR wrong number of arguments for 'ts.madd' command";
    client.expect(&[("TS.CREATE b RETENTION 100", "+OK\r\n")]);
    client.expect_errors(&[
        ("TS.MADD", arity),
        ("TS.MADD b 1", arity),
        ("TS.MADD b 2000 1 b", arity),
        ("TS.MADD b 2000 1 b 1 1 b", arity),
    ]);
    let blocked = format!("-{BLOCKED}\r\n");
    client.expect(&[
        (
            "TS.MADD b x 1 b 2001 x nokey 1 1 b 2002 1 b 2002 1 b 5 5 b -1 1 nokey x 1",
            &format!(
                "*8\r\n-ERR TSDB: invalid timestamp\r\n-ERR TSDB: invalid value\r\n\
                 -ERR TSDB: the key is not a TSDB key\r\n:2002\r\n{blocked}\
                 -ERR TSDB: Timestamp is older than retention\r\n\
                 -ERR TSDB: invalid timestamp, must be a nonnegative integer\r\n\
                 -ERR TSDB: invalid timestamp\r\n"
            ),
        ),
        ("EXISTS nokey", ":0\r\n"),
    ]);
}

#[test]
fn del_removes_a_span_and_counts() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE k", "+OK\r\n"),
        (
            "TS.MADD k 10 1 k 20 2 k 30 3 k 40 4",
            "*4\r\n:10\r\n:20\r\n:30\r\n:40\r\n",
        ),
        ("TS.DEL k 20 30", ":2\r\n"),
        ("TS.DEL k 30 20", ":0\r\n"),
        ("TS.ADD k 25 9", ":25\r\n"),
        (
            "TS.RANGE k - +",
            "*3\r\n*2\r\n:10\r\n+1\r\n*2\r\n:25\r\n+9\r\n*2\r\n:40\r\n+4\r\n",
        ),
        ("TS.DEL k - +", ":3\r\n"),
        ("TS.GET k", "*0\r\n"),
    ]);
    client.expect_errors(&[
        (
            "TS.DEL k 1",
            "ERR wrong number of arguments for 'ts.del' command",
        ),
        (
            "TS.DEL k 1 2 3",
            "ERR wrong number of arguments for 'ts.del' command",
        ),
        ("TS.DEL k x 1", "ERR TSDB: wrong fromTimestamp"),
        ("TS.DEL k + -", "ERR TSDB: wrong fromTimestamp"),
        ("TS.DEL k 1 x", "ERR TSDB: wrong toTimestamp"),
        ("TS.DEL k 1 -2", "ERR TSDB: wrong toTimestamp"),
        ("TS.DEL nokey x 1", "ERR TSDB: wrong fromTimestamp"),
        ("TS.DEL nokey 1 2", "ERR TSDB: the key does not exist"),
    ]);
}

#[test]
fn get_gives_the_newest_sample() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE k", "+OK\r\n"),
        ("TS.GET k", "*0\r\n"),
        ("TS.ADD k 20 0.1", ":20\r\n"),
        ("TS.ADD k 10 7", ":10\r\n"),
        ("TS.GET k", "*2\r\n:20\r\n+1E-1\r\n"),
        ("TS.GET k LATEST", "*2\r\n:20\r\n+1E-1\r\n"),
    ]);
    client.expect_errors(&[
        (
            "TS.GET",
            "ERR wrong number of arguments for 'ts.get' command",
        ),
        (
            "TS.GET k LATEST x",
            "ERR wrong number of arguments for 'ts.get' command",
        ),
        ("TS.GET k x", "ERR TSDB: wrong 3rd argument"),
        ("TS.GET nokey x", "ERR TSDB: the key does not exist"),
    ]);
    server
        .client3()
        .expect(&[("TS.GET k", "*2\r\n:20\r\n,0.1\r\n")]);
}

#[test]
fn timestamps_far_from_the_clock_are_refused_by_key_where_there_are_limits() {
    let server = Server::with(&["--redis-future-limit", "1h", "--redis-past-limit", "1d"]);
    let mut client = server.client();
    client.expect(&[("TS.CREATE k", "+OK\r\n")]);
    let behind = "ERR TSDB: the timestamp is more than 86400 seconds behind the clock, for key";
    let ahead = "ERR TSDB: the timestamp is more than 3600 seconds ahead of the clock, for key";
    client.expect_errors(&[
        (
            "TS.ADD k 1700000000 1",
            &format!("{behind} 'k' at 1700000000"),
        ),
        (
            "TS.ADD new 9999999999999 1",
            &format!("{ahead} 'new' at 9999999999999"),
        ),
        ("TS.INCRBY k 1 TIMESTAMP 5", &format!("{behind} 'k' at 5")),
        ("LATEWOOD ADD k 5 inf", &format!("{behind} 'k' at 5")),
    ]);
    let both = client.ask("TS.MADD k 5 1 k 9999999999999 1");
    let both_refused = format!("*2\r\n-{behind} 'k' at 5\r\n-{ahead} 'k' at 9999999999999\r\n");
    assert_eq!(both, both_refused);
    assert!(client.ask("TS.ADD k * 1").starts_with(':'));
    assert!(client.ask("TS.INCRBY k 1").starts_with(':'));
    client.expect(&[("EXISTS new", ":0\r\n")]);

    let server = Server::start();
    let far = "*2\r\n:1\r\n:9223372036854775807\r\n";
    server.client().expect(&[
        ("TS.CREATE k", "+OK\r\n"),
        ("TS.MADD k 1 1 k 9223372036854775807 1", far),
    ]);
}
