//! An event loop over a disk whose syncs wait for the test: who writes under `sync`
//! waits with them, everyone else is served.

use super::{Harness, READ_BYTES, ask};
use crate::state::Shared;
use latewood_engine::io::sim::{Hold, Op};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;

/// A loop over a database with a thread that syncs what is wanted; nothing else syncs, once
/// the second segment of the log is prepared.
fn start() -> Harness {
    let harness = Harness::begin(true);
    let bytes = || harness.shared.db.stats().log.unwrap().bytes_on_disk;
    wait_for(|| bytes() >= 2 << 20);
    harness
}

/// A client whose writes are on disk before their replies.
fn synced(harness: &Harness) -> TcpStream {
    let mut client = harness.client();
    assert_eq!(ask(&mut client, "CLIENT DURABILITY sync"), "+OK\r\n");
    client
}

pub(super) fn send(client: &mut TcpStream, lines: &[&str]) {
    let bytes = lines.iter().map(|line| format!("{line}\r\n"));
    client
        .write_all(bytes.collect::<String>().as_bytes())
        .unwrap();
}

/// Reads exactly what is expected.
pub(super) fn expect(client: &mut TcpStream, expected: &str) {
    let mut reply = vec![0; expected.len()];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), expected);
}

pub(super) fn expect_end(client: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = client.read_to_end(&mut rest);
    assert_eq!(String::from_utf8_lossy(&rest), "");
}

/// Waits until a sync hangs.
fn wait_for_sync(hold: &Hold) {
    while hold.waiting() == 0 {
        std::thread::yield_now();
    }
}

pub(super) fn wait_for(is_there: impl Fn() -> bool) {
    while !is_there() {
        std::thread::yield_now();
    }
}

/// Asserts that nothing was sent, once the loop has gone through two whole rounds.
pub(super) fn expect_silence(client: &mut TcpStream, other: &mut TcpStream) {
    for _ in 0..2 {
        assert_eq!(ask(other, "PING"), "+PONG\r\n");
    }
    client.set_nonblocking(true).unwrap();
    let error = client.read(&mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    client.set_nonblocking(false).unwrap();
}

fn syncs(shared: &Shared) -> u64 {
    shared.db.stats().log.unwrap().syncs
}

#[test]
fn others_are_answered_while_a_pipeline_waits_for_the_disk() {
    let harness = start();
    let (mut writer, mut reader) = (synced(&harness), harness.client());
    let hold = harness.disk.hold(Op::Sync);
    let lines = ["PING", "TS.ADD k 1 1", "TS.GET k", "TS.ADD k 2 2", "ECHO x"];
    send(&mut writer, &lines);
    wait_for_sync(&hold);
    assert_eq!(ask(&mut reader, "TS.GET k"), "*2\r\n:2\r\n+2\r\n");
    assert_eq!(ask(&mut reader, "TS.ADD k 3 3"), ":3\r\n");
    expect_silence(&mut writer, &mut reader);
    drop(hold);
    let replies = "+PONG\r\n:1\r\n*2\r\n:1\r\n+1\r\n:2\r\n$1\r\nx\r\n";
    expect(&mut writer, replies);
    harness.stop();
}

#[test]
fn commands_behind_held_replies_are_not_run() {
    let harness = start();
    let (mut writer, mut reader) = (synced(&harness), harness.client());
    let hold = harness.disk.hold(Op::Sync);
    send(&mut writer, &["TS.ADD k 1 1"]);
    wait_for_sync(&hold);
    send(&mut writer, &["TS.ADD k 2 2", "PING"]);
    expect_silence(&mut writer, &mut reader);
    assert_eq!(ask(&mut reader, "TS.GET k"), "*2\r\n:1\r\n+1\r\n");
    drop(hold);
    expect(&mut writer, ":1\r\n:2\r\n+PONG\r\n");
    harness.stop();
}

#[test]
fn a_long_pipeline_waits_in_its_socket_and_is_answered_in_order() {
    const WRITES: usize = 100_000;
    let harness = start();
    let (mut writer, mut reader) = (synced(&harness), harness.client());
    let hold = harness.disk.hold(Op::Sync);
    send(&mut writer, &["TS.ADD k 0 1"]);
    wait_for_sync(&hold);
    let mut sender = writer.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let lines = (1..WRITES).map(|at| format!("TS.ADD k {at} 1\r\n"));
        let lines: String = lines.collect();
        sender.write_all(lines.as_bytes()).unwrap();
    });
    expect_silence(&mut writer, &mut reader);
    let clients = ask(&mut reader, "CLIENT LIST");
    let held = clients.split(" qbuf=").skip(1).map(|rest| {
        let (bytes, _) = rest.split_once(' ').unwrap();
        bytes.parse::<usize>().unwrap()
    });
    assert!(held.max().unwrap() < READ_BYTES, "{clients}");
    assert_eq!(ask(&mut reader, "TS.GET k"), "*2\r\n:0\r\n+1\r\n");
    drop(hold);
    let replies = (0..WRITES).map(|at| format!(":{at}\r\n"));
    expect(&mut writer, &replies.collect::<String>());
    sending.join().unwrap();
    harness.stop();
}

#[test]
fn who_writes_during_a_sync_shares_the_next() {
    let harness = start();
    let (mut first, mut other) = (synced(&harness), harness.client());
    let mut clients: Vec<_> = (0..64).map(|_| synced(&harness)).collect();
    let before = syncs(&harness.shared);
    let hold = harness.disk.hold(Op::Sync);
    send(&mut first, &["TS.ADD k 0 1"]);
    wait_for_sync(&hold);
    for (at, client) in clients.iter_mut().enumerate() {
        send(client, &[&format!("TS.ADD k{at} 1 1")]);
    }
    wait_for(|| harness.shared.db.len() == 65);
    expect_silence(&mut clients[0], &mut other);
    drop(hold);
    expect(&mut first, ":0\r\n");
    for client in &mut clients {
        expect(client, ":1\r\n");
    }
    assert_eq!(syncs(&harness.shared) - before, 2);
    harness.stop();
}

