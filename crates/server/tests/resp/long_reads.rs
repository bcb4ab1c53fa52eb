//! Reads that take long, on a server with one event loop: the other connections go on,
//! replies stay in order, and a read that nobody waits for any more ends.

use crate::harness::{Client, Server, command, encoded, eventually, text};
use latewood_wire::resp::encode_command;
use std::net::Shutdown;
use std::process::Stdio;

/// Samples of the series that long reads read again and again.
pub(crate) const SAMPLES: usize = 500_000;

/// Samples of a series that TS.MRANGE writes in a part of its own.
const LATER: usize = 70_000;

/// A server with one event loop, and a series `k`. A read has one thread, so that it
/// takes as long with many cores.
pub(crate) fn server() -> Server {
    serve(&["--ts-num-threads", "1"], SAMPLES)
}

fn serve(options: &[&str], samples: usize) -> Server {
    let dir = tempfile::tempdir().unwrap();
    let child = command(dir.path())
        .args(["--listen", "127.0.0.1:0", "--threads", "1", "--wal", "off"])
        .args(options)
        .stderr(Stdio::piped())
        .spawn();
    let server = Server::adopt(child.unwrap(), dir);
    let mut client = server.client();
    client.ask("TS.CREATE k LABELS all 1");
    fill(&mut client, "k", samples);
    server
}

pub(crate) fn fill(client: &mut Client, key: &str, samples: usize) {
    const AT_ONCE: usize = 10_000;
    for from in (0..samples).step_by(AT_ONCE) {
        let mut line = "TS.MADD".to_owned();
        for at in from..from + AT_ONCE {
            line.push_str(&format!(" {key} {at} {}", at % 997));
        }
        assert!(client.ask(&line).starts_with("*10000\r\n"));
    }
}

/// A read of `times` times the samples of `k`, which becomes one row.
fn read_of(times: usize) -> Vec<u8> {
    let (count, filter) = (times.to_string(), ["FILTER_BY_VALUE", "-1", "1000"]);
    let mut words = vec!["TS.NRANGE", &count];
    words.extend(vec!["k"; times]);
    words.extend(["-", "+"]);
    words.extend(filter);
    words.push("AGGREGATION");
    words.extend(vec!["std.p,var.s,twa,sum,min,max,avg,range"; times]);
    words.push("1000000000");
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &words);
    bytes
}

/// A read of about a second.
pub(crate) fn long() -> Vec<u8> {
    read_of(30)
}

/// One that ends only if somebody ends it: it would take a minute or more.
pub(crate) fn endless() -> Vec<u8> {
    read_of(4096)
}

/// Begins a read, and sees it run.
pub(crate) fn begin(client: &mut Client, other: &mut Client, read: &[u8]) {
    client.send(read);
    wait_for_running(other, 1);
}

pub(crate) fn wait_for_running(client: &mut Client, reads: u64) {
    eventually("long reads", || client.info("long_reads_running") == reads);
}

/// As many endless reads as there are threads; the last free one is for a user who has none.
pub(crate) fn take_all_threads(server: &Server, other: &mut Client) -> Vec<Client> {
    other.expect(&[("ACL SETUSER bob on nopass +@all ~*", "+OK\r\n")]);
    let threads = std::thread::available_parallelism().unwrap().get();
    let mut readers: Vec<Client> = (0..=threads).map(|_| server.client()).collect();
    readers[threads].expect(&[("AUTH bob x", "+OK\r\n")]);
    for (at, reader) in readers.iter_mut().enumerate() {
        reader.send(&endless());
        wait_for_running(other, at as u64 + 1);
    }
    readers
}

fn id_of(client: &mut Client) -> String {
    let id = client.ask("CLIENT ID");
    id.trim_matches([':', '\r', '\n']).to_owned()
}

