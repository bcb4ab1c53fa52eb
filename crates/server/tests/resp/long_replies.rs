//! Replies that would be longer than they may: refused at once, in words, and
//! without a byte of memory that writers need.

use crate::harness::{Server, encoded, text};
use crate::resp::memory::{anonymous_bytes, insist};

const BUDGET: u64 = 64 << 20;
const MOST: u64 = BUDGET + BUDGET / 5;
/// Two samples, so far apart that the empty seconds between are a billion rows.
const FAR: i64 = 1_000_000_000_000;

fn server() -> Server {
    Server::with(&["--wal", "off", "--memory", "64mb"])
}

#[test]
fn a_billion_empty_buckets_are_refused_before_they_are_walked() {
    let server = server();
    let mut client = server.client();
    let process = client.info("process_id");
    for n in 0..40 {
        client.ask(&format!("TS.CREATE e{n} LABELS x y n {n}"));
        client.ask(&format!("TS.MADD e{n} 0 1 e{n} {FAR} 2"));
    }
    let asked = [
        "TS.RANGE e1 - + AGGREGATION count 1000 EMPTY",
        "TS.REVRANGE e1 - + AGGREGATION count 1000 EMPTY",
        "TS.RANGE e1 - + AGGREGATION twa 1000 EMPTY",
        "TS.NRANGE 2 e1 e2 - + AGGREGATION count count 1000 EMPTY",
        "TS.MRANGE - + AGGREGATION count 1000 EMPTY FILTER x=y",
        "TS.MREVRANGE - + AGGREGATION count 1000 EMPTY FILTER x=y",
        "TS.MRANGE - + AGGREGATION count 1000 EMPTY FILTER x=y GROUPBY x REDUCE sum",
        "TS.MREVRANGE - + AGGREGATION count 1000 EMPTY FILTER x=y GROUPBY n REDUCE sum",
    ];
    for line in asked {
        let reply = client.ask(line);
        for said in ["in the 8388608 bytes", "COUNT", "narrower", "--memory"] {
            assert!(reply.contains(said), "{line}: {reply}");
        }
        let is_grouped = line.contains("GROUPBY");
        assert!(
            is_grouped || reply.contains("has 1000000001 rows"),
            "{line}: {reply}"
        );
        assert!(anonymous_bytes(process) < MOST, "{line}");
        assert_eq!(
            client.ask("TS.ADD other * 1 ON_DUPLICATE last").as_bytes()[0],
            b':'
        );
    }
    assert!(client.info("refused_replies") > 6);
    assert_eq!(client.info("memory_refused"), 0);
    let few = client.ask("TS.RANGE e1 - + COUNT 3 AGGREGATION count 1000 EMPTY");
    assert_eq!(
        few,
        "*3\r\n*2\r\n:0\r\n+1\r\n*2\r\n:1000\r\n+0\r\n*2\r\n:2000\r\n+0\r\n"
    );
}

/// What EXEC answers is one reply: queries that no longer fit are refused, what
/// is short or writes is answered as ever.
#[test]
fn replies_of_a_transaction_are_no_longer_than_one_may_be() {
    // So few that EXEC is done within its time.
    const QUERIES: usize = 1;
    let server = server();
    let mut client = server.client();
    let process = client.info("process_id");
    client.ask("TS.CREATE e LABELS x y");
    client.ask("TS.MADD e 0 1 e 1000000000 2");
    client.ask("MULTI");
    for _ in 0..QUERIES {
        client.ask("TS.RANGE e - + COUNT 300000 AGGREGATION count 1000 EMPTY");
        client.ask("TS.MRANGE - + COUNT 300000 AGGREGATION count 1000 EMPTY FILTER x=y");
    }
    for line in ["DUMP e", "TS.ADD e 2000000000 3", "TS.GET e"] {
        assert_eq!(client.ask(line), "+QUEUED\r\n");
    }
    let reply = client.ask("EXEC");
    assert!(reply.len() < 9 << 20, "{} bytes", reply.len());
    assert!(reply.starts_with("*5\r\n*300000\r\n"));
    let refused = reply.matches("the replies of EXEC do not fit in the 8388608 bytes");
    assert_eq!(refused.count(), 2 * QUERIES - 1);
    assert!(reply.ends_with("\r\n:2000000000\r\n*2\r\n:2000000000\r\n+3\r\n"));
    assert!(anonymous_bytes(process) < MOST);
    // The next one begins anew.
    for line in [
        "MULTI",
        "TS.RANGE e - + COUNT 300000 AGGREGATION count 1000 EMPTY",
    ] {
        client.ask(line);
    }
    assert!(client.ask("EXEC").starts_with("*1\r\n*300000\r\n"));
}

