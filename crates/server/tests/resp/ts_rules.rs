//! TS.CREATERULE, TS.DELETERULE, LATEST, and what TS.INFO says of rules.

use crate::harness::Server;

const ARITY: &str = "ERR wrong number of arguments for 'ts.createrule' command";
const SAMPLES: &str = "*2\r\n*2\r\n:0\r\n+3\r\n*2\r\n:10\r\n+1\r\n";

#[test]
fn createrule_checks_its_words_before_the_keys() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        ("TS.CREATERULE s d AGGREGATION avg", ARITY),
        ("TS.CREATERULE s d FOO avg 10", ARITY),
        ("TS.CREATERULE s d AGGREGATION avg 10 5 6", ARITY),
        (
            "TS.CREATERULE s d AGGREGATION bogus 0",
            "ERR TSDB: Unknown aggregation type",
        ),
        (
            "TS.CREATERULE s d AGGREGATION bogus x",
            "ERR TSDB: Couldn't parse AGGREGATION",
        ),
        (
            "TS.CREATERULE s d avg AGGREGATION 10",
            "ERR TSDB: Couldn't parse AGGREGATION",
        ),
        (
            "TS.CREATERULE s d AGGREGATION avg 0 -4",
            "ERR TSDB: bucketDuration must be greater than zero",
        ),
        (
            "TS.CREATERULE s d AGGREGATION avg 10 -4",
            "ERR TSDB: Couldn't parse alignTimestamp",
        ),
        (
            "TS.CREATERULE s d AGGREGATION avg,min 10",
            "ERR TSDB: CREATERULE requires exactly one aggregation type",
        ),
        (
            "TS.CREATERULE s s AGGREGATION avg 10",
            "ERR TSDB: the source key and destination key should be different",
        ),
        (
            "TS.CREATERULE s d AGGREGATION avg 10",
            "ERR TSDB: the key does not exist",
        ),
        ("TS.DELETERULE s d", "ERR TSDB: the key does not exist"),
    ]);
}

#[test]
fn series_of_a_rule_may_be_called_like_its_options() {
    let server = Server::start();
    let mut client = server.client();
    for (source, destination) in [("aggregation", "empty"), ("buckettimestamp", "AGGREGATION")] {
        client.expect(&[
            (&format!("TS.CREATE {source}"), "+OK\r\n"),
            (&format!("TS.CREATE {destination}"), "+OK\r\n"),
            (
                &format!("TS.CREATERULE {source} {destination} AGGREGATION avg 10"),
                "+OK\r\n",
            ),
        ]);
    }
}

#[test]
fn rules_tie_each_series_once() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("CONFIG SET ts-chained-rules no", "+OK\r\n"),
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATE t", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION std.p 10 33", "+OK\r\n"),
    ]);
    client.expect_errors(&[
        (
            "TS.CREATERULE d t AGGREGATION sum 10",
            "ERR TSDB: the source key already has a source rule",
        ),
        (
            "TS.CREATERULE d missing AGGREGATION sum 10",
            "ERR TSDB: the source key already has a source rule",
        ),
        (
            "TS.CREATERULE t s AGGREGATION sum 10",
            "ERR TSDB: the destination key already has a dst rule",
        ),
        (
            "TS.CREATERULE s d AGGREGATION max 100",
            "ERR TSDB: the destination key already has a src rule",
        ),
        (
            "TS.DELETERULE s t",
            "ERR TSDB: compaction rule does not exist",
        ),
        (
            "TS.DELETERULE s nope",
            "ERR TSDB: compaction rule does not exist",
        ),
    ]);
    let rules = "rules\r\n*1\r\n*4\r\n$1\r\nd\r\n:10\r\n+STD.P\r\n:33\r\n";
    assert!(client.ask("TS.INFO s").contains(rules));
    assert!(client.ask("TS.INFO d").contains("sourceKey\r\n$1\r\ns\r\n"));
    let mut client3 = server.client3();
    let rules = "rules\r\n%1\r\n$1\r\nd\r\n*3\r\n:10\r\n+STD.P\r\n:33\r\n";
    assert!(client3.ask("TS.INFO s").contains(rules));
    client.expect(&[("TS.DELETERULE s d", "+OK\r\n")]);
    assert!(client.ask("TS.INFO s").contains("rules\r\n*0\r\n"));
    assert!(client.ask("TS.INFO d").contains("sourceKey\r\n$-1\r\n"));
}

