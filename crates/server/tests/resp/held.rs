//! What clients make the server hold and compute for others: names they subscribe
//! to, keys they watch, commands they queue, patterns they match.

use crate::harness::{Client, Server, eventually, text};
use crate::resp::memory::anonymous_bytes;
use std::io::Write;

const MIB: usize = 1 << 20;

/// A word of `bytes`, another for each `number`.
fn word(number: usize, bytes: usize) -> String {
    let number = number.to_string();
    number.clone() + &"w".repeat(bytes - number.len())
}

/// Sends commands until one is refused; what the refusal says.
fn until_refused(client: &mut Client, mut command: impl FnMut(usize) -> Vec<String>) -> String {
    for number in 0..100_000 {
        let reply = client.ask_words(&command(number));
        if reply.starts_with('-') {
            return reply;
        }
    }
    panic!("nothing was refused");
}

fn wait_for_idle(client: &mut Client) {
    eventually("an idle server", || client.info("connected_clients") == 1);
}

const ONE: &str = "-ERR subscriptions, watched keys and queued commands of one client must take \
                   at most 67108864 bytes\r\n";
const ALL: &str = "-ERR subscriptions, watched keys and queued commands of all clients must take \
                   at most 268435456 bytes\r\n";

#[test]
fn a_glob_of_a_subscriber_does_not_stop_others() {
    let server = Server::start();
    let (mut hostile, mut publisher) = (server.client(), server.client());
    // A matcher that goes back at each star needs years for this.
    let pattern = "*a".repeat(500);
    hostile.ask_words(&["PSUBSCRIBE", &format!("{pattern}b")]);
    hostile.ask_words(&["PSUBSCRIBE", &format!("*[{}]", "b".repeat(1000))]);
    let channel = "a".repeat(1024);
    assert_eq!(publisher.ask_words(&["PUBLISH", &channel, "m"]), ":0\r\n");
    publisher.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    let found = publisher.ask_words(&["KEYS", &format!("{pattern}b")]);
    assert_eq!(found, "*0\r\n");
    assert!(server.terminate().0);
}

#[test]
fn patterns_and_channels_have_a_length() {
    let server = Server::start();
    let (mut client, long) = (server.client(), "a".repeat(1025));
    let refused = "-ERR a pattern must be at most 1024 bytes\r\n";
    let acl = "-ERR Error in ACL SETUSER modifier";
    for (words, refusal) in [
        (vec!["PSUBSCRIBE", &long], refused),
        (vec!["KEYS", &long], refused),
        (vec!["SCAN", "0", "MATCH", &long], refused),
        (vec!["CONFIG", "GET", &long], refused),
        (vec!["PUBSUB", "CHANNELS", &long], refused),
        (
            vec!["COMMAND", "LIST", "FILTERBY", "PATTERN", &long],
            refused,
        ),
        (vec!["ACL", "SETUSER", "u", &format!("~{long}")], acl),
        (vec!["ACL", "SETUSER", "u", &format!("&{long}")], acl),
        (
            vec!["PUBLISH", &long, "m"],
            "-ERR a channel must be at most 1024 bytes\r\n",
        ),
        (
            vec!["SPUBLISH", &long, "m"],
            "-ERR a channel must be at most 1024 bytes\r\n",
        ),
    ] {
        let reply = client.ask_words(&words);
        assert!(
            reply.starts_with(refusal),
            "{} {}: {reply}",
            words[0],
            words[1].len()
        );
    }
    let allowed = "a".repeat(1024);
    assert_eq!(client.ask_words(&["KEYS", &allowed]), "*0\r\n");
}