#[test]
fn a_dump_that_is_longer_than_a_reply_may_be_is_refused() {
    let server = Server::with(&["--wal", "off", "--memory", "16mb"]);
    let mut client = server.client();
    client.ask("TS.CREATE k");
    let mut at = 0u64;
    let refused = |reply: &str| reply.contains("more bytes than fit in the 2097152 bytes");
    let is_refused = (0..100).any(|_| {
        let mut line = "TS.MADD".to_owned();
        for _ in 0..20_000 {
            at += 1;
            let value = f64::from_bits(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | 0x3ff0 << 48);
            line.push_str(&format!(" k {at} {value}"));
        }
        insist(&mut client, &line);
        let reply = client.ask("DUMP k");
        assert!(reply.starts_with('$') || refused(&reply), "{reply}");
        refused(&reply)
    });
    assert!(is_refused, "no dump was refused");
}

#[test]
fn lists_of_keys_and_labels_that_are_longer_than_a_reply_may_be_are_refused() {
    let server = Server::with(&["--wal", "off", "--memory", "32mb"]);
    let mut client = server.client();
    let long = "x".repeat(2000);
    let of_labels = [
        "TS.QUERYLABELS LABELS",
        "TS.QUERYLABELS VALUES a",
        "TS.QUERYLABELS VALUES a FILTER b=c",
    ];
    let of_keys = ["KEYS *", "SCAN 0 COUNT 1000000"];
    for (create, lists) in [
        ("TS.CREATE # LABELS b c a LONG# LONG# d", &of_labels[..]),
        ("TS.CREATE LONG#", &of_keys),
    ] {
        let create = create.replace("LONG", &long);
        for n in 0..2_200 {
            insist(&mut client, &create.replace('#', &n.to_string()));
            if n == 1_000 {
                for line in lists {
                    assert!(client.ask(line).starts_with('*'), "{line}");
                }
            }
        }
        for line in lists {
            let reply = client.ask(line);
            assert!(reply.contains(" 4194304 bytes "), "{line}: {reply}");
        }
        assert!(client.ask("SCAN 0 COUNT 100").starts_with("*2\r\n"));
        client.expect(&[("FLUSHALL", "+OK\r\n")]);
    }
    assert_eq!(client.info("refused_replies"), 5);
}

/// Each series has less than may be in one reply, all together have many times
/// the budget: it is sent as it is made.
#[test]
fn many_long_series_of_empty_buckets_are_sent_one_after_the_other() {
    let server = server();
    let mut client = server.client();
    let process = client.info("process_id");
    for n in 0..40 {
        client.ask(&format!("TS.CREATE e{n} LABELS x y n {n}"));
        client.ask(&format!("TS.MADD e{n} 0 1 e{n} 150000000 2"));
    }
    for group in ["", " GROUPBY n REDUCE sum"] {
        let line = format!("TS.MRANGE - + AGGREGATION count 1000 EMPTY FILTER x=y{group}");
        // Millions of rows: read to the end of the connection.
        let mut reader = server.client();
        reader.send(&[encoded(&line), encoded("QUIT")].concat());
        let reply = text(&reader.rest());
        assert!(reply.starts_with("*40\r\n"));
        assert_eq!(reply.matches("*2\r\n:150000000\r\n").count(), 40, "{line}");
        let held = client.info("memory_anonymous_peak_bytes");
        assert!(held.max(anonymous_bytes(process)) < MOST, "{line}: {held}");
    }
}

#[test]
fn more_samples_than_fit_are_refused_while_they_are_written() {
    let server = Server::with(&["--wal", "off", "--memory", "16mb"]);
    let mut client = server.client();
    client.ask("TS.CREATE k");
    for from in (0..200_000).step_by(10_000) {
        let mut line = "TS.MADD".to_owned();
        (from..from + 10_000).for_each(|at| line.push_str(&format!(" k {at} {at}")));
        client.ask(&line);
    }
    let refused = client.ask("TS.RANGE k - +");
    assert!(
        refused.starts_with("-ERR TSDB: the reply has "),
        "{refused}"
    );
    assert!(refused.contains("in the 2097152 bytes"), "{refused}");
    assert!(
        client
            .ask("TS.RANGE k - + COUNT 50000")
            .starts_with("*50000\r\n")
    );
    client.expect(&[("CONFIG SET maxmemory 1gb", "+OK\r\n")]);
    assert!(client.ask("TS.RANGE k - +").starts_with("*200000\r\n"));
}
