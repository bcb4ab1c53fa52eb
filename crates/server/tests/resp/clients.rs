//! CLIENT, as far as it concerns other connections; MONITOR.

use crate::harness::{Client, Server, encoded, text};
use std::sync::atomic::{AtomicBool, Ordering};

fn id(client: &mut Client) -> String {
    let id = client.ask("CLIENT ID");
    id.trim_start_matches(':').trim().to_owned()
}

/// The value of a field in the line of client `id`.
fn field(other: &mut Client, id: &str, name: &str) -> String {
    let line = other.ask(&format!("CLIENT LIST ID {id}"));
    let value = line.split(&format!(" {name}=")).nth(1).unwrap();
    value.split([' ', '\n']).next().unwrap().to_owned()
}

#[test]
fn the_list_shows_what_connections_do() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    let id = id(&mut client);
    client.ask("MULTI");
    client.ask("TS.ADD k 1 1");
    assert_eq!(field(&mut other, &id, "multi"), "1");
    assert_eq!(field(&mut other, &id, "flags"), "x");
    assert_ne!(field(&mut other, &id, "multi-mem"), "0");
    client.ask("DISCARD");
    client.ask("WATCH a b");
    assert_eq!(field(&mut other, &id, "watch"), "2");
    assert_eq!(field(&mut other, &id, "cmd"), "watch");
    other.ask("TS.CREATE a");
    assert_eq!(field(&mut other, &id, "flags"), "d");
    client.ask("UNWATCH");
    client.ask("TS.ADD k 1 1");
    assert_eq!(field(&mut other, &id, "cmd"), "ts.add");
    client.ask("CLIENT NO-TOUCH ON");
    assert_eq!(field(&mut other, &id, "flags"), "T");
    client.ask("CLIENT NO-TOUCH OFF");
    client.ask("SUBSCRIBE a");
    client.ask("PSUBSCRIBE b");
    assert_eq!(field(&mut other, &id, "sub"), "1");
    assert_eq!(field(&mut other, &id, "psub"), "1");
    assert_eq!(field(&mut other, &id, "flags"), "P");
    assert!(
        other
            .ask("CLIENT LIST TYPE pubsub")
            .contains(&format!("id={id} "))
    );
    assert!(
        !other
            .ask("CLIENT LIST TYPE normal")
            .contains(&format!("id={id} "))
    );
    assert_eq!(other.ask("CLIENT LIST TYPE replica"), "$0\r\n\r\n");
    assert_eq!(other.info("pubsub_clients"), 1);
    // Half a command is in the buffer.
    client.send(b"*1\r\n$4\r\nPI");
    while field(&mut other, &id, "qbuf") != "10" {
        std::thread::yield_now();
    }
}

#[test]
fn connections_can_be_closed() {
    let server = Server::start();
    let mut other = server.client();
    let (mut a, mut b, mut c) = (server.client(), server.client(), server.client());
    let address = field(&mut other, "1", "addr");
    let id_a = id(&mut a);
    let address_b = b.stream.local_addr().unwrap().to_string();
    id(&mut b);
    c.ask("SUBSCRIBE x");
    assert_eq!(other.ask(&format!("CLIENT KILL ID {id_a}")), ":1\r\n");
    assert_eq!(a.rest(), b"");
    assert_eq!(other.ask(&format!("CLIENT KILL {address_b}")), "+OK\r\n");
    assert_eq!(b.rest(), b"");
    other.expect(&[("CLIENT KILL TYPE pubsub SKIPME yes", ":1\r\n")]);
    assert_eq!(c.rest(), b"");
    other.expect(&[
        ("CLIENT KILL ID 999", ":0\r\n"),
        ("CLIENT KILL USER default MAXAGE 100000", ":0\r\n"),
        ("CLIENT KILL LADDR 1.2.3.4:5", ":0\r\n"),
    ]);
    other.expect_errors(&[
        (
            "CLIENT KILL",
            "ERR wrong number of arguments for 'client|kill' command",
        ),
        ("CLIENT KILL 1.2.3.4:5", "ERR No such client"),
        ("CLIENT KILL ID 0", "ERR client-id should be greater than 0"),
        ("CLIENT KILL FOO 1", "ERR syntax error"),
        ("CLIENT KILL ID 1 FOO", "ERR syntax error"),
        ("CLIENT KILL TYPE foo", "ERR Unknown client type 'foo'"),
        ("CLIENT KILL USER nobody", "ERR No such user 'nobody'"),
        ("CLIENT KILL ID 1 SKIPME maybe", "ERR syntax error"),
        (
            "CLIENT KILL MAXAGE x",
            "ERR maxage is not an integer or out of range",
        ),
        (
            "CLIENT KILL MAXAGE 0",
            "ERR maxage should be greater than 0",
        ),
    ]);
    // Who closes itself reads the reply first.
    other.expect(&[(&*format!("CLIENT KILL ADDR {address} SKIPME no"), ":1\r\n")]);
    assert_eq!(other.rest(), b"");
}