#[test]
fn names_of_watch_are_bounded_and_given_back() {
    let server = Server::start();
    let mut client = server.client();
    let process = client.info("process_id");
    let before = anonymous_bytes(process);
    let mut watching: Vec<_> = (0..60).map(|_| server.client()).collect();
    let watch = |number: usize| vec!["WATCH".to_owned(), word(number, 8 * MIB)];
    let refusals = watching.iter_mut().map(|other| until_refused(other, watch));
    let refusals: Vec<_> = refusals.collect();
    // Each name is held here and in the table of listeners.
    assert!(
        refusals[..5].iter().all(|refusal| refusal == ONE),
        "{refusals:?}"
    );
    assert!(
        refusals[6..].iter().all(|refusal| refusal == ALL),
        "{refusals:?}"
    );
    assert!(client.info("refused_clients") >= 60);
    let grown = anonymous_bytes(process).saturating_sub(before);
    assert!(grown < 400 << 20, "{grown} bytes");
    client.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    drop(watching);
    wait_for_idle(&mut client);
    assert_eq!(client.ask_words(&watch(0)), "+OK\r\n");
}

#[test]
fn subscriptions_and_queued_commands_are_bounded_and_given_back() {
    let server = Server::start();
    let mut client = server.client();
    let subscribe = |number: usize| vec!["SUBSCRIBE".to_owned(), word(number, MIB)];
    assert_eq!(until_refused(&mut client, subscribe), ONE);
    client.ask("RESET");
    let queue = |number: usize| vec!["ECHO".to_owned(), word(number, MIB)];
    for _ in 0..3 {
        client.expect(&[("MULTI", "+OK\r\n")]);
        assert_eq!(until_refused(&mut client, queue), ONE);
        client.expect_errors(&[(
            "EXEC",
            "EXECABORT Transaction discarded because of previous errors.",
        )]);
        client.expect(&[("MULTI", "+OK\r\n")]);
        for number in 0..7 {
            assert_eq!(client.ask_words(&queue(number)), "+QUEUED\r\n");
        }
        client.expect(&[("DISCARD", "+OK\r\n")]);
    }
    client.ask("SUBSCRIBE a");
    client.ask("UNSUBSCRIBE a");
    assert_eq!(client.ask_words(&queue(0)).len(), MIB + 12);
}

/// Every publication is matched with every pattern.
#[test]
fn patterns_are_bounded_and_given_back() {
    let server = Server::start();
    let mut client = server.client();
    let pattern = |number: usize| vec!["PSUBSCRIBE".to_owned(), format!("*{number}")];
    let one = "-ERR patterns of one client must take at most 65536 bytes\r\n";
    for _ in 0..2 {
        let mut others: Vec<_> = (0..20).map(|_| server.client()).collect();
        let refusals = others
            .iter_mut()
            .map(|other| until_refused(other, pattern))
            .collect::<Vec<_>>();
        assert!(refusals[..15].iter().all(|refusal| refusal == one));
        let all = "-ERR patterns of all clients must take at most 1048576 bytes\r\n";
        assert!(refusals[16..].iter().all(|refusal| refusal == all));
        drop(others);
        wait_for_idle(&mut client);
    }
    assert_eq!(until_refused(&mut client, pattern), one);
    client.ask("PUNSUBSCRIBE *1");
    assert_eq!(
        until_refused(&mut client, |number| pattern(number + 5000)),
        one
    );
    assert!(server.client().info("refused_clients") >= 40);
}

#[test]
fn an_event_of_a_long_key_reaches_who_names_its_channel() {
    let server = Server::start();
    let (mut by_name, mut by_pattern, mut writer) =
        (server.client(), server.client(), server.client());
    writer.ask("CONFIG SET notify-keyspace-events KEA");
    let long = "k".repeat(2000);
    by_name.ask_words(&["SUBSCRIBE", &format!("__keyspace@0__:{long}")]);
    by_pattern.ask("PSUBSCRIBE __key*");
    writer.ask_words(&["TS.ADD", &long, "1", "1"]);
    writer.ask("TS.ADD short 1 1");
    assert!(text(&by_name.reply()).ends_with("ts.add\r\n"));
    // By the channel of the event, whose name is short, and then of the short key.
    for wanted in [&*long, "ts.add", "short"] {
        let message = text(&by_pattern.reply());
        assert!(message.trim_end().ends_with(wanted), "{message}");
    }
}

