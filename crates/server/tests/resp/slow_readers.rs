//! Clients that take their time to read what they asked for.

use crate::harness::{Client, PATIENCE, Server, encoded, eventually, text, words};
use latewood_wire::resp::encode_command;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const SERIES: usize = 3_000;
const QUERIES: usize = 24;

/// Asks until `is_so` of the line of CLIENT LIST for client `id`.
fn wait_for(client: &mut Client, id: &str, is_so: impl Fn(&str) -> bool) {
    eventually("such a client", || {
        is_so(&client.ask(&format!("CLIENT LIST ID {id}")))
    });
}

fn id_of(client: &mut Client) -> String {
    let id = client.ask("CLIENT ID");
    id.trim_matches([':', '\r', '\n']).to_owned()
}

/// The number of a field in a line of CLIENT LIST.
fn field(line: &str, name: &str) -> usize {
    let rest = line.split(&format!(" {name}=")).nth(1).unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn who_has_not_logged_in_is_owed_little() {
    let server = Server::with(&["--wal", "off", "--requirepass", "sesame"]);
    let mut admin = server.client();
    admin.ask("AUTH sesame");
    let mut stranger = TcpStream::connect(server.address()).unwrap();
    let mut sender = stranger.try_clone().unwrap();
    // More replies than the sockets on the way hold.
    let pings = 600_000;
    let sent = std::thread::spawn(move || sender.write_all(&encoded("PING").repeat(pings)));
    let owed = |admin: &mut Client| {
        let clients = admin.ask("CLIENT LIST");
        let line = clients
            .lines()
            .find(|line| line.contains("user=default") && !line.contains("client|list"));
        line.map_or(0, |line| field(line, "obl"))
    };
    eventually("replies that wait", || owed(&mut admin) >= 4096);
    for _ in 0..100 {
        assert!(owed(&mut admin) < 16 * 1024);
    }
    let reply = b"-NOAUTH Authentication required.\r\n";
    let mut received = vec![0; reply.len() * pings];
    stranger.read_exact(&mut received).unwrap();
    assert!(received.chunks(reply.len()).all(|each| each == reply));
    sent.join().unwrap().unwrap();
}

#[test]
fn messages_wait_behind_a_long_reply_however_many_they_are() {
    let server = Server::start();
    let mut publisher = server.client();
    let mut commands = Vec::new();
    for i in 0..SERIES {
        let create = format!("TS.CREATE s{i:04} LABELS all 1");
        encode_command(&mut commands, &words(&create));
        for at in 1..=30 {
            let add = format!("TS.ADD s{i:04} {at} {i}");
            encode_command(&mut commands, &words(&add));
        }
    }
    publisher.send(&commands);
    (0..SERIES * 31).for_each(|_| assert!(!publisher.reply().starts_with(b"-")));

    let mut subscriber = server.client3();
    let id = id_of(&mut subscriber);
    subscriber.ask("SUBSCRIBE a");
    let query = encoded("TS.MRANGE - + FILTER all=1");
    subscriber.send(&[query.repeat(QUERIES), encoded("PING end")].concat());
    wait_for(&mut publisher, &id, |line| field(line, "obl") > 1 << 20);
    // More than the backlog at which a connection's commands stop.
    let payload = "p".repeat(100_000);
    for _ in 0..30 {
        assert_eq!(publisher.ask_words(&["PUBLISH", "a", &payload]), ":1\r\n");
    }
    let (mut replies, mut messages) = (0, 0);
    loop {
        let reply = subscriber.reply();
        match reply[0] {
            b'>' => messages += 1,
            b'%' => replies += 1,
            _ => break assert_eq!(text(&reply), "$3\r\nend\r\n"),
        }
    }
    assert_eq!((replies, messages), (QUERIES, 30));
}

#[test]
fn a_subscriber_over_the_soft_limit_for_too_long_is_cut_off() {
    let server = Server::start();
    let mut publisher = server.client();
    let mut silent = server.client();
    silent.ask("SUBSCRIBE a");
    let id = {
        let list = publisher.ask("CLIENT LIST TYPE pubsub");
        list.split("id=")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    let limit = "pubsub 0 1mb 1";
    assert_eq!(
        publisher.ask_words(&["CONFIG", "SET", "client-output-buffer-limit", limit]),
        "+OK\r\n"
    );
    let payload = "p".repeat(100_000);
    let mut published = 0;
    let begun = Instant::now();
    while publisher.info("pubsub_clients") > 0 {
        let line = publisher.ask(&format!("CLIENT LIST ID {id}"));
        if line.contains(" obl=") && field(&line, "obl") <= 2 << 20 {
            publisher.ask_words(&["PUBLISH", "a", &payload]);
            published += 1;
        }
        assert!(published < 1000, "the system takes 100 MB");
        assert!(begun.elapsed() < PATIENCE, "it is still there");
    }
    assert_eq!(
        publisher.info("client_output_buffer_limit_disconnections"),
        1
    );
    assert!(silent.rest().len() < 100_000 * published);
}

#[test]
fn a_subscriber_that_catches_up_in_time_stays() {
    let server = Server::start();
    let mut publisher = server.client();
    let mut subscriber = server.client();
    subscriber.ask("SUBSCRIBE a");
    let limit = "pubsub 0 1mb 3600";
    publisher.ask_words(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    let payload = "p".repeat(100_000);
    for _ in 0..200 {
        assert_eq!(publisher.ask_words(&["PUBLISH", "a", &payload]), ":1\r\n");
    }
    for _ in 0..200 {
        assert!(subscriber.reply().starts_with(b"*3\r\n$7\r\nmessage"));
    }
    assert_eq!(publisher.info("pubsub_clients"), 1);
}
