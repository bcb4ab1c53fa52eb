//! TS.READ, with and without BLOCK.

use crate::harness::{Client, Server, encoded, text};

#[test]
fn reading_from_a_cursor() {
    let server = Server::start();
    let mut client = server.client();
    client.ask("TS.MADD k 1 1");
    for i in 1..=3 {
        client.ask(&format!("TS.ADD k {i} {i}"));
    }
    client.expect(&[
        ("TS.READ k 2", "*2\r\n*2\r\n:2\r\n+2\r\n*2\r\n:3\r\n+3\r\n"),
        ("TS.READ k - MAX_COUNT 1", "*1\r\n*2\r\n:1\r\n+1\r\n"),
        ("TS.READ k +", "*1\r\n*2\r\n:3\r\n+3\r\n"),
        ("TS.READ k $", "*0\r\n"),
        (
            "TS.READ k 1 block 0 2 max_count 2",
            "*2\r\n*2\r\n:1\r\n+1\r\n*2\r\n:2\r\n+2\r\n",
        ),
        ("TS.READ nokey -", "*0\r\n"),
        ("TS.READ nokey $ BLOCK 10 1", "*0\r\n"),
        (
            "TS.READ k 2 BLOCK 10 5",
            "*2\r\n*2\r\n:2\r\n+2\r\n*2\r\n:3\r\n+3\r\n",
        ),
    ]);
    server
        .client3()
        .expect(&[("TS.READ k +", "*1\r\n*2\r\n:3\r\n,3\r\n")]);
    client.expect_errors(&[
        ("TS.READ k x", "TSDB: invalid timestamp"),
        ("TS.READ k -1", "TSDB: invalid timestamp"),
        (
            "TS.READ k - BLOCK",
            "ERR wrong number of arguments for 'ts.read' command",
        ),
        (
            "TS.READ k x BLOCK x 1",
            "TSDB: BLOCK milliseconds must be a non-negative integer",
        ),
        (
            "TS.READ k - BLOCK -1 1",
            "TSDB: BLOCK milliseconds must be a non-negative integer",
        ),
        (
            "TS.READ k - BLOCK 1 x",
            "TSDB: BLOCK milliseconds must be a non-negative integer",
        ),
        (
            "TS.READ k - BLOCK 1 0",
            "TSDB: BLOCK min_count must be a positive integer",
        ),
        (
            "TS.READ k - MAX_COUNT 0",
            "TSDB: MAX_COUNT must be a positive integer",
        ),
        (
            "TS.READ k - BLOCK 1 5 MAX_COUNT 4",
            "TSDB: BLOCK min_count must be <= MAX_COUNT",
        ),
        (
            "TS.READ k - FOO",
            "ERR wrong number of arguments for 'ts.read' command",
        ),
        (
            "TS.READ k",
            "ERR wrong number of arguments for 'ts.read' command",
        ),
    ]);
}

#[test]
fn nothing_is_newer_than_the_end_of_time() {
    let server = Server::start();
    let mut client = server.client();
    client.ask("TS.ADD k 9223372036854775807 1");
    let newest = "*1\r\n*2\r\n:9223372036854775807\r\n+1\r\n";
    client.expect(&[
        ("TS.READ k +", newest),
        ("TS.READ k 9223372036854775807", newest),
        ("TS.READ k $", "*0\r\n"),
        ("TS.READ k $ BLOCK 10 1", "*0\r\n"),
        ("TS.READ k $ BLOCK 10 5000", "*0\r\n"),
    ]);
}

/// Sends a command that blocks and waits until it does.
fn block(client: &mut Client, other: &mut Client, line: &str) {
    let before = other.info("blocked_clients");
    client.send(&encoded(line));
    while other.info("blocked_clients") == before {
        std::thread::yield_now();
    }
}

#[test]
fn samples_that_arrive_wake_a_reader() {
    let server = Server::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    writer.ask("TS.ADD k 1 1");
    for (write, expected) in [
        ("TS.ADD k 10 1", "*1\r\n*2\r\n:10\r\n+1\r\n"),
        ("TS.MADD k 20 2", "*1\r\n*2\r\n:20\r\n+2\r\n"),
        ("TS.INCRBY k 3 TIMESTAMP 30", "*1\r\n*2\r\n:30\r\n+5\r\n"),
        ("TS.ADD k 40 4 LABELS a b", "*1\r\n*2\r\n:40\r\n+4\r\n"),
    ] {
        block(&mut reader, &mut writer, "TS.READ k $ BLOCK 0 1");
        // One that is older than the cursor wakes nobody.
        writer.ask("TS.ADD k 1 2 ON_DUPLICATE LAST");
        writer.ask(write);
        assert_eq!(text(&reader.reply()), expected, "after {write}");
    }
    block(
        &mut reader,
        &mut writer,
        "TS.READ new - BLOCK 0 3 MAX_COUNT 4",
    );
    writer.send(b"TS.ADD new 1 1\r\nTS.ADD new 2 1\r\nTS.ADD new 3 1\r\n");
    assert!(text(&reader.reply()).starts_with("*3\r\n"));
    (0..3).for_each(|_| drop(writer.reply()));
    assert_eq!(writer.info("blocked_clients"), 0);
}