#[test]
fn rules_may_follow_one_another() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "CONFIG GET ts-chained-rules",
            "*2\r\n$16\r\nts-chained-rules\r\n$3\r\nyes\r\n",
        ),
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATE t", "+OK\r\n"),
        ("TS.CREATERULE d t AGGREGATION sum 100", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION max 10", "+OK\r\n"),
        (
            "TS.MADD s 5 1 s 12 2 s 105 4 s 110 0",
            "*4\r\n:5\r\n:12\r\n:105\r\n:110\r\n",
        ),
        ("TS.RANGE t - +", "*1\r\n*2\r\n:0\r\n+3\r\n"),
        ("TS.ADD s 13 7", ":13\r\n"),
        ("TS.GET t", "*2\r\n:0\r\n+8\r\n"),
        ("TS.GET t LATEST", "*2\r\n:100\r\n+4\r\n"),
        ("TS.DEL s 0 9", ":1\r\n"),
        ("TS.RANGE t - +", "*1\r\n*2\r\n:0\r\n+7\r\n"),
    ]);
    client.expect_errors(&[
        (
            "TS.CREATERULE t s AGGREGATION sum 10",
            "ERR TSDB: the rule would make a circle: the source key is computed from the destination key",
        ),
        (
            "TS.CREATERULE s t AGGREGATION sum 10",
            "ERR TSDB: the destination key already has a src rule",
        ),
        (
            "TS.CREATERULE d missing AGGREGATION sum 10",
            "ERR TSDB: the key does not exist",
        ),
        (
            "CONFIG SET ts-chained-rules maybe",
            "ERR CONFIG SET failed (possibly related to argument 'ts-chained-rules') - \
             argument must be 'yes' or 'no'",
        ),
    ]);
}

#[test]
fn a_chain_is_shown_at_every_level_and_has_an_end() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATE t", "+OK\r\n"),
        ("TS.CREATERULE d t AGGREGATION sum 100", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION max 10", "+OK\r\n"),
        (
            "TS.MADD s 13 7 s 105 4 s 110 0",
            "*3\r\n:13\r\n:105\r\n:110\r\n",
        ),
    ]);
    let told = client.ask("TS.INFO d");
    assert!(told.contains("sourceKey\r\n$1\r\ns\r\n"), "{told}");
    assert!(
        told.contains("rules\r\n*1\r\n*4\r\n$1\r\nt\r\n:100\r\n+SUM\r\n:0\r\n"),
        "{told}"
    );
    for at in 1..7 {
        let key = |at: i32| match at {
            0 => "t".to_owned(),
            at => format!("t{at}"),
        };
        let (from, to) = (key(at - 1), key(at));
        client.expect(&[
            (&format!("TS.CREATE {to}"), "+OK\r\n"),
            (
                &format!("TS.CREATERULE {from} {to} AGGREGATION avg 10"),
                "+OK\r\n",
            ),
        ]);
    }
    client.expect(&[("TS.CREATE t7", "+OK\r\n")]);
    client.expect_errors(&[(
        "TS.CREATERULE t6 t7 AGGREGATION avg 10",
        "ERR TSDB: at most 8 rules can follow one another",
    )]);
    // What is chained stays so.
    client.expect(&[
        ("CONFIG SET ts-chained-rules no", "+OK\r\n"),
        ("TS.ADD s 14 8", ":14\r\n"),
        ("TS.GET t", "*2\r\n:0\r\n+8\r\n"),
        ("DEL d", ":1\r\n"),
        ("TS.GET t", "*2\r\n:0\r\n+8\r\n"),
    ]);
    assert!(client.ask("TS.INFO t").contains("sourceKey\r\n$-1\r\n"));
    assert!(client.ask("TS.INFO s").contains("rules\r\n*0\r\n"));
}