#[test]
fn nothing_is_written_once_a_pause_is_answered() {
    // It has two event loops, and connections go to them in turn.
    let server = Server::start();
    let (mut client, mut writer) = (server.client(), server.client());
    client.ask("TS.CREATE k");
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let writes = threads.spawn(|| {
            let mut timestamps = 1..;
            while !ended.load(Ordering::Relaxed) {
                let adds = timestamps.by_ref().take(5000);
                let adds: Vec<_> = adds
                    .map(|at| encoded(&format!("TS.ADD k {at} 1")))
                    .collect();
                writer.send(&adds.concat());
                adds.iter().for_each(|_| drop(writer.reply()));
            }
        });
        let mut moved = 0;
        for _ in 0..300 {
            client.expect(&[("CLIENT PAUSE 600000 WRITE", "+OK\r\n")]);
            let then = client.ask("TS.GET k");
            (0..20).for_each(|_| drop(client.ask("PING")));
            moved += u32::from(client.ask("TS.GET k") != then);
            client.ask("CLIENT UNPAUSE");
        }
        ended.store(true, Ordering::Relaxed);
        writes.join().unwrap();
        assert_eq!(moved, 0, "writes went on in this many of 300 pauses");
    });
}

#[test]
fn a_pause_holds_commands_and_loses_none() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    other.expect(&[("CLIENT PAUSE 100000 WRITE", "+OK\r\n")]);
    client.expect(&[("EXISTS k", ":0\r\n")]);
    client.send(&[encoded("TS.ADD k 1 1"), encoded("TS.GET k")].concat());
    while other.info("blocked_clients") == 0 {
        std::thread::yield_now();
    }
    other.expect(&[("EXISTS k", ":0\r\n"), ("CLIENT UNPAUSE", "+OK\r\n")]);
    assert_eq!(text(&client.reply()), ":1\r\n");
    assert_eq!(text(&client.reply()), "*2\r\n:1\r\n+1\r\n");
    // It ends by itself, for everyone.
    other.expect(&[("CLIENT PAUSE 50", "+OK\r\n"), ("PING", "+PONG\r\n")]);
    client.expect(&[("TS.ADD k 2 2", ":2\r\n")]);
    assert_eq!(other.info("blocked_clients"), 0);
    other.expect_errors(&[
        (
            "CLIENT PAUSE x",
            "ERR timeout is not an integer or out of range",
        ),
        ("CLIENT PAUSE -1", "ERR timeout is negative"),
        (
            "CLIENT PAUSE 9223372036854775807",
            "ERR timeout is out of range",
        ),
        (
            "CLIENT PAUSE 1 FOO",
            "ERR CLIENT PAUSE mode must be WRITE or ALL",
        ),
        (
            "CLIENT UNBLOCK x",
            "ERR value is not an integer or out of range",
        ),
        (
            "CLIENT UNBLOCK 1 FOO",
            "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
        ),
    ]);
}

/// redis-py asks for them at each connection.
#[test]
fn notices_of_maintenance_are_accepted_and_count_no_error() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none",
            "+OK\r\n",
        ),
        ("CLIENT MAINT_NOTIFICATIONS OFF", "+OK\r\n"),
    ]);
    assert_eq!(client.info("total_error_replies"), 0);
    client.expect_errors(&[("CLIENT MAINT_NOTIFICATIONS maybe", "ERR syntax error")]);
}

#[test]
fn there_is_no_client_side_caching() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("CLIENT TRACKING OFF", "+OK\r\n"),
        ("CLIENT GETREDIR", ":-1\r\n"),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n",
        ),
    ]);
    let refused = client.ask("CLIENT TRACKING ON");
    assert!(refused.starts_with("-ERR Latewood has no client-side caching"));
    assert!(
        client
            .ask("CLIENT CACHING yes")
            .starts_with("-ERR CLIENT CACHING")
    );
}

#[test]
fn monitor_shows_commands_and_no_secrets() {
    let server = Server::start();
    let (mut monitor, mut client) = (server.client(), server.client());
    let id = id(&mut monitor);
    monitor.expect(&[("MONITOR", "+OK\r\n")]);
    assert_eq!(field(&mut client, &id, "flags"), "O");
    for line in [
        "TS.ADD k 1 1",
        "AUTH secret",
        "HELLO 2 SETNAME AUTH AUTH u secret",
        "CONFIG GET x",
        "nosuch",
        "MULTI",
        "PING",
        "EXEC",
    ] {
        client.ask(line);
    }
    client.send(b"TS.ADD k 2 2\r\n");
    let peer = client.stream.local_addr().unwrap();
    for shown in [
        r#""TS.ADD" "k" "1" "1""#,
        r#""AUTH" "(redacted)""#,
        r#""HELLO" "2" "SETNAME" "AUTH" "(redacted)" "(redacted)" "(redacted)""#,
        r#""MULTI""#,
        r#""PING""#,
        r#""EXEC""#,
        r#""TS.ADD" "k" "2" "2""#,
    ] {
        let line = text(&monitor.reply());
        assert!(
            line.ends_with(&format!(" [0 {peer}] {shown}\r\n")),
            "{line}"
        );
    }
    monitor.send(&encoded("TS.GET k"));
    let refused = text(&monitor.reply());
    assert_eq!(refused, "-ERR Replica can't interact with the keyspace\r\n");
    assert_eq!(monitor.ask("RESET").lines().next(), Some("+RESET"));
    monitor.expect(&[("TS.GET k", "*2\r\n:2\r\n+2\r\n")]);
}