#[test]
fn a_reader_who_waits_for_many_samples_is_woken_by_the_last_of_them() {
    let server = Server::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    let samples = 20_000;
    for first in (1..samples).step_by(1000) {
        let adds = (first..first + 1000).map(|at| {
            let value = if at % 7 == 0 { "nan" } else { "1" };
            encoded(&format!("TS.ADD k {at} {value}"))
        });
        writer.send(&adds.flatten().collect::<Vec<_>>());
        (0..1000).for_each(|_| drop(writer.reply()));
    }
    // From 11 on there are 100 less, and one more at the end of time.
    writer.expect(&[
        ("TS.DEL k 5000 5099", ":100\r\n"),
        ("TS.ADD k 9223372036854775807 1", ":9223372036854775807\r\n"),
    ]);
    let there = samples - 10 - 100 + 1;
    let more = 3;
    let read = format!("TS.READ k 11 BLOCK 0 {}", there + more);
    block(&mut reader, &mut writer, &read);
    // One is too old, and one takes the place of another.
    writer.ask("TS.ADD k 10 2 ON_DUPLICATE LAST");
    writer.ask("TS.ADD k 11 2 ON_DUPLICATE LAST");
    for at in [5000, 5050, 30_000] {
        assert_eq!(writer.info("blocked_clients"), 1);
        writer.expect(&[(&format!("TS.ADD k {at} nan"), &format!(":{at}\r\n"))]);
    }
    let reply = text(&reader.reply());
    assert!(reply.starts_with(&format!("*{}\r\n", there + more)));
    let answered = format!("TS.READ k 11 BLOCK 0 {}", there + more);
    assert_eq!(reader.ask(&answered), reply);
}

#[test]
fn a_compaction_wakes_a_reader_and_stops_exec() {
    let server = Server::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    for line in [
        "TS.CREATE s",
        "TS.CREATE d",
        "TS.CREATERULE s d AGGREGATION sum 10",
    ] {
        assert_eq!(writer.ask(line), "+OK\r\n");
    }
    let mut watcher = server.client();
    watcher.ask("WATCH d");
    block(&mut reader, &mut writer, "TS.READ d - BLOCK 0 1");
    writer.expect(&[("TS.ADD s 1 2", ":1\r\n"), ("TS.ADD s 25 1", ":25\r\n")]);
    assert_eq!(text(&reader.reply()), "*1\r\n*2\r\n:0\r\n+2\r\n");
    watcher.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "*-1\r\n")]);
}

#[test]
fn a_key_that_goes_ends_the_wait() {
    let server = Server::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    for end in ["DEL k", "FLUSHALL"] {
        writer.ask("TS.ADD k 5 5");
        block(&mut reader, &mut writer, "TS.READ k $ BLOCK 0 1");
        writer.ask(end);
        assert_eq!(text(&reader.reply()), "*0\r\n", "after {end}");
    }
}

#[test]
fn a_reader_who_lost_the_permission_meanwhile_gets_no_samples() {
    let server = Server::start();
    let mut admin = server.client();
    for (name, rule) in [
        ("ann", "ACL SETUSER ann resetkeys ~b"),
        ("bob", "ACL SETUSER bob -ts.read"),
        ("cid", "ACL SETUSER cid -@all"),
        ("dan", "ACL SETUSER dan resetkeys %W~a"),
        ("eve", "ACL DELUSER eve"),
    ] {
        for block_ms in [0, 300] {
            let mut reader = server.client();
            admin.ask(&format!("ACL SETUSER {name} reset on nopass ~a +ts.read"));
            reader.ask(&format!("AUTH {name} x"));
            admin.ask("TS.ADD a 1 1");
            block(
                &mut reader,
                &mut admin,
                &format!("TS.READ a 1 BLOCK {block_ms} 2"),
            );
            admin.ask(rule);
            if block_ms == 0 {
                admin.expect(&[("TS.ADD a 2 2", ":2\r\n")]);
            }
            let got = reader.reply_or_end().map(|reply| text(&reply));
            match (name, &got) {
                ("eve", got) => assert_eq!(*got, None),
                (_, Some(refused)) => assert!(refused.starts_with("-NOPERM"), "{refused}"),
                (_, None) => panic!("closed after {rule}"),
            }
            admin.ask("DEL a");
        }
    }
}

#[test]
fn commands_behind_a_blocked_one_wait() {
    let server = Server::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    writer.ask("TS.CREATE k");
    let pipeline = [
        encoded("TS.READ k - BLOCK 0 1"),
        encoded("TS.ADD own 1 1"),
        encoded("PING"),
    ];
    reader.send(&pipeline.concat());
    while writer.info("blocked_clients") == 0 {
        std::thread::yield_now();
    }
    writer.expect(&[("EXISTS own", ":0\r\n"), ("TS.ADD k 1 1", ":1\r\n")]);
    let replies: Vec<String> = (0..3).map(|_| text(&reader.reply())).collect();
    assert_eq!(replies, ["*1\r\n*2\r\n:1\r\n+1\r\n", ":1\r\n", "+PONG\r\n"]);
}

#[test]
fn a_blocked_reader_can_be_let_go_or_leave() {
    let server = Server::start();
    let (mut reader, mut other) = (server.client(), server.client());
    let id = reader
        .ask("CLIENT ID")
        .trim_start_matches(':')
        .trim()
        .to_owned();
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id}")), ":0\r\n");
    block(&mut reader, &mut other, "TS.READ k - BLOCK 0 1");
    assert!(other.ask("CLIENT LIST").contains(" flags=b "));
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id}")), ":1\r\n");
    assert_eq!(text(&reader.reply()), "*0\r\n");
    block(&mut reader, &mut other, "TS.READ k - BLOCK 0 1");
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} ERROR")), ":1\r\n");
    assert_eq!(
        text(&reader.reply()),
        "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    );
    block(&mut reader, &mut other, "TS.READ k - BLOCK 0 1");
    drop(reader);
    while other.info("blocked_clients") > 0 || other.info("connected_clients") > 1 {
        std::thread::yield_now();
    }
    // Nobody is woken, nothing is left behind.
    other.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
}