/// An open bucket before samples that are in files and late ones over these.
#[test]
fn an_open_bucket_among_late_samples_stands_in_its_place() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d DUPLICATE_POLICY last", "+OK\r\n"),
        ("TS.ADD d 40 1", ":40\r\n"),
        ("TS.ADD d 60 1", ":60\r\n"),
        ("SAVE", "+OK\r\n"),
        ("TS.ADD d 50 2", ":50\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10", "+OK\r\n"),
        ("TS.ADD s 25 7", ":25\r\n"),
        (
            "TS.RANGE d - + LATEST",
            "*4\r\n*2\r\n:20\r\n+7\r\n*2\r\n:40\r\n+1\r\n\
             *2\r\n:50\r\n+2\r\n*2\r\n:60\r\n+1\r\n",
        ),
    ]);
}

#[test]
fn latest_adds_the_open_bucket() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10", "+OK\r\n"),
        ("TS.GET d LATEST", "*0\r\n"),
        ("TS.ADD s 5 1", ":5\r\n"),
        ("TS.ADD s 6 2", ":6\r\n"),
        ("TS.RANGE d - +", "*0\r\n"),
        ("TS.ADD s 12 1", ":12\r\n"),
        ("TS.GET d", "*2\r\n:0\r\n+3\r\n"),
        ("TS.GET d LATEST", "*2\r\n:10\r\n+1\r\n"),
        ("TS.RANGE d - + LATEST", SAMPLES),
        ("TS.RANGE d 11 20 LATEST", "*0\r\n"),
        (
            "TS.REVRANGE d - + LATEST COUNT 1",
            "*1\r\n*2\r\n:10\r\n+1\r\n",
        ),
        (
            "TS.RANGE d - + LATEST AGGREGATION sum 100",
            "*1\r\n*2\r\n:0\r\n+4\r\n",
        ),
        (
            "TS.RANGE d - + LATEST FILTER_BY_VALUE 1 1",
            "*1\r\n*2\r\n:10\r\n+1\r\n",
        ),
        ("TS.GET s LATEST", "*2\r\n:12\r\n+1\r\n"),
        ("TS.DEL s 6 6", ":1\r\n"),
        ("TS.GET d", "*2\r\n:0\r\n+1\r\n"),
        ("TS.ALTER d LABELS a b", "+OK\r\n"),
        (
            "TS.MGET LATEST FILTER a=b",
            "*1\r\n*3\r\n$1\r\nd\r\n*0\r\n*2\r\n:10\r\n+1\r\n",
        ),
        (
            "TS.MRANGE - + LATEST FILTER a=b",
            "*1\r\n*3\r\n$1\r\nd\r\n*0\r\n*2\r\n*2\r\n:0\r\n+1\r\n*2\r\n:10\r\n+1\r\n",
        ),
        (
            "TS.MRANGE - + LATEST COUNT 1 FILTER a=b GROUPBY a REDUCE sum",
            "*1\r\n*3\r\n$3\r\na=b\r\n*0\r\n*1\r\n*2\r\n:0\r\n+1\r\n",
        ),
        ("DEL s", ":1\r\n"),
        ("TS.GET d LATEST", "*2\r\n:0\r\n+1\r\n"),
    ]);
}

#[test]
fn samples_past_the_retention_of_a_source_stay() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE s RETENTION 22", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10", "+OK\r\n"),
        (
            "TS.MADD s 14 2 s 25 2 s 38 3",
            "*3\r\n:14\r\n:25\r\n:38\r\n",
        ),
        ("TS.DEL s 20 20", ":0\r\n"),
    ]);
    for span in ["17 17", "19 20", "10 16", "12 10"] {
        client.expect_errors(&[(
            &format!("TS.DEL s {span}"),
            "ERR TSDB: When a series has compactions, deleting samples or compaction buckets \
             beyond the series retention period is not possible",
        )]);
    }
}

