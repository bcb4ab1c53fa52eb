//! Channels between several connections, in both protocols.

use crate::harness::{Client, Server, text};

/// The next messages or replies of a client, as text.
fn next(client: &mut Client, count: usize) -> Vec<String> {
    (0..count).map(|_| text(&client.reply())).collect()
}

fn message(kind: char, words: &[&str]) -> String {
    let words: String = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    let count = words.matches('$').count();
    format!("{kind}{count}\r\n{words}")
}

#[test]
fn a_subscriber_reads_what_is_published() {
    let server = Server::start();
    for (mut subscriber, kind) in [(server.client(), '*'), (server.client3(), '>')] {
        let mut publisher = server.client();
        let confirmed = |word: &str, name: &str, left: usize| {
            format!(
                "{kind}3\r\n${}\r\n{word}\r\n${}\r\n{name}\r\n:{left}\r\n",
                word.len(),
                name.len()
            )
        };
        assert_eq!(
            subscriber.ask("SUBSCRIBE a b a"),
            confirmed("subscribe", "a", 1)
        );
        assert_eq!(
            next(&mut subscriber, 2),
            [
                confirmed("subscribe", "b", 2),
                confirmed("subscribe", "a", 2)
            ]
        );
        assert_eq!(
            subscriber.ask("PSUBSCRIBE ?"),
            confirmed("psubscribe", "?", 3)
        );
        assert_eq!(
            subscriber.ask("SSUBSCRIBE a"),
            confirmed("ssubscribe", "a", 1)
        );
        publisher.expect(&[
            ("PUBLISH a one", ":2\r\n"),
            ("PUBLISH c two", ":1\r\n"),
            ("SPUBLISH a three", ":1\r\n"),
            ("PUBLISH long four", ":0\r\n"),
            ("PUBSUB NUMPAT", ":1\r\n"),
            (
                "PUBSUB NUMSUB a z",
                "*4\r\n$1\r\na\r\n:1\r\n$1\r\nz\r\n:0\r\n",
            ),
            ("PUBSUB SHARDCHANNELS", "*1\r\n$1\r\na\r\n"),
            ("PUBSUB CHANNELS [b-z]", "*1\r\n$1\r\nb\r\n"),
        ]);
        assert_eq!(
            next(&mut subscriber, 4),
            [
                message(kind, &["message", "a", "one"]),
                message(kind, &["pmessage", "?", "a", "one"]),
                message(kind, &["pmessage", "?", "c", "two"]),
                message(kind, &["smessage", "a", "three"]),
            ]
        );
        assert_eq!(
            subscriber.ask("UNSUBSCRIBE a"),
            confirmed("unsubscribe", "a", 2)
        );
        publisher.expect(&[("PUBLISH a five", ":1\r\n")]);
        assert_eq!(
            next(&mut subscriber, 1),
            [message(kind, &["pmessage", "?", "a", "five"])]
        );
        assert_eq!(subscriber.ask("RESET"), "+RESET\r\n");
        publisher.expect(&[("PUBLISH b six", ":0\r\n"), ("SPUBLISH a six", ":0\r\n")]);
    }
}

#[test]
fn resp2_lets_a_subscriber_do_little_else() {
    let server = Server::start();
    let mut client = server.client();
    client.ask("SUBSCRIBE a");
    client.expect(&[
        ("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
        ("PING hi", "*2\r\n$4\r\npong\r\n$2\r\nhi\r\n"),
    ]);
    let only = "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
                context";
    client.expect_errors(&[
        (
            "TS.ADD k 1 1",
            &format!("ERR Can't execute 'ts.add': {only}"),
        ),
        (
            "CLIENT ID",
            &format!("ERR Can't execute 'client|id': {only}"),
        ),
        (
            "SUBSCRIBE",
            "ERR wrong number of arguments for 'subscribe' command",
        ),
    ]);
    client.expect(&[
        (
            "UNSUBSCRIBE",
            "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n",
        ),
        ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
    ]);
    let mut resp3 = server.client3();
    resp3.ask("SUBSCRIBE a");
    resp3.expect(&[("PING", "+PONG\r\n"), ("TS.ADD k 2 1", ":2\r\n")]);
    resp3.expect_errors(&[
        (
            "PUBLISH a",
            "ERR wrong number of arguments for 'publish' command",
        ),
        (
            "PUBSUB foo",
            "ERR unknown subcommand 'foo'. Try PUBSUB HELP.",
        ),
        (
            "PUBSUB CHANNELS a b",
            "ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.",
        ),
    ]);
}

#[test]
fn every_subscriber_of_every_loop_gets_every_message_in_order() {
    let server = Server::start();
    let mut subscribers: Vec<Client> = (0..200).map(|_| server.client()).collect();
    for subscriber in &mut subscribers {
        subscriber.ask("SUBSCRIBE news");
    }
    let mut publishers = [server.client(), server.client()];
    for round in 0..50 {
        for (who, publisher) in publishers.iter_mut().enumerate() {
            assert_eq!(
                publisher.ask(&format!("PUBLISH news {who}-{round}")),
                ":200\r\n"
            );
        }
    }
    for subscriber in &mut subscribers {
        let messages = next(subscriber, 100);
        for who in 0..2 {
            let own = messages.iter().filter_map(|message| {
                let word = message.trim_end().rsplit("\r\n").next()?;
                word.strip_prefix(&format!("{who}-"))?.parse::<u32>().ok()
            });
            assert_eq!(own.collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
        }
    }
}

#[test]
fn who_publishes_to_itself_has_its_reply_first() {
    let server = Server::start();
    let mut client = server.client3();
    client.ask("SUBSCRIBE a");
    assert_eq!(client.ask("PUBLISH a b"), ":1\r\n");
    assert_eq!(next(&mut client, 1), [message('>', &["message", "a", "b"])]);
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off() {
    let server = Server::start();
    let mut publisher = server.client();
    let mut silent = server.client();
    silent.ask("SUBSCRIBE a");
    assert_eq!(
        publisher.ask_words(&[
            "CONFIG",
            "SET",
            "client-output-buffer-limit",
            "pubsub 1mb 0 0"
        ]),
        "+OK\r\n"
    );
    let payload = "p".repeat(100_000);
    let words = ["PUBLISH", "a", &payload];
    let mut published = 0;
    while publisher.ask_words(&words) == ":1\r\n" {
        published += 1;
        assert!(published < 1000, "100 MB for one silent client");
    }
    assert_eq!(
        publisher.info("client_output_buffer_limit_disconnections"),
        1
    );
    assert_eq!(publisher.info("pubsub_clients"), 0);
    assert!(silent.rest().len() < 100_000 * published);
}
