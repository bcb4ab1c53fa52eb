//! TS.RANGE and TS.REVRANGE.

use crate::harness::{Client, Server};

const ARITY: &str = "ERR wrong number of arguments for 'ts.range' command";

fn filled(server: &Server) -> Client {
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE r", "+OK\r\n"),
        (
            "TS.MADD r 10 1 r 20 2.5 r 30 -3 r 40 1e300 r 50 0.1",
            "*5\r\n:10\r\n:20\r\n:30\r\n:40\r\n:50\r\n",
        ),
    ]);
    client
}

/// `10=1 20=2.5` is a reply of two rows.
fn rows(text: &str) -> String {
    let rows: Vec<&str> = text.split_whitespace().collect();
    let mut reply = format!("*{}\r\n", rows.len());
    for row in rows {
        let (timestamp, values) = row.split_once('=').unwrap();
        let values: Vec<&str> = values.split(',').collect();
        reply.push_str(&format!("*{}\r\n:{timestamp}\r\n", 1 + values.len()));
        for value in values {
            reply.push_str(&format!("+{value}\r\n"));
        }
    }
    reply
}

fn expect_rows(client: &mut Client, exchanges: &[(&str, &str)]) {
    for (line, expected) in exchanges {
        assert_eq!(client.ask(line), rows(expected), "reply to {line}");
    }
}

#[test]
fn raw_samples_filtered_and_counted() {
    let server = Server::start();
    let mut client = filled(&server);
    expect_rows(
        &mut client,
        &[
            ("TS.RANGE r - +", "10=1 20=2.5 30=-3 40=1E300 50=1E-1"),
            ("TS.REVRANGE r - +", "50=1E-1 40=1E300 30=-3 20=2.5 10=1"),
            ("TS.RANGE r 20 30 LATEST", "20=2.5 30=-3"),
            ("TS.RANGE r 50 10", ""),
            ("TS.RANGE r - + COUNT 2", "10=1 20=2.5"),
            ("TS.REVRANGE r - + count 2", "50=1E-1 40=1E300"),
            ("TS.RANGE r - + COUNT 1 what else", "10=1"),
            ("TS.RANGE r - + FILTER_BY_TS 30 10 10", "10=1 30=-3"),
            ("TS.RANGE r - + FILTER_BY_TS 10 30 COUNT 1", "10=1"),
            ("TS.RANGE r - + FILTER_BY_TS 10 FILTER_BY_VALUE 1 2", "10=1"),
            ("TS.RANGE r - + FILTER_BY_VALUE .5 +3", "10=1 20=2.5"),
            ("TS.RANGE r - + FILTER_BY_VALUE -inf 0", "30=-3"),
            ("TS.RANGE r - + EMPTY", "10=1 20=2.5 30=-3 40=1E300 50=1E-1"),
        ],
    );
}

#[test]
fn buckets_of_each_aggregation() {
    let server = Server::start();
    let mut client = filled(&server);
    expect_rows(
        &mut client,
        &[
            (
                "TS.RANGE r - + AGGREGATION avg 20",
                "0=1 20=-2.5E-1 40=5E299",
            ),
            (
                "TS.REVRANGE r - + AGGREGATION AVG 20",
                "40=5E299 20=-2.5E-1 0=1",
            ),
            ("TS.RANGE r - + AGGREGATION COUNT 20", "0=1 20=2 40=2"),
            ("TS.RANGE r - + AGGREGATION count 20 COUNT 1", "0=1"),
            ("TS.RANGE r - + AGGREGATION std.p 20 COUNT 2", "0=0 20=2.75"),
            ("TS.RANGE r - + AGGREGATION twa 20 COUNT 1", "0=1.75"),
            (
                "TS.RANGE r - + AGGREGATION min,max,sum 20 COUNT 2",
                "0=1,1,1 20=-3,2.5,-5E-1",
            ),
        ],
    );
    server.client3().expect(&[(
        "TS.RANGE r - 20 AGGREGATION avg,count 10",
        "*2\r\n*3\r\n:10\r\n,1\r\n,1\r\n*3\r\n:20\r\n,2.5\r\n,1\r\n",
    )]);
}