#[test]
fn a_rule_with_backfill_holds_what_was_there_before() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "CONFIG GET ts-rule-backfill",
            "*2\r\n$16\r\nts-rule-backfill\r\n$2\r\nno\r\n",
        ),
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATE e", "+OK\r\n"),
        ("TS.CREATE f", "+OK\r\n"),
        ("TS.MADD s 5 1 s 6 2 s 12 1", "*3\r\n:5\r\n:6\r\n:12\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10 backfill", "+OK\r\n"),
        ("TS.CREATERULE s e AGGREGATION sum 10 5", "+OK\r\n"),
        ("TS.RANGE d - +", "*1\r\n*2\r\n:0\r\n+3\r\n"),
        ("TS.GET d LATEST", "*2\r\n:10\r\n+1\r\n"),
        ("TS.RANGE e - + LATEST", "*0\r\n"),
        ("CONFIG SET ts-rule-backfill yes", "+OK\r\n"),
        ("TS.CREATERULE s f AGGREGATION sum 10 5", "+OK\r\n"),
        ("TS.GET f LATEST", "*2\r\n:5\r\n+4\r\n"),
    ]);
    client.expect_errors(&[
        (
            "TS.CREATERULE s d AGGREGATION avg BACKFILL",
            "ERR TSDB: Couldn't parse AGGREGATION",
        ),
        ("TS.CREATERULE s d AGGREGATION avg 10 5 6 BACKFILL", ARITY),
        ("TS.CREATERULE s d AGGREGATION avg 10 BACKFILL 5", ARITY),
        (
            "TS.CREATERULE s d BACKFILL AGGREGATION avg 10",
            "ERR TSDB: BACKFILL must be the last argument",
        ),
    ]);
}

/// A thousand buckets are more than an event loop computes: a reader thread does.
#[test]
fn a_long_history_is_read_whole() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.CREATE s", "+OK\r\n"), ("TS.CREATE d", "+OK\r\n")]);
    for part in 0..400 {
        let samples = (0..1_000).map(|n| format!(" s {} 1", part * 1_000 + n));
        let line = format!("TS.MADD{}", samples.collect::<String>());
        assert!(client.ask(&line).starts_with("*1000\r\n:"));
    }
    client.expect(&[("TS.CREATERULE s d AGGREGATION sum 1000 BACKFILL", "+OK\r\n")]);
    let rows = client.ask("TS.RANGE d - +");
    assert!(
        rows.starts_with("*399\r\n*2\r\n:0\r\n+1000\r\n"),
        "{}",
        &rows[..80]
    );
    assert!(!client.ask("TS.INFO d").contains("backfill"));
}

/// As the row will be once the bucket closes.
#[test]
fn an_open_bucket_is_shown_in_the_place_of_a_users_row() {
    let server = Server::start();
    server.client().expect(&[
        ("TS.CREATE s", "+OK\r\n"),
        ("TS.CREATE d", "+OK\r\n"),
        ("TS.CREATERULE s d AGGREGATION sum 10", "+OK\r\n"),
        ("TS.ADD s 65 3", ":65\r\n"),
        ("TS.ADD d 60 99", ":60\r\n"),
        ("TS.GET d LATEST", "*2\r\n:60\r\n+3\r\n"),
        ("TS.RANGE d - + LATEST", "*1\r\n*2\r\n:60\r\n+3\r\n"),
        ("TS.REVRANGE d - + LATEST", "*1\r\n*2\r\n:60\r\n+3\r\n"),
        ("TS.RANGE d - +", "*1\r\n*2\r\n:60\r\n+99\r\n"),
    ]);
}