#[test]
fn subscribers_that_do_not_read_share_a_part_of_memory() {
    let server = Server::with(&["--wal", "off", "--memory", "64mb"]);
    let (mut publisher, payload) = (server.client(), "p".repeat(1 << 20));
    let process = publisher.info("process_id");
    let before = anonymous_bytes(process);
    let mut silent: Vec<_> = (0..40).map(|_| server.client()).collect();
    for client in &mut silent {
        client.ask("SUBSCRIBE a");
    }
    let mut most = 0;
    for _ in 0..20 {
        publisher.ask_words(&["PUBLISH", "a", &payload]);
        most = most.max(anonymous_bytes(process).saturating_sub(before));
    }
    eventually("a limit on those who do not read", || {
        most = most.max(anonymous_bytes(process).saturating_sub(before));
        publisher.info("client_output_buffer_limit_disconnections") > 20
    });
    // Each may have its first MiB, twice while a buffer grows; all together 8 MiB beyond.
    assert!(most < 160 << 20, "{most} bytes");
}

#[test]
fn names_of_connections_and_keys_waited_for_are_bounded() {
    let server = Server::start();
    let mut client = server.client();
    let long = "n".repeat(1025);
    for (words, what) in [
        (vec!["CLIENT", "SETNAME", &long], "Client names"),
        (vec!["HELLO", "3", "SETNAME", &long], "Client names"),
        (vec!["CLIENT", "SETINFO", "LIB-NAME", &long], "LIB-NAME"),
        (vec!["CLIENT", "SETINFO", "LIB-VER", &long], "LIB-VER"),
    ] {
        let refused = format!("-ERR {what} must be at most 1024 bytes\r\n");
        assert_eq!(client.ask_words(&words), refused);
    }
    let mut waiting: Vec<_> = (0..30).map(|_| server.client()).collect();
    let key = word(0, 16 * MIB);
    let mut refused = 0;
    for (number, other) in waiting.iter_mut().enumerate() {
        let read = ["TS.READ", &key, "-", "BLOCK", "0", "1"];
        let mut bytes = Vec::new();
        latewood_wire::resp::encode_command(&mut bytes, &read);
        other.send(&bytes);
        if number >= 8 {
            assert_eq!(text(&other.reply()), ALL);
            refused += 1;
        }
        while client.info("blocked_clients") < 7.min(number as u64 + 1) {
            std::thread::yield_now();
        }
    }
    assert_eq!(refused, 22);
    drop(waiting);
    wait_for_idle(&mut client);
    let watch = |number: usize| vec!["WATCH".to_owned(), word(number, 8 * MIB)];
    assert_eq!(until_refused(&mut client, watch), ONE);
}

#[test]
fn unfinished_commands_of_all_share_a_part_of_memory() {
    let server = Server::with(&["--wal", "off", "--memory", "512mb"]);
    let mut client = server.client();
    let process = client.info("process_id");
    let before = anonymous_bytes(process);
    let begun = format!("*2\r\n$4\r\nECHO\r\n$16777216\r\n{}", "x".repeat(10 * MIB));
    let mut sent = Vec::new();
    for _ in 0..40 {
        let mut other = server.client();
        // It may be closed before all is sent.
        let _ = other.stream.write_all(begun.as_bytes());
        sent.push(other);
    }
    eventually("refusals", || client.info("refused_clients") >= 30);
    let grown = anonymous_bytes(process).saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes");
    client.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    drop(sent);
    wait_for_idle(&mut client);
    let word = word(0, 16 * MIB);
    assert_eq!(client.ask_words(&["ECHO", &word]).len(), 16 * MIB + 13);
}

#[test]
fn a_command_that_a_pause_held_up_counts_as_unfinished_no_longer() {
    let server = Server::with(&["--wal", "off", "--memory", "512mb"]);
    let (mut client, key) = (server.client(), word(0, 14 * MIB));
    client.ask("CLIENT PAUSE 1000000 WRITE");
    let mut delayed: Vec<_> = (0..4).map(|_| server.client()).collect();
    let mut command = Vec::new();
    latewood_wire::resp::encode_command(&mut command, &["DEL", &key]);
    for other in &mut delayed {
        other.send(&command);
    }
    while client.info("blocked_clients") < 4 {
        std::thread::yield_now();
    }
    client.expect(&[("CLIENT UNPAUSE", "+OK\r\n")]);
    for other in &mut delayed {
        assert_eq!(text(&other.reply()), ":0\r\n");
    }
    let word = word(0, 16 * MIB);
    assert_eq!(client.ask_words(&["ECHO", &word]).len(), 16 * MIB + 13);
}

