//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use crate::harness::{Server, encoded, eventually, text};

#[test]
fn commands_are_queued_and_run_together() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client3());
    client.expect(&[
        ("MULTI", "+OK\r\n"),
        ("TS.ADD k 1 1", "+QUEUED\r\n"),
        ("TS.ADD k 2 x", "+QUEUED\r\n"),
        ("TS.MADD k 3 3 k 4 4", "+QUEUED\r\n"),
        ("TS.GET k", "+QUEUED\r\n"),
    ]);
    assert!(
        other
            .ask("TS.GET k")
            .starts_with("-ERR TSDB: the key does not exist")
    );
    client.expect(&[
        (
            "EXEC",
            "*4\r\n:1\r\n-ERR TSDB: invalid value\r\n*2\r\n:3\r\n:4\r\n*2\r\n:4\r\n+4\r\n",
        ),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("TS.DEL k - +", "+QUEUED\r\n"),
        ("DISCARD", "+OK\r\n"),
        ("DISCARD", "-ERR DISCARD without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
    ]);
    other.expect(&[
        ("MULTI", "+OK\r\n"),
        ("TS.GET k", "+QUEUED\r\n"),
        ("TS.RANGE k 3 +", "+QUEUED\r\n"),
        (
            "EXEC",
            "*2\r\n*2\r\n:4\r\n,4\r\n*2\r\n*2\r\n:3\r\n,3\r\n*2\r\n:4\r\n,4\r\n",
        ),
    ]);
}

#[test]
fn what_cannot_be_queued_aborts() {
    let server = Server::start();
    let mut client = server.client();
    let aborted = "EXECABORT Transaction discarded because of previous errors.";
    for (line, refusal) in [
        (
            "nosuch a",
            "ERR unknown command 'nosuch', with args beginning with: 'a' ",
        ),
        (
            "TS.ADD k",
            "ERR wrong number of arguments for 'ts.add' command",
        ),
        (
            "CLIENT FOO",
            "ERR unknown subcommand 'FOO'. Try CLIENT HELP.",
        ),
        ("SAVE", "ERR Command not allowed inside a transaction"),
    ] {
        client.expect(&[("MULTI", "+OK\r\n"), ("TS.ADD k 1 1", "+QUEUED\r\n")]);
        client.expect_errors(&[(line, refusal), ("EXEC", aborted)]);
    }
    client.expect(&[("EXISTS k", ":0\r\n"), ("MULTI", "+OK\r\n")]);
    client.expect_errors(&[
        ("MULTI", "ERR MULTI calls can not be nested"),
        ("WATCH k", "ERR WATCH inside MULTI is not allowed"),
    ]);
    client.expect(&[
        ("PING", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n+PONG\r\n"),
        ("MULTI", "+OK\r\n"),
    ]);
    client.expect_errors(&[
        (
            "EXEC x",
            "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' \
             command",
        ),
        ("EXEC", "ERR EXEC without MULTI"),
    ]);
    client.expect(&[("MULTI", "+OK\r\n")]);
    for line in ["CLIENT REPLY SKIP", "MONITOR", "TS.READ k - BLOCK 0 1"] {
        client.expect(&[(line, "+QUEUED\r\n")]);
    }
    client.expect(&[(
        "EXEC",
        "*3\r\n-ERR CLIENT REPLY is not allowed inside EXEC\r\n-ERR MONITOR isn't allowed for \
         DENY BLOCKING client\r\n-TSDB: blocking TS.READ (with BLOCK) is not allowed inside \
         MULTI, EVAL, or a deny-blocking context\r\n",
    )]);
}

#[test]
fn a_watched_key_that_changes_stops_exec() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    for (before, change, stops) in [
        ("PING", "TS.CREATE w", true),
        ("PING", "TS.ADD w 1 1", true),
        ("PING", "TS.ADD w 1 x", true),
        ("PING", "TS.MADD w 2 2", true),
        ("PING", "TS.DEL w 50 60", true),
        ("PING", "TS.GET w", false),
        ("PING", "TS.ADD unwatched 1 1", false),
        ("PING", "EXPIRE w 100", true),
        ("PING", "PERSIST w", true),
        ("PING", "RENAME w x", true),
        ("PING", "RENAME x w", true),
        ("PING", "DEL w", true),
        ("PING", "DEL w", false),
        ("PING", "FLUSHALL", false),
        ("TS.CREATE w", "FLUSHALL", true),
    ] {
        other.ask(before);
        client.expect(&[("WATCH w v", "+OK\r\n")]);
        other.ask(change);
        client.expect(&[
            ("MULTI", "+OK\r\n"),
            ("PING", "+QUEUED\r\n"),
            ("EXEC", if stops { "*-1\r\n" } else { "*1\r\n+PONG\r\n" }),
        ]);
    }
    for forget in ["UNWATCH", "RESET"] {
        client.ask("WATCH w");
        client.ask(forget);
        other.ask("TS.ADD w 9 9");
        client.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "*0\r\n")]);
    }
    let mut resp3 = server.client3();
    resp3.ask("WATCH w");
    other.ask("TS.ADD w 10 1");
    resp3.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "_\r\n")]);
}

const WATCH: [(&str, &str); 3] = [
    ("WATCH k", "+OK\r\n"),
    ("MULTI", "+OK\r\n"),
    ("PING", "+QUEUED\r\n"),
];
const SOON_GONE: [(&str, &str); 2] = [("TS.ADD k 1 1", ":1\r\n"), ("PEXPIRE k 20", ":1\r\n")];