#[test]
fn buckets_stamped_and_aligned() {
    let server = Server::start();
    let mut client = filled(&server);
    expect_rows(
        &mut client,
        &[
            (
                "TS.RANGE r - + AGGREGATION avg 20 BUCKETTIMESTAMP mid",
                "10=1 30=-2.5E-1 50=5E299",
            ),
            (
                "TS.RANGE r - + AGGREGATION avg 20 BUCKETTIMESTAMP ~",
                "10=1 30=-2.5E-1 50=5E299",
            ),
            (
                "TS.RANGE r - + AGGREGATION avg 20 BUCKETTIMESTAMP END",
                "20=1 40=-2.5E-1 60=5E299",
            ),
            (
                "TS.RANGE r - + AGGREGATION avg 20 EMPTY BUCKETTIMESTAMP +",
                "20=1 40=-2.5E-1 60=5E299",
            ),
            (
                "TS.RANGE r 5 + ALIGN start AGGREGATION avg 20",
                "5=1.75 25=5E299 45=1E-1",
            ),
            (
                "TS.RANGE r 5 45 AGGREGATION avg 20 ALIGN +",
                "5=1.75 25=5E299",
            ),
            (
                "TS.RANGE r 5 45 ALIGN 3 AGGREGATION avg 20",
                "3=1.75 23=5E299",
            ),
        ],
    );
}

#[test]
fn empty_buckets() {
    let server = Server::start();
    let mut client = filled(&server);
    expect_rows(
        &mut client,
        &[
            (
                "TS.RANGE r - 30 AGGREGATION sum 5 EMPTY",
                "10=1 15=0 20=2.5 25=0 30=-3",
            ),
            (
                "TS.RANGE r - 30 AGGREGATION max 5 EMPTY",
                "10=1 15=NaN 20=2.5 25=NaN 30=-3",
            ),
            (
                "TS.RANGE r - 30 AGGREGATION last 5 EMPTY",
                "10=1 15=1 20=2.5 25=2.5 30=-3",
            ),
            (
                "TS.RANGE r - + FILTER_BY_TS 10 20 AGGREGATION avg 10 EMPTY COUNT 1",
                "10=1",
            ),
            (
                "TS.RANGE r - + AGGREGATION avg 20 foo foo EMPTY",
                "0=1 20=-2.5E-1 40=5E299",
            ),
        ],
    );
}

#[test]
fn buckets_of_nan_are_rows_where_empty_ones_are_or_nan_is_counted() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("CLIENT TSVERSION 1.12", "+OK\r\n"),
        ("TS.CREATE k LABELS of nan", "+OK\r\n"),
        (
            "TS.MADD k 50 30 k 110 nan k 210 40 k 250 nan k 310 nan",
            "*5\r\n:50\r\n:110\r\n:210\r\n:250\r\n:310\r\n",
        ),
    ]);
    expect_rows(
        &mut client,
        &[
            ("TS.RANGE k 0 199 AGGREGATION sum 100 EMPTY", "0=30 100=0"),
            (
                "TS.RANGE k 100 399 AGGREGATION sum 100 EMPTY",
                "100=0 200=40 300=0",
            ),
            (
                "TS.REVRANGE k 100 399 AGGREGATION sum 100 EMPTY",
                "300=0 200=40 100=0",
            ),
            ("TS.RANGE k 0 199 AGGREGATION avg 100 EMPTY", "0=30 100=NaN"),
            ("TS.RANGE k 0 199 AGGREGATION last 100 EMPTY", "0=30 100=30"),
            ("TS.RANGE k 100 199 AGGREGATION avg 20 EMPTY", "100=NaN"),
            ("TS.RANGE k 300 399 AGGREGATION twa 100 EMPTY", "300=NaN"),
            ("TS.RANGE k - + AGGREGATION sum 100", "0=30 200=40"),
            (
                "TS.RANGE k - + AGGREGATION countnan 50",
                "100=1 250=1 300=1",
            ),
            (
                "TS.REVRANGE k - + AGGREGATION countnan 100",
                "300=1 200=1 100=1",
            ),
            (
                "TS.RANGE k 0 199 AGGREGATION countnan 50 EMPTY",
                "50=0 100=1",
            ),
            (
                "TS.RANGE k - + AGGREGATION countnan,sum 100",
                "0=0,30 100=1,0 200=1,40 300=1,0",
            ),
            (
                "TS.RANGE k - + AGGREGATION countall 100",
                "0=1 100=1 200=2 300=1",
            ),
        ],
    );
    let grouped = "TS.MRANGE 0 199 AGGREGATION sum 100 EMPTY FILTER of=nan GROUPBY of REDUCE sum";
    let reply = client.ask(grouped);
    assert!(reply.ends_with(&rows("0=30 100=0")), "{reply}");
    let each = client.ask("TS.MRANGE 0 199 AGGREGATION countnan 50 FILTER of=nan");
    assert!(each.ends_with(&rows("100=1")), "{each}");
}

