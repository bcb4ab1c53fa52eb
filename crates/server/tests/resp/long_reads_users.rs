//! Whose long reads run: users that are removed or lose a permission, and threads that are shared.

use crate::harness::{Client, encoded, text};
use crate::resp::long_reads::{
    SAMPLES, begin, begin_and_end, endless, long, server, take_all_threads, wait_for_running,
};
use latewood_wire::resp::encode_command;

#[test]
fn a_user_who_is_removed_gets_no_reply() {
    let server = server();
    let (mut reader, mut other) = (server.client(), server.client());
    other.expect(&[("ACL SETUSER bob on nopass +@all ~*", "+OK\r\n")]);
    reader.expect(&[("AUTH bob x", "+OK\r\n")]);
    begin(&mut reader, &mut other, &endless());
    other.expect(&[("ACL DELUSER bob", ":1\r\n")]);
    assert_eq!(text(&reader.rest()), "");
    wait_for_running(&mut other, 0);
}

#[test]
fn a_user_who_is_removed_and_reads_nothing_keeps_no_thread() {
    let server = server();
    let (mut reader, mut other) = (server.client(), server.client());
    other.expect(&[("ACL SETUSER bob on nopass +@all ~*", "+OK\r\n")]);
    reader.expect(&[("AUTH bob x", "+OK\r\n")]);
    // More than the sockets take.
    let mut unread = Vec::new();
    encode_command(&mut unread, &["ECHO", &"x".repeat(16 << 20)]);
    reader.send(&unread);
    begin(&mut reader, &mut other, &endless());
    other.expect(&[("ACL DELUSER bob", ":1\r\n")]);
    wait_for_running(&mut other, 0);
}

#[test]
fn who_loses_a_permission_while_his_read_waits_is_refused() {
    let server = server();
    let mut other = server.client();
    other.expect(&[("ACL SETUSER bob on nopass +@all ~*", "+OK\r\n")]);
    // More reads than there are threads.
    let threads = std::thread::available_parallelism().unwrap().get();
    let mut readers: Vec<Client> = (0..=threads)
        .map(|_| {
            let mut reader = server.client();
            reader.expect(&[("AUTH bob x", "+OK\r\n")]);
            reader
        })
        .collect();
    let mut last = readers.pop().unwrap();
    for reader in &mut readers {
        reader.send(&endless());
    }
    wait_for_running(&mut other, threads as u64);
    // One thread is free, but not for him.
    last.send(&long());
    while other.info("long_reads_waiting") == 0 {}
    begin_and_end(&mut server.client());
    other.expect(&[("ACL SETUSER bob -ts.nrange", "+OK\r\n")]);
    drop(readers);
    let refused = text(&last.reply());
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    assert_counted_once(&mut other, "ts.nrange");
}

/// Whether the one refusal of the server is one of the command.
fn assert_counted_once(client: &mut Client, command: &str) {
    let statistics = client.ask("INFO commandstats");
    let mut lines = statistics.lines();
    let line = lines.find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let line = line.unwrap_or_default();
    assert!(line.contains("rejected_calls=1,"), "{line}");
    let errors = client.ask("INFO errorstats");
    assert!(errors.contains("errorstat_NOPERM:count=1\r\n"), "{errors}");
}

#[test]
fn who_loses_a_permission_while_his_samples_wait_for_a_thread_is_refused() {
    let server = server();
    let mut other = server.client();
    other.expect(&[("ACL SETUSER bob on nopass +@all ~*", "+OK\r\n")]);
    let mut blocked = server.client();
    blocked.expect(&[("AUTH bob x", "+OK\r\n")]);
    blocked.send(&encoded(&format!("TS.READ k - BLOCK 0 {}", SAMPLES + 1)));
    while other.info("blocked_clients") == 0 {}
    let readers = take_all_threads(&server, &mut other);
    other.expect(&[("TS.ADD k 1000000 1", ":1000000\r\n")]);
    while other.info("long_reads_waiting") == 0 {}
    other.expect(&[("ACL SETUSER bob -ts.read", "+OK\r\n")]);
    drop(readers);
    let refused = text(&blocked.reply());
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    assert_counted_once(&mut other, "ts.read");
}

#[test]
fn a_brief_read_does_not_wait_for_long_ones_of_its_user() {
    let server = server();
    let mut other = server.client();
    // All threads but the last one, and one more that waits.
    let threads = std::thread::available_parallelism().unwrap().get();
    let mut readers: Vec<Client> = (0..=threads).map(|_| server.client()).collect();
    for reader in &mut readers {
        reader.send(&endless());
    }
    wait_for_running(&mut other, threads as u64);
    while other.info("long_reads_waiting") == 0 {}
    // Without late samples that are pending, TS.INFO reads none.
    assert!(other.ask("TS.INFO k").contains("totalSamples"));
    for read in [
        "TS.RANGE k - + COUNT 20000",
        "TS.REVRANGE k - + COUNT 20000",
    ] {
        assert!(other.ask(read).starts_with("*20000\r\n"));
    }
    assert_eq!(other.info("long_reads"), 2);
}
