//! What clients make the server hold and compute for others: names they subscribe
//! to, keys they watch, commands they queue, patterns they match.

use crate::harness::{Client, PATIENCE, Server};
use crate::memory::anonymous_bytes;
use std::time::Instant;

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
    while client.info("connected_clients") > 1 {
        std::thread::yield_now();
    }
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
    let started = Instant::now();
    let channel = "a".repeat(1024);
    assert_eq!(publisher.ask_words(&["PUBLISH", &channel, "m"]), ":0\r\n");
    publisher.expect(&[("TS.ADD k 1 1", ":1\r\n")]);
    let found = publisher.ask_words(&["KEYS", &format!("{pattern}b")]);
    assert_eq!(found, "*0\r\n");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
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
    // A pattern takes more than its text: what it is compiled into.
    let patterns = |number: usize| vec!["PSUBSCRIBE".to_owned(), word(number, 1000)];
    assert_eq!(until_refused(&mut client, patterns), ONE);
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