#[test]
fn errors_come_in_the_order_of_the_checks() {
    let server = Server::start();
    let mut client = filled(&server);
    let bad = "ERR TSDB: Couldn't parse AGGREGATION";
    client.expect_errors(&[
        ("TS.RANGE r -", ARITY),
        ("TS.RANGE nokey x x", "ERR TSDB: the key does not exist"),
        ("TS.REVRANGE nokey - +", "ERR TSDB: the key does not exist"),
        ("TS.RANGE r x x COUNT x", "ERR TSDB: wrong fromTimestamp"),
        ("TS.RANGE r -1 +", "ERR TSDB: wrong fromTimestamp"),
        ("TS.RANGE r + +", "ERR TSDB: wrong fromTimestamp"),
        ("TS.RANGE r - -", "ERR TSDB: wrong toTimestamp"),
        ("TS.RANGE r - 99999999999999999999", "ERR TSDB: wrong toTimestamp"),
        ("TS.RANGE r - + COUNT", "ERR TSDB: COUNT argument is missing"),
        ("TS.RANGE r - + COUNT x AGGREGATION foo 1", "ERR TSDB: Couldn't parse COUNT"),
        (
            "TS.RANGE r - + AGGREGATION sum 5 AGGREGATION COUNT x",
            "ERR TSDB: Couldn't parse COUNT",
        ),
        ("TS.RANGE r - + COUNT 0", "ERR TSDB: Invalid COUNT value"),
        ("TS.RANGE r - + COUNT -1", "ERR TSDB: Invalid COUNT value"),
        ("TS.RANGE r - + AGGREGATION", bad),
        ("TS.RANGE r - + AGGREGATION avg", bad),
        ("TS.RANGE r - + AGGREGATION foo x", bad),
        ("TS.RANGE r - + AGGREGATION count COUNT 1", bad),
        ("TS.RANGE r - + AGGREGATION foo 0", "ERR TSDB: Unknown aggregation type"),
        ("TS.RANGE r - + AGGREGATION avg,foo 1", "ERR TSDB: Unknown aggregation type"),
        ("TS.RANGE r - + AGGREGATION avg,,max 1", "ERR TSDB: Empty aggregation type in list"),
        (
            "TS.RANGE r - + AGGREGATION sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum,sum 1",
            "ERR TSDB: Too many aggregation types",
        ),
        ("TS.RANGE r - + AGGREGATION avg 0", "ERR TSDB: bucketDuration must be greater than zero"),
        ("TS.RANGE r - + AGGREGATION avg -1", "ERR TSDB: bucketDuration must be greater than zero"),
    ]);
}