#[test]
fn rules_of_users_are_bounded() {
    let server = Server::start();
    let mut client = server.client();
    let process = client.info("process_id");
    let before = anonymous_bytes(process);
    let set = |name: &str, rules: &mut dyn Iterator<Item = String>| {
        let mut words = vec!["ACL".to_owned(), "SETUSER".to_owned(), name.to_owned()];
        words.extend(rules);
        words
    };
    let one = "-ERR the rules of a user must take at most 1048576 bytes\r\n";
    let patterns = (0..10_000).map(|n| format!("~room:{n}:*"));
    for mut rules in [
        Box::new(patterns.clone()) as Box<dyn Iterator<Item = String>>,
        Box::new((0..10_000).map(|n| format!("&{n}"))),
        Box::new((0..10_000).map(|n| format!(">{n}"))),
        Box::new((0..10_000).map(|n| format!("-get|{n}"))),
        Box::new((0..10_000).map(|n| format!("(~{n})"))),
    ] {
        assert_eq!(client.ask_words(&set("u", &mut rules)), one);
    }
    let inside = [&["(".to_owned()][..], &patterns.clone().collect::<Vec<_>>()].concat();
    let selector = format!("{})", inside.join(" "));
    let refused = client.ask_words(&set("u", &mut [selector].into_iter()));
    assert!(
        refused.contains("A selector must have at most"),
        "{}",
        refused.len()
    );
    let many = client.ask_words(&set("u", &mut (0..300_000).map(|_| "(".to_owned())));
    assert_eq!(
        many,
        "-ERR a user must have at most 16384 rules in one command\r\n"
    );
    let long = client.ask_words(&set(&"u".repeat(1025), &mut std::iter::empty()));
    assert_eq!(
        long,
        "-ERR the name of a user must be at most 1024 bytes\r\n"
    );
    assert_eq!(client.ask("ACL USERS"), "*1\r\n$7\r\ndefault\r\n");
    // One command after the other is no way around it.
    let add = |number: usize| set("u", &mut [format!("~{number}")].into_iter());
    assert_eq!(until_refused(&mut client, add), one);
    let whole = |number: usize| set(&format!("u{number}"), &mut patterns.clone().take(1500));
    let all = "-ERR the rules of all users must take at most 67108864 bytes\r\n";
    assert_eq!(until_refused(&mut client, whole), all);
    let grown = anonymous_bytes(process).saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes");
    assert_eq!(
        client.ask("ACL SETUSER u reset on nopass +ts.add ~a*"),
        "+OK\r\n"
    );
    client.expect(&[("AUTH u x", "+OK\r\n"), ("TS.ADD a 1 1", ":1\r\n")]);
}

#[test]
fn one_key_many_times_is_no_way_to_memory() {
    let server = Server::with(&["--max-query-series", "100"]);
    let mut client = server.client();
    client.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    let process = client.info("process_id");
    let before = anonymous_bytes(process);
    let nrange = |keys: usize| {
        let mut words = vec!["TS.NRANGE".to_owned(), keys.to_string()];
        words.extend(std::iter::repeat_n("k".to_owned(), keys));
        words.extend(["-", "+"].map(str::to_owned));
        words
    };
    assert_eq!(
        client.ask_words(&nrange(300_000)),
        "-ERR TSDB: numkeys must be at most 4096\r\n"
    );
    let grown = anonymous_bytes(process).saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes");
    let refused = client.ask_words(&nrange(101));
    assert!(refused.contains("max-query-series"), "{refused}");
    assert!(client.ask_words(&nrange(100)).starts_with("*1\r\n"));
}