#[test]
fn a_failed_sync_closes_all_who_wait_for_it_without_a_reply() {
    let harness = start();
    let (mut first, mut second) = (synced(&harness), synced(&harness));
    let (mut waiting, mut other) = (harness.client(), harness.client());
    assert_eq!(ask(&mut waiting, "TS.ADD w 1 1"), ":1\r\n");
    let hold = harness.disk.hold(Op::Sync);
    send(&mut first, &["TS.ADD k 1 1"]);
    send(&mut waiting, &["WAITAOF 1 0 0"]);
    wait_for_sync(&hold);
    send(&mut second, &["TS.ADD k 2 2"]);
    wait_for(|| ask(&mut harness.client(), "TS.GET k").contains(":2"));
    harness.fail_next(Op::Sync);
    drop(hold);
    expect_end(&mut first);
    expect_end(&mut second);
    let mut reply = [0; 9];
    waiting.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"-MISCONF ");
    let refused = ask(&mut other, "TS.ADD k 3 3");
    assert!(refused.starts_with("-MISCONF "), "{refused}");
    assert_eq!(ask(&mut other, "TS.GET k"), "*2\r\n:2\r\n+2\r\n");
    harness.stop();
}

#[test]
fn waitaof_waits_for_the_disk_its_time_or_unblock() {
    let harness = start();
    let (mut writer, mut other) = (harness.client(), harness.client());
    assert_eq!(ask(&mut writer, "TS.ADD k 1 1"), ":1\r\n");
    let hold = harness.disk.hold(Op::Sync);
    assert_eq!(ask(&mut writer, "WAITAOF 0 0 0"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(ask(&mut writer, "WAITAOF 1 0 10"), "*2\r\n:0\r\n:0\r\n");
    let id = ask(&mut writer, "CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    for (reason, reply) in [
        ("TIMEOUT", "*2\r\n:0\r\n:0\r\n"),
        (
            "ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
    ] {
        send(&mut writer, &["WAITAOF 1 0 0"]);
        wait_for(|| ask(&mut harness.client(), "CLIENT LIST").contains("flags=b"));
        let unblocked = ask(&mut other, &format!("CLIENT UNBLOCK {id} {reason}"));
        assert_eq!(unblocked, ":1\r\n");
        expect(&mut writer, reply);
    }
    // In EXEC it does not wait.
    send(&mut writer, &["MULTI", "WAITAOF 1 0 0", "EXEC"]);
    expect(&mut writer, "+OK\r\n+QUEUED\r\n*1\r\n*2\r\n:0\r\n:0\r\n");
    send(&mut writer, &["WAITAOF 1 0 0", "PING"]);
    wait_for_sync(&hold);
    expect_silence(&mut writer, &mut other);
    drop(hold);
    expect(&mut writer, "*2\r\n:1\r\n:0\r\n+PONG\r\n");
    harness.stop();
}

#[test]
fn a_closing_client_gets_what_was_kept_for_it() {
    let harness = start();
    let (mut quits, mut half, mut other) = (synced(&harness), synced(&harness), harness.client());
    let hold = harness.disk.hold(Op::Sync);
    send(&mut quits, &["TS.ADD k 1 1", "QUIT"]);
    let wait = "TS.READ k 5 BLOCK 0 1";
    send(&mut half, &["TS.ADD k 2 2", wait]);
    half.shutdown(Shutdown::Write).unwrap();
    wait_for_sync(&hold);
    wait_for(|| ask(&mut harness.client(), "TS.GET k").contains(":2"));
    expect_silence(&mut quits, &mut other);
    expect_silence(&mut half, &mut other);
    drop(hold);
    expect(&mut quits, ":1\r\n+OK\r\n");
    expect_end(&mut quits);
    expect(&mut half, ":2\r\n");
    expect_end(&mut half);
    harness.stop();
}

#[test]
fn messages_go_at_once_and_a_transaction_waits_as_one() {
    let harness = start();
    let (mut writer, mut subscriber) = (synced(&harness), harness.client());
    let subscribed = ask(&mut subscriber, "SUBSCRIBE c");
    assert!(subscribed.starts_with("*3\r\n"), "{subscribed}");
    let hold = harness.disk.hold(Op::Sync);
    let lines = [
        "MULTI",
        "TS.ADD k 1 1",
        "TS.ADD k 2 2",
        "PUBLISH c m",
        "EXEC",
    ];
    send(&mut writer, &lines);
    expect(
        &mut subscriber,
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
    );
    wait_for_sync(&hold);
    expect_silence(&mut writer, &mut harness.client());
    drop(hold);
    let queued = "+QUEUED\r\n".repeat(3);
    expect(
        &mut writer,
        &format!("+OK\r\n{queued}*3\r\n:1\r\n:2\r\n:1\r\n"),
    );
    harness.stop();
}

#[test]
fn a_stop_syncs_and_sends_what_was_kept() {
    let harness = start();
    let mut writer = synced(&harness);
    let hold = harness.disk.hold(Op::Sync);
    send(&mut writer, &["TS.ADD k 1 1"]);
    wait_for_sync(&hold);
    let lifetime = &harness.shared.lifetime;
    lifetime.stopping.store(true, Ordering::Release);
    harness.mailbox.wake();
    drop(hold);
    expect(&mut writer, ":1\r\n");
    expect_end(&mut writer);
    harness.stop();
}