#[test]
fn flags_out_of_place_are_refused() {
    let server = Server::start();
    let mut client = filled(&server);
    let empty = "ERR TSDB: EMPTY flag should be the 3rd or 5th flag after AGGREGATION flag";
    let stamp =
        "ERR TSDB: BUCKETTIMESTAMP flag should be the 3rd or 4th flag after AGGREGATION flag";
    client.expect_errors(&[
        ("TS.RANGE r - + AGGREGATION avg 20 foo EMPTY", empty),
        ("TS.RANGE r - + EMPTY AGGREGATION avg 20", empty),
        (
            "TS.RANGE r - + AGGREGATION avg 10 foo foo BUCKETTIMESTAMP foo EMPTY",
            empty,
        ),
        (
            "TS.RANGE r - + AGGREGATION avg 20 foo foo BUCKETTIMESTAMP mid",
            stamp,
        ),
        (
            "TS.RANGE r - + BUCKETTIMESTAMP mid AGGREGATION avg 20",
            stamp,
        ),
        ("TS.RANGE r - + AGGREGATION avg 20 BUCKETTIMESTAMP", ARITY),
        (
            "TS.RANGE r - + AGGREGATION avg 20 BUCKETTIMESTAMP low",
            "ERR TSDB: unknown BUCKETTIMESTAMP parameter",
        ),
    ]);
}

#[test]
fn wrong_alignments_and_filters_are_refused() {
    let server = Server::start();
    let mut client = filled(&server);
    client.expect_errors(&[
        ("TS.RANGE r - + ALIGN", ARITY),
        (
            "TS.RANGE r - + ALIGN foo FILTER_BY_VALUE x 1",
            "ERR TSDB: unknown ALIGN parameter",
        ),
        (
            "TS.RANGE r 5 45 ALIGN -3 AGGREGATION avg 20",
            "ERR TSDB: unknown ALIGN parameter",
        ),
        (
            "TS.RANGE r - + ALIGN start FILTER_BY_TS x",
            "ERR TSDB: ALIGN parameter can only be used with AGGREGATION",
        ),
        (
            "TS.RANGE r - + ALIGN - AGGREGATION avg 20",
            "ERR TSDB: start alignment can only be used with explicit start timestamp",
        ),
        (
            "TS.RANGE r - + ALIGN end AGGREGATION avg 20",
            "ERR TSDB: end alignment can only be used with explicit end timestamp",
        ),
        (
            "TS.RANGE r - + FILTER_BY_VALUE 1",
            "ERR TSDB: FILTER_BY_VALUE one or more arguments are missing",
        ),
        (
            "TS.RANGE r - + FILTER_BY_TS x FILTER_BY_VALUE x 1",
            "ERR TSDB: Couldn't parse MIN",
        ),
        (
            "TS.RANGE r - + FILTER_BY_VALUE 1 nan",
            "ERR TSDB: Couldn't parse MAX",
        ),
        (
            "TS.RANGE r - + FILTER_BY_TS EMPTY",
            "ERR TSDB: FILTER_BY_TS one or more arguments are missing",
        ),
    ]);
    let many = format!("TS.RANGE r - + FILTER_BY_TS{}", " 7".repeat(129));
    client.expect_errors(&[(&many, "ERR TSDB: FILTER_BY_TS takes at most 128 timestamps")]);
}

#[test]
fn a_long_range_is_whole_and_in_order() {
    let server = Server::start();
    let mut client = server.client();
    let samples = 100_000_usize;
    client.expect(&[("TS.CREATE k", "+OK\r\n")]);
    let mut words = vec!["TS.MADD".to_owned()];
    // Every other sample is late.
    for i in (0..samples).step_by(2).chain((1..samples).step_by(2)) {
        words.extend(["k".to_owned(), i.to_string(), i.to_string()]);
    }
    let reply = client.ask_words(&words);
    assert!(reply.starts_with("*100000\r\n:0\r\n:2\r\n"));
    let reply = client.ask("TS.RANGE k - +");
    let mut expected = format!("*{samples}\r\n");
    for i in 0..samples {
        expected.push_str(&format!("*2\r\n:{i}\r\n+{i}\r\n"));
    }
    assert!(reply == expected, "{} bytes", reply.len());
}