#[test]
fn others_are_answered_while_a_long_read_runs() {
    let server = server();
    let (mut reader, mut other) = (server.client(), server.client());
    begin(&mut reader, &mut other, &endless());
    other.expect(&[
        ("PING", "+PONG\r\n"),
        ("TS.ADD k 1000000 1", ":1000000\r\n"),
        ("TS.GET k", "*2\r\n:1000000\r\n+1\r\n"),
        ("TS.RANGE k 1 1", "*1\r\n*2\r\n:1\r\n+1\r\n"),
        // Nobody waits for a long read with an EXEC.
        ("MULTI", "+OK\r\n"),
        ("TS.ADD k 1000001 1", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n:1000001\r\n"),
        ("CLIENT PAUSE 1 WRITE", "+OK\r\n"),
    ]);
    // All of it came before the end of the first read.
    assert_eq!(other.info("long_reads"), 0);
    assert_eq!(other.info("long_reads_running"), 1);
}

#[test]
fn replies_stay_in_order() {
    let server = server();
    let mut client = server.client();
    let after = ["PING a", "TS.ADD n 1 1", "TS.GET n", "PING b"].map(encoded);
    client.send(&[long(), encoded("PING"), long(), after.concat()].concat());
    let first = text(&client.reply());
    assert!(first.starts_with("*1\r\n*2\r\n:0\r\n*240\r\n"), "{first}");
    assert_eq!(text(&client.reply()), "+PONG\r\n");
    assert_eq!(text(&client.reply()), first);
    for expected in ["$1\r\na\r\n", ":1\r\n", "*2\r\n:1\r\n+1\r\n", "$1\r\nb\r\n"] {
        assert_eq!(text(&client.reply()), expected);
    }
    assert_eq!(client.info("long_reads"), 2);
}

#[test]
fn a_short_read_stays_on_its_event_loop() {
    let server = server();
    let mut client = server.client();
    for line in [
        "TS.RANGE k - + COUNT 10",
        "TS.REVRANGE k - + COUNT 10 AGGREGATION avg 100",
        "TS.RANGE k 0 5000",
        "TS.MRANGE 0 1000 FILTER all=1",
        "TS.MRANGE - + COUNT 10 FILTER all=1",
        "TS.MRANGE 0 100000 AGGREGATION avg 10000 FILTER all=1 GROUPBY all REDUCE max",
        "TS.MGET FILTER all=1",
        "TS.QUERYINDEX all=1",
        "TS.QUERYLABELS LABELS",
        "KEYS *",
        "SCAN 0 COUNT 1000000",
        "TS.GET k",
        "TS.INFO k DEBUG",
    ] {
        assert!(!client.ask(line).starts_with('-'), "{line}");
        assert_eq!(client.info("long_reads"), 0, "{line}");
    }
}

/// What runs on a reader thread outside of EXEC answers as it does in EXEC, where all
/// runs on the event loop.
#[test]
fn a_reader_thread_answers_as_an_event_loop_does() {
    let server = serve(&[], 2 * LATER);
    let mut client = server.client();
    let mut commands = Vec::new();
    for i in 0..9_000 {
        let labels = format!("LABELS all 1 part {} one v{i}", i % 7);
        let create = format!("TS.ADD s{i:04} {i} {i} {labels}");
        commands.extend(encoded(&create));
    }
    client.send(&commands);
    (0..9_000).for_each(|_| assert!(client.reply().starts_with(b":")));
    for key in ["l1", "l2"] {
        client.ask(&format!("TS.CREATE {key} LABELS all 1 part 9 long {key}"));
        fill(&mut client, key, 2 * LATER);
    }
    for at in (0..LATER).step_by(200) {
        client.ask(&format!("TS.ADD l1 {at} 5 ON_DUPLICATE last"));
    }
    let protocols: [fn(&Server) -> Client; 2] = [Server::client, Server::client3];
    for connect in protocols {
        let mut client = connect(&server);
        for line in [
            "TS.RANGE l1 - +",
            "TS.REVRANGE l1 - + AGGREGATION avg,max 1000",
            "TS.RANGE k - + AGGREGATION count 1 EMPTY",
            "TS.READ l1 -",
            "TS.NRANGE 3 l1 k l2 - + COUNT 100000",
            "TS.NRANGE 2 l1 nosuch - +",
            "TS.NRANGE 1 l1 - + AGGREGATION twa 1 EMPTY",
            "TS.MRANGE - + WITHLABELS FILTER long=(l1,l2)",
            "TS.MREVRANGE - + FILTER all=1",
            "TS.MRANGE - + AGGREGATION avg 100 FILTER all=1",
            "TS.MRANGE - + EXCLUDEEMPTY FILTER_BY_VALUE 5 6 FILTER all=1",
            "TS.MRANGE - + FILTER all=1 GROUPBY part REDUCE sum",
            "TS.MGET WITHLABELS FILTER all=1",
            "TS.QUERYINDEX all=1",
            "TS.QUERYLABELS VALUES one",
            "TS.QUERYLABELS LABELS FILTER all=1",
            "KEYS *",
            "SCAN 0 COUNT 100000 MATCH *1*",
            "DUMP l1",
            "LATEWOOD RANGE l1 - +",
            "TS.RANGE l1 - + AGGREGATION twa 1 EMPTY",
        ] {
            let before = client.info("long_reads");
            let reply = client.ask(line);
            assert!(client.info("long_reads") > before, "{line}");
            let moved = client.info("long_reads");
            client.expect(&[("MULTI", "+OK\r\n"), (line, "+QUEUED\r\n")]);
            let in_exec = client.ask("EXEC");
            assert_eq!(client.info("long_reads"), moved, "{line}");
            assert_eq!(in_exec.len(), reply.len() + 4, "{line}");
            assert!(in_exec.strip_prefix("*1\r\n") == Some(&reply), "{line}");
        }
    }
}

#[test]
fn a_client_that_leaves_or_is_killed_ends_its_read() {
    let server = server();
    let (mut left, mut killed) = (server.client(), server.client());
    let mut other = server.client();
    begin(&mut left, &mut other, &endless());
    drop(left);
    wait_for_running(&mut other, 0);
    let id = id_of(&mut killed);
    begin(&mut killed, &mut other, &endless());
    let list = other.ask(&format!("CLIENT LIST ID {id}"));
    assert!(list.contains("cmd=ts.nrange") && list.contains("flags=N "));
    other.expect(&[
        (&format!("CLIENT UNBLOCK {id}"), ":0\r\n"),
        (&format!("CLIENT KILL ID {id}"), ":1\r\n"),
    ]);
    assert_eq!(text(&killed.rest()), "");
    wait_for_running(&mut other, 0);
    assert_eq!(other.info("blocked_clients"), 0);
}

/// As `printf ... | nc -N` does. Who closed both sides looks the same.
#[test]
fn what_stands_behind_a_long_read_is_run_though_the_client_sends_no_more() {
    let server = server();
    let (mut client, mut other) = (server.client(), server.client());
    let add = |at| encoded(&format!("TS.ADD behind {at} {at}"));
    // What is behind the first fits in the socket: the end of the stream is seen at once.
    client.send(&[endless(), add(1), read_of(500), add(2)].concat());
    wait_for_running(&mut other, 1);
    client.stream.shutdown(Shutdown::Write).unwrap();
    for number in 1..=2 {
        let ended = text(&client.reply());
        assert!(
            ended.starts_with("-ERR the read was ended because"),
            "{ended}"
        );
        assert_eq!(text(&client.reply()), format!(":{number}\r\n"));
    }
    assert_eq!(client.reply_or_end(), None);
    wait_for_running(&mut other, 0);
    assert_eq!(other.ask("TS.GET behind"), "*2\r\n:2\r\n+2\r\n");
}

#[test]
fn a_read_of_very_many_small_series_leaves_its_event_loop() {
    let server = server();
    let mut client = server.client();
    client.ask("TS.ADD n 1 1");
    for (series, reads) in [(10, 0), (3000, 1)] {
        let keys = " n".repeat(series);
        let reply = client.ask(&format!("TS.NRANGE {series}{keys} - +"));
        assert!(reply.starts_with("*1\r\n"));
        assert_eq!(client.info("long_reads"), reads, "{series}");
    }
}

/// A long read of another user, from its beginning to its end.
pub(crate) fn begin_and_end(client: &mut Client) {
    client.send(&long());
    assert!(client.reply().starts_with(b"*1\r\n"));
}

#[test]
fn a_stop_of_the_server_does_not_wait_for_a_long_read() {
    for stop in ["SHUTDOWN NOSAVE", "SIGTERM"] {
        let server = server();
        let (mut reader, mut other) = (server.client(), server.client());
        begin(&mut reader, &mut other, &endless());
        let ended_well = match stop {
            "SIGTERM" => server.terminate().0,
            command => {
                other.send(&encoded(command));
                server.wait()
            }
        };
        assert!(ended_well, "{stop}");
        assert_eq!(text(&reader.rest()), "", "{stop}");
    }
}

#[test]
fn exec_runs_its_long_reads_itself() {
    let server = server();
    let mut client = server.client();
    client.send(&[encoded("MULTI"), encoded("TS.ADD k 1000000 1")].concat());
    client.send(&[read_of(20), encoded("EXEC"), read_of(20)].concat());
    let replies: Vec<String> = (0..5).map(|_| text(&client.reply())).collect();
    assert_eq!(replies[..3], ["+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n"]);
    let inside = replies[3].strip_prefix("*2\r\n:1000000\r\n").unwrap();
    assert_eq!(inside, replies[4]);
    assert_eq!(client.info("long_reads"), 1);
}

#[test]
fn a_long_read_counts_as_one_command() {
    let server = server();
    let (mut reader, mut other) = (server.client(), server.client());
    let mut monitor = server.client();
    monitor.expect(&[("MONITOR", "+OK\r\n")]);
    other.expect(&[
        ("CONFIG SET slowlog-log-slower-than 10000", "+OK\r\n"),
        ("SLOWLOG RESET", "+OK\r\n"),
    ]);
    let hits = other.info("keyspace_hits");
    reader.send(
        &[
            encoded("CLIENT REPLY SKIP"),
            long(),
            long(),
            encoded("PING"),
        ]
        .concat(),
    );
    assert!(reader.reply().starts_with(b"*1\r\n*2\r\n"));
    assert_eq!(text(&reader.reply()), "+PONG\r\n");
    let statistics = other.ask("INFO commandstats");
    assert!(statistics.contains("cmdstat_ts.nrange:calls=2,"));
    assert_eq!(other.info("keyspace_hits") - hits, 60);
    assert_eq!(other.ask("SLOWLOG LEN"), ":2\r\n");
    let mut seen = 0;
    loop {
        let line = text(&monitor.reply());
        seen += usize::from(line.contains("TS.NRANGE"));
        if line.contains("PING") {
            break;
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn messages_do_not_cut_a_long_reply() {
    let server = server();
    let (mut reader, mut other) = (server.client3(), server.client());
    for i in 0..3 {
        let key = format!("p{i}");
        other.ask(&format!("TS.CREATE {key} LABELS long 1"));
        fill(&mut other, &key, LATER);
    }
    reader.ask("SUBSCRIBE a");
    let query = encoded("TS.MRANGE - + FILTER long=1");
    reader.send(&[query.repeat(2), encoded("PING end")].concat());
    let (mut replies, mut sent, mut messages) = (Vec::new(), 0, 0);
    loop {
        if sent < 20 {
            sent += 1;
            assert_eq!(other.ask("PUBLISH a m"), ":1\r\n");
        }
        let reply = reader.reply();
        match reply[0] {
            b'>' => messages += 1,
            b'%' => replies.push(reply),
            _ => break assert_eq!(text(&reply), "$3\r\nend\r\n"),
        }
    }
    while messages < sent {
        assert!(reader.reply().starts_with(b">"));
        messages += 1;
    }
    assert_eq!(replies.len(), 2);
    assert!(replies.iter().all(|reply| *reply == replies[0]));
    assert!(other.info("long_reads") > 2);
}

#[test]
fn a_blocked_reader_gets_many_samples_without_its_event_loop() {
    let server = serve(&[], 2 * LATER);
    let (mut reader, mut other) = (server.client(), server.client());
    let min_count = 2 * LATER + 1;
    let read = encoded(&format!("TS.READ k - BLOCK 0 {min_count}"));
    reader.send(&[read, encoded("PING")].concat());
    while other.info("blocked_clients") == 0 {}
    assert_eq!(other.ask("TS.ADD k 1000000 1"), ":1000000\r\n");
    assert!(text(&reader.reply()).starts_with(&format!("*{min_count}\r\n")));
    assert_eq!(text(&reader.reply()), "+PONG\r\n");
    assert_eq!(other.info("long_reads"), 1);
    assert_eq!(other.info("blocked_clients"), 0);
}

#[test]
fn many_short_reads_of_one_client_let_others_have_their_turn() {
    let server = server();
    let (mut reader, mut other) = (server.client(), server.client());
    let read = "TS.RANGE k 0 130000 FILTER_BY_VALUE -1 1000 AGGREGATION std.p 1000000000";
    let reads = encoded(read).repeat(400);
    // They arrive together, so that one look at the socket finds all.
    let pipeline = [
        encoded("TS.ADD began 1 1"),
        reads,
        encoded("TS.ADD ended 1 1"),
    ];
    assert!(pipeline.concat().len() < 64 * 1024);
    reader.send(&pipeline.concat());
    let found = loop {
        match other.ask("EXISTS began ended").as_str() {
            ":0\r\n" => {}
            found => break found.to_owned(),
        }
    };
    assert_eq!(found, ":1\r\n");
    (0..402).for_each(|_| assert!(!reader.reply().starts_with(b"-")));
    assert_eq!(other.info("long_reads"), 0);
}

#[test]
fn commands_of_reads_that_wait_share_a_part_of_memory() {
    const CLIENTS: u64 = 24;
    let server = serve(&["--ts-num-threads", "1", "--memory", "512mb"], SAMPLES);
    let mut other = server.client();
    let mut read = Vec::new();
    let without = format!("no!={}", "x".repeat(2 << 20));
    encode_command(
        &mut read,
        &["TS.MRANGE", "-", "+", "FILTER", "all=1", &without],
    );
    let threads = std::thread::available_parallelism().unwrap().get();
    // 64 MiB are for all, and each of these takes 4 MiB; all of it comes back.
    let rounds = [(); 2].map(|()| {
        let mut running: Vec<Client> = (0..threads).map(|_| server.client()).collect();
        for client in &mut running {
            client.send(&endless());
        }
        wait_for_running(&mut other, threads as u64);
        let refused = other.info("refused_clients");
        let mut waiting: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
        for client in &mut waiting {
            client.send(&read);
        }
        let mut waits = 0;
        eventually("an answer to each", || {
            waits = other.info("long_reads_waiting");
            waits + other.info("refused_clients") - refused == CLIENTS
        });
        drop((waiting, running));
        eventually("their end", || other.info("connected_clients") == 1);
        wait_for_running(&mut other, 0);
        waits
    });
    assert!((1..=15).contains(&rounds[0]), "{rounds:?}");
    assert_eq!(rounds[0], rounds[1]);
}
