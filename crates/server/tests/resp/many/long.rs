//! Replies of many parts, and queries of many words.

use crate::harness::{Client, Server, encoded, text, words};
use latewood_wire::resp::encode_command;

const SERIES: usize = 3_000;

/// Series `s0000` on, each with `samples` samples: its number at 1, 2, ...
fn filled(server: &Server, samples: usize) -> Client {
    let mut client = server.client();
    let mut commands = Vec::new();
    for i in 0..SERIES {
        let create = format!("TS.CREATE s{i:04} LABELS all 1 odd {}", i % 2);
        encode_command(&mut commands, &words(&create));
        for at in 1..=samples {
            let add = format!("TS.ADD s{i:04} {at} {i}");
            encode_command(&mut commands, &words(&add));
        }
    }
    client.send(&commands);
    for _ in 0..SERIES * (1 + samples) {
        assert!(!client.reply().starts_with(b"-"));
    }
    client
}

#[test]
fn every_series_stands_in_a_reply_of_many_parts() {
    let server = Server::start();
    let mut client = filled(&server, 30);
    let mut expected = format!("*{SERIES}\r\n");
    for i in 0..SERIES {
        expected.push_str(&format!("*3\r\n$5\r\ns{i:04}\r\n*0\r\n*30\r\n"));
        for at in 1..=30 {
            expected.push_str(&format!("*2\r\n:{at}\r\n+{i}\r\n"));
        }
    }
    // The next command's reply comes after the last part.
    let range = encoded("TS.MRANGE - + FILTER all=1");
    client.send(&[range, encoded("PING")].concat());
    assert!(text(&client.reply()) == expected, "rows differ");
    assert_eq!(text(&client.reply()), "+PONG\r\n");

    let mget = client.ask("TS.MGET FILTER all=1 odd=1");
    assert!(mget.starts_with(&format!("*{}\r\n*3\r\n$5\r\ns0001\r\n", SERIES / 2)));
    assert!(mget.ends_with("s2999\r\n*0\r\n*2\r\n:30\r\n+2999\r\n"));
    let keys = client.ask("TS.QUERYINDEX all=1 odd!=1");
    assert!(keys.starts_with(&format!("*{}\r\n$5\r\ns0000\r\n", SERIES / 2)));
    let sum = (0..SERIES).sum::<usize>();
    let grouped = client.ask("TS.MREVRANGE - + COUNT 1 FILTER all=1 GROUPBY all REDUCE sum");
    assert_eq!(
        grouped,
        format!("*1\r\n*3\r\n$5\r\nall=1\r\n*0\r\n*1\r\n*2\r\n:30\r\n+{sum}\r\n")
    );
    let groups = client.ask("TS.MRANGE 30 + FILTER all=1 GROUPBY odd REDUCE max");
    assert!(groups.contains("odd=0\r\n*0\r\n*1\r\n*2\r\n:30\r\n+2998\r\n"));
}

#[test]
fn a_reply_is_of_the_moment_it_was_asked_for() {
    let server = Server::start();
    let mut client = filled(&server, 30);
    // Deletions of the same connection come after the whole reply.
    client.send(
        &[
            encoded("TS.MRANGE - + FILTER all=1"),
            encoded("FLUSHALL"),
            encoded("TS.MRANGE - + FILTER all=1"),
        ]
        .concat(),
    );
    assert!(text(&client.reply()).ends_with(":30\r\n+2999\r\n"));
    assert_eq!(text(&client.reply()), "+OK\r\n");
    assert_eq!(text(&client.reply()), "*0\r\n");
}

#[test]
fn a_muted_query_sends_nothing() {
    let server = Server::start();
    let mut client = filled(&server, 1);
    client.send(
        &[
            encoded("CLIENT REPLY SKIP"),
            encoded("TS.MRANGE - + FILTER all=1"),
            encoded("PING"),
        ]
        .concat(),
    );
    assert_eq!(text(&client.reply()), "+PONG\r\n");
}

#[test]
fn thousands_of_filters_values_and_names() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("TS.CREATE k LABELS a 4999 b 1", "+OK\r\n")]);
    let one = "*1\r\n$1\r\nk\r\n";
    let mut filters = vec!["TS.QUERYINDEX"];
    filters.resize(5000, "b=1");
    assert_eq!(client.ask_words(&filters), one);
    let values: Vec<String> = (0..5000).map(|i| i.to_string()).collect();
    let list = format!("a=({})", values.join(","));
    assert_eq!(client.ask_words(&["TS.QUERYINDEX", &list]), one);
    let names = |count: usize| {
        let mut words = vec!["TS.MGET".to_owned(), "SELECTED_LABELS".to_owned()];
        words.extend((0..count).map(|i| format!("n{i}")));
        words.extend(["FILTER".to_owned(), "b=1".to_owned()]);
        words
    };
    assert!(
        client
            .ask_words(&names(50))
            .starts_with("*1\r\n*3\r\n$1\r\nk\r\n*50\r\n")
    );
    assert_eq!(
        client.ask_words(&names(51)),
        "-ERR TSDB: reached max size for SELECT_LABELS\r\n"
    );
}

#[test]
fn the_time_of_a_long_reply_is_that_of_all_its_parts() {
    let server = Server::start();
    let mut client = filled(&server, 3);
    client.expect(&[
        ("CONFIG RESETSTAT", "+OK\r\n"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n"),
    ]);
    for around in [["PING", "PING"], ["MULTI", "EXEC"]] {
        client.ask("SLOWLOG RESET");
        client.ask(around[0]);
        client.ask("TS.MGET FILTER all=1");
        client.ask(around[1]);
        let slow = client.ask("SLOWLOG GET 9");
        assert_eq!(slow.matches("TS.MGET").count(), 1, "{slow}");
        let usec = |text: &str| {
            let figures = text.split("cmdstat_ts.mget:").nth(1).unwrap();
            let usec = figures.split("usec=").nth(1).unwrap();
            usec.split(',').next().unwrap().parse::<u64>().unwrap()
        };
        let entry = &slow[..slow.find("TS.MGET").unwrap()];
        let logged = entry.trim_end().rsplit("\r\n:").next().unwrap();
        let logged: u64 = logged.split("\r\n").next().unwrap().parse().unwrap();
        let stats = client.ask("INFO commandstats");
        let calls = 1 + u64::from(around[0] == "MULTI");
        assert!(
            stats.contains(&format!("cmdstat_ts.mget:calls={calls},")),
            "{stats}"
        );
        assert!(logged <= usec(&stats) && logged > 0);
        let histogram = client.ask("LATENCY HISTOGRAM ts.mget");
        assert!(
            histogram.contains(&format!("calls\r\n:{calls}\r\n")),
            "{histogram}"
        );
    }
}
