//! COPY of long series, which leaves the event loop as long reads do.

use crate::harness::{Server, encoded, text};
use crate::resp::long_reads::{
    SAMPLES, begin_and_end, fill, server, take_all_threads, wait_for_running,
};
use std::net::Shutdown;

/// A copy of one moment appears whole, at one moment.
#[test]
fn a_long_copy_leaves_the_loop_and_appears_in_no_pause() {
    let server = server();
    let (mut copier, mut other) = (server.client(), server.client());
    let (mut watcher, mut writer) = (server.client(), server.client());
    let readers = take_all_threads(&server, &mut other);
    watcher.expect(&[("WATCH c", "+OK\r\n")]);
    copier.send(&[encoded("COPY k c"), encoded("TS.GET c")].concat());
    while other.info("long_reads_waiting") == 0 {}
    // Neither what is written meanwhile nor a pause is in it.
    other.expect(&[
        ("TS.ADD k 1000000 1", ":1000000\r\n"),
        ("CLIENT PAUSE 3600000 WRITE", "+OK\r\n"),
    ]);
    writer.send(&encoded("TS.ADD k 1000001 1"));
    drop(readers);
    wait_for_running(&mut other, 1);
    begin_and_end(&mut server.client());
    wait_for_running(&mut other, 1);
    other.expect(&[("EXISTS c", ":0\r\n"), ("CLIENT UNPAUSE", "+OK\r\n")]);
    assert_eq!(text(&copier.reply()), ":1\r\n");
    let newest = format!("*2\r\n:{}\r\n+{}\r\n", SAMPLES - 1, (SAMPLES - 1) % 997);
    assert_eq!(text(&copier.reply()), newest);
    assert_eq!(text(&writer.reply()), ":1000001\r\n");
    watcher.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "*-1\r\n")]);
    let all = "- 999999 AGGREGATION count,sum,std.p 1000000";
    let of_source = other.ask(&format!("TS.RANGE k {all}"));
    assert_eq!(other.ask(&format!("TS.RANGE c {all}")), of_source);
    let before = other.info("long_reads");
    other.expect(&[
        ("COPY k c", ":0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("COPY k c REPLACE", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n:1\r\n"),
        ("TS.GET c", "*2\r\n:1000001\r\n+1\r\n"),
    ]);
    assert_eq!(other.info("long_reads"), before + 1);
}

/// As `printf ... | nc -N` does.
#[test]
fn a_long_copy_goes_on_though_its_client_sends_no_more() {
    let server = server();
    let mut client = server.client();
    client.send(&[encoded("COPY k c"), encoded("EXISTS c")].concat());
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text(&client.reply()), ":1\r\n");
    assert_eq!(text(&client.reply()), ":1\r\n");
    assert_eq!(client.reply_or_end(), None);
}

#[test]
fn a_long_copy_is_on_disk_when_it_is_answered() {
    let server = Server::with(&["--durability", "none"]);
    let mut client = server.client();
    client.expect(&[("TS.CREATE k", "+OK\r\n")]);
    fill(&mut client, "k", 70_000);
    let before = client.info("wal_syncs");
    client.expect(&[("COPY k c", ":1\r\n")]);
    assert_eq!(client.info("long_reads"), 1);
    assert!(client.info("wal_syncs") > before);
    let server = Server::over(server.kill(), &[]);
    let count = "TS.RANGE c - + AGGREGATION count 1000000";
    server
        .client()
        .expect(&[(count, "*1\r\n*2\r\n:0\r\n+70000\r\n")]);
}
