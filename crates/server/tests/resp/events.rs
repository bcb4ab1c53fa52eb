//! Keyspace notifications.

use crate::harness::{Client, Server, text};

/// The event and the key of the next message of `__keyevent@0__:*`.
fn event(client: &mut Client) -> (String, String) {
    let message = text(&client.reply());
    let words: Vec<&str> = message.split("\r\n").collect();
    let event = words[6].strip_prefix("__keyevent@0__:").unwrap();
    (event.to_owned(), words[8].to_owned())
}

#[test]
fn events_are_those_of_redistimeseries() {
    let server = Server::start();
    let (mut writer, mut listener) = (server.client(), server.client());
    writer.expect(&[("CONFIG SET notify-keyspace-events AKEnm", "+OK\r\n")]);
    listener.ask("PSUBSCRIBE __keyevent@0__:*");
    for (line, expected) in [
        ("TS.CREATE a", &["new a", "ts.create a"][..]),
        ("TS.CREATE a", &[]),
        ("TS.ADD a 1 1", &["ts.add a"]),
        ("TS.ADD a 1 2", &["ts.add a"]),
        ("TS.ADD a 0 x", &["ts.add a"]),
        ("TS.ADD b 1 1", &["new b", "ts.add b"]),
        ("TS.ADD c 1 1 RETENTION x", &["ts.add c"]),
        (
            "TS.MADD a 2 2 b 2 2 nokey 3 3",
            &["ts.add a", "ts.add b", "ts.add nokey"],
        ),
        ("TS.MADD a x 2 b 2 y", &["ts.add a", "ts.add b"]),
        ("TS.DEL a 1 1", &["ts.del a"]),
        ("TS.DEL nokey 1 1", &[]),
        ("TS.GET nokey", &["keymiss nokey"]),
        ("TS.RANGE nokey - +", &["keymiss nokey"]),
        ("EXISTS nokey a", &["keymiss nokey"]),
        ("TYPE nokey", &["keymiss nokey"]),
        ("RENAME b e", &["new e", "rename_from b", "rename_to e"]),
        ("COPY e f", &["new f", "copy_to f"]),
        ("COPY e f", &[]),
        ("COPY e f REPLACE", &["new f", "copy_to f"]),
        ("COPY nokey f", &["keymiss nokey"]),
        ("DUMP nokey", &["keymiss nokey"]),
        ("TOUCH nokey f", &["keymiss nokey"]),
        ("OBJECT ENCODING nokey", &[]),
        ("DEL f", &["del f"]),
        ("EXPIRE e 100", &["expire e"]),
        ("PERSIST e", &["persist e"]),
        ("PEXPIRE e 1", &["expire e", "expired e"]),
        ("TS.ALTER a RETENTION 0", &["ts.alter a"]),
        ("TS.INCRBY a 1 TIMESTAMP 50", &["ts.incrby a"]),
        ("TS.DECRBY a 1 TIMESTAMP 1", &[]),
        ("DEL a nokey", &["del a"]),
        ("TS.CREATE b", &["new b", "ts.create b"]),
        ("UNLINK b", &["del b"]),
        ("FLUSHALL", &[]),
        // What comes next says that nothing else came before.
        ("TS.CREATE end", &["new end", "ts.create end"]),
    ] {
        writer.ask(line);
        for expected in expected {
            let (event, key) = event(&mut listener);
            assert_eq!(format!("{event} {key}"), *expected, "after {line}");
        }
    }
}

#[test]
fn the_letters_choose_what_is_published_and_where() {
    let server = Server::with(&["--wal", "off", "--notify-keyspace-events", "Kd"]);
    let (mut writer, mut listener) = (server.client(), server.client());
    writer.expect(&[(
        "CONFIG GET notify-keyspace-events",
        "*2\r\n$22\r\nnotify-keyspace-events\r\n$2\r\ndK\r\n",
    )]);
    listener.ask("PSUBSCRIBE __key*");
    let pipeline = b"TS.ADD k 1 1\r\nDEL k\r\nTS.ADD k 2 2\r\nTS.MADD k 3 3 k 4 4\r\n";
    writer.send(pipeline);
    let expected = "*4\r\n$8\r\npmessage\r\n$6\r\n__key*\r\n$16\r\n__keyspace@0__:k\r\n$6\r\n\
                    ts.add\r\n";
    for _ in 0..4 {
        assert_eq!(text(&listener.reply()), expected);
    }
    for _ in 0..4 {
        writer.reply();
    }
    writer.expect(&[
        ("CONFIG SET notify-keyspace-events Eg", "+OK\r\n"),
        ("TS.ADD k 5 5", ":5\r\n"),
        ("DEL k", ":1\r\n"),
    ]);
    assert_eq!(event(&mut listener), ("del".to_owned(), "k".to_owned()));
    assert_eq!(
        writer.ask("CONFIG SET notify-keyspace-events KEq"),
        "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid \
         event class character. Use 'Ag$lshzxeKEtmdn'.\r\n"
    );
}

#[test]
fn ten_thousand_samples_of_a_pipeline_are_ten_thousand_events() {
    let server = Server::with(&["--wal", "off", "--notify-keyspace-events", "Ed"]);
    let (mut writer, mut listener) = (server.client(), server.client());
    listener.ask("SUBSCRIBE __keyevent@0__:ts.add");
    let samples = 10_000;
    let pipeline: String = (0..samples)
        .map(|i| format!("TS.ADD k {i} 1\r\n"))
        .collect();
    writer.send(pipeline.as_bytes());
    for _ in 0..samples {
        let message = text(&listener.reply());
        assert!(message.ends_with("$1\r\nk\r\n"), "{message}");
    }
}