#[test]
fn a_watched_key_that_expires_stops_exec_and_one_that_had_does_not() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    let mut late = 0;
    for round in 0..10 {
        eventually("a watch before the end of k", || {
            other.expect(&SOON_GONE);
            client.expect(&WATCH);
            // Where others take the cores, it may end before it is watched.
            let is_there = !other.ask("PTTL k").starts_with(":-");
            if !is_there {
                late += 1;
                client.expect(&[("DISCARD", "+OK\r\n")]);
            }
            is_there
        });
        eventually("the end of k", || other.ask("EXISTS k") == ":0\r\n");
        client.expect(&[("EXEC", "*-1\r\n")]);
        other.expect(&SOON_GONE);
        eventually("the end of k", || other.ask("EXISTS k") == ":0\r\n");
        client.expect(&WATCH);
        // Its removal, whoever does it, changes nothing for who watches now.
        let removed = 2 * round + 2 + late;
        eventually("a removal", || other.info("expired_keys") >= removed);
        client.expect(&[("EXEC", "*1\r\n+PONG\r\n")]);
    }
}

/// Each EXEC adds a sample with the same value to two series of other loops'
/// shards; who reads both in an EXEC must see both or none.
#[test]
fn nobody_sees_half_an_exec() {
    let server = Server::start();
    let rounds = 300;
    std::thread::scope(|threads| {
        for writer in 0..2 {
            let mut client = server.client();
            threads.spawn(move || {
                for i in 0..rounds {
                    let at = 2 * i + writer;
                    let lines = [
                        "MULTI".to_owned(),
                        format!("TS.ADD a {at} {at}"),
                        format!("TS.ADD b {at} {at}"),
                        "EXEC".to_owned(),
                    ];
                    let pipeline: Vec<u8> = lines.iter().flat_map(|line| encoded(line)).collect();
                    client.send(&pipeline);
                    for _ in 0..lines.len() {
                        client.reply();
                    }
                }
            });
        }
        let mut reader = server.client();
        for _ in 0..rounds {
            let lines = ["MULTI", "TS.RANGE a - +", "TS.RANGE b - +", "EXEC"];
            let pipeline: Vec<u8> = lines.iter().flat_map(|line| encoded(line)).collect();
            reader.send(&pipeline);
            (0..3).for_each(|_| drop(reader.reply()));
            let both = text(&reader.reply());
            let both = both.strip_prefix("*2\r\n").unwrap();
            let (a, b) = both.split_at(both.len() / 2);
            assert_eq!(a, b);
        }
    });
}

#[test]
fn reset_and_the_end_of_a_connection_end_a_transaction() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("MULTI", "+OK\r\n"),
        ("TS.ADD k 1 1", "+QUEUED\r\n"),
        ("RESET", "+RESET\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("TS.ADD k 1 1", "+QUEUED\r\n"),
        ("QUIT", "+OK\r\n"),
    ]);
    server.client().expect(&[("EXISTS k", ":0\r\n")]);
}

#[test]
fn a_long_exec_stops_reading_and_still_writes() {
    let server = Server::start();
    let mut client = server.client();
    for chunk in 0..20 {
        let mut words = vec!["TS.MADD".to_owned()];
        for at in 0..50_000 {
            words.extend([
                "k".to_owned(),
                (chunk * 50_000 + at).to_string(),
                "1".to_owned(),
            ]);
        }
        if chunk == 0 {
            client.ask("TS.CREATE k");
        }
        client.ask_words(&words);
    }
    client.expect(&[("MULTI", "+OK\r\n")]);
    let read = encoded("TS.RANGE k - + AGGREGATION std.p 3600000");
    client.send(&read.repeat(3000));
    (0..3000).for_each(|_| assert_eq!(text(&client.reply()), "+QUEUED\r\n"));
    client.expect(&[
        ("COPY k copied", "+QUEUED\r\n"),
        ("TS.ADD last 1 1", "+QUEUED\r\n"),
    ]);
    client.send(&encoded("EXEC"));
    let mut other = server.client();
    other.wait_until("EXISTS last", ":1\r\n");
    let replies = text(&client.reply());
    let late = "-ERR EXEC has run for more than 1 second: commands that read, COPY and RESTORE \
                are refused\r\n";
    assert!(
        replies.starts_with("*3002\r\n*1\r\n*2\r\n"),
        "{}",
        &replies[..100]
    );
    assert!(replies.ends_with(&format!("{late}{late}:1\r\n")));
}

#[test]
fn many_keys_can_be_watched() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    let mut words = vec!["WATCH".to_owned()];
    words.extend((0..50_000).map(|i| format!("k{i}")));
    assert_eq!(client.ask_words(&words), "+OK\r\n");
    other.ask("TS.ADD k49999 1 1");
    client.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "*-1\r\n")]);
    assert_eq!(other.info("watching_clients"), 0);
}

#[test]
fn commands_of_many_and_of_long_words_are_queued_as_well() {
    let server = Server::start();
    let mut client = server.client();
    let long = "v".repeat(1000);
    let create = format!("TS.CREATE k RETENTION 0 LABELS a {long} b 2 c 3");
    client.expect(&[
        ("MULTI", "+OK\r\n"),
        (&create, "+QUEUED\r\n"),
        ("TS.MADD k 1 1 k 2 2 k 3 3", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n*3\r\n:1\r\n:2\r\n:3\r\n"),
    ]);
}
