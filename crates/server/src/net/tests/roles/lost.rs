//! What writers are told whose node loses the log: they are sent on only where nothing was written.

use super::super::disk_waits::{expect_end, expect_silence, send, wait_for};
use super::super::{Harness, ask};
use super::{ME, MOVED, MOVED_ANY, OWNER};
use crate::options::testing::{self, TestLog};
use latewood_cluster::node::{Node, Role};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// What is said of a command begins so of which nobody knows what it did.
const UNKNOWN: &str = "-ERR unknown whether this command was carried out, or a part of it: this \
    node has lost the log; db-2:6379 owns the log\r\n";

/// An owner whose log the test takes away.
struct Losing {
    harness: Harness,
    log: Arc<TestLog>,
    node: Arc<Node>,
}

fn become_role(node: &Node, role: Role) {
    node.change(|standing| {
        standing.role = role;
        standing.owner = Some(if role == Role::Owner { ME } else { OWNER });
    });
}

impl Losing {
    /// With keys `k` and `j` in the log, which does not become durable any more.
    fn start() -> Self {
        let log = Arc::new(TestLog::default());
        log.prove();
        let db = testing::open_on_log(Arc::clone(&log));
        let harness = Harness::over(db);
        let (node, _) = testing::follow(&harness.shared);
        become_role(&node, Role::Owner);
        let mut client = harness.client();
        for key in ["k", "j"] {
            let add = format!("TS.ADD {key} 1 1 ON_DUPLICATE SUM LABELS a b");
            assert_eq!(ask(&mut client, &add), ":1\r\n");
        }
        log.stall();
        Self { harness, log, node }
    }

    /// A client who is answered once what it wrote is durable.
    fn synced(&self) -> TcpStream {
        let mut client = self.harness.client();
        assert_eq!(ask(&mut client, "CLIENT DURABILITY sync"), "+OK\r\n");
        client
    }

    /// Loses the log to `db-2`, and hears of it.
    fn lose(&self) {
        become_role(&self.node, Role::Loading);
        self.log.lose();
    }

    /// The same as the log takes `groups` groups more.
    fn lose_after(&self, groups: usize) {
        let node = Arc::clone(&self.node);
        self.log
            .lose_after(groups, move || become_role(&node, Role::Loading));
    }
}

/// Sends commands of which all must be parsed at once; what is answered up to the end of `lines`
/// lines.
fn ask_at_once(client: &mut TcpStream, commands: &[&str], lines: usize) -> String {
    send(client, commands);
    let mut reply = String::new();
    while reply.matches("\r\n").count() < lines {
        let mut buffer = [0; 4096];
        let read = client.read(&mut buffer).unwrap();
        assert!(read > 0, "closed behind {reply}");
        reply += std::str::from_utf8(&buffer[..read]).unwrap();
    }
    reply
}

/// Commands that write, with the slot of their key.
const WRITES: &[(&str, &str)] = &[
    ("TS.ADD k 3 3", MOVED),
    ("TS.ADD k 3 3 RETENTION 0", MOVED),
    ("TS.INCRBY k 1", MOVED),
    ("TS.DEL k 0 1", MOVED),
    ("TS.ALTER k RETENTION 5", MOVED),
    ("TS.CREATERULE k j AGGREGATION sum 1", MOVED),
    ("DEL k", MOVED),
    ("EXPIRE k 1000", MOVED),
    ("RENAME k l", MOVED),
    ("COPY k l", MOVED),
    ("LATEWOOD ADD k 3 3", MOVED),
    ("FLUSHALL", MOVED_ANY),
];

#[test]
fn a_command_of_which_nothing_is_in_the_log_is_sent_on() {
    for (write, moved) in WRITES {
        let losing = Losing::start();
        let mut client = losing.synced();
        losing.lose_after(0);
        assert_eq!(ask(&mut client, write), *moved, "{write}");
        // It was admitted before it was refused.
        assert_eq!(losing.log.newest(), 2, "{write}");
        losing.harness.stop();
    }
    let losing = Losing::start();
    losing.lose_after(0);
    let madd = ask_at_once(&mut losing.synced(), &["TS.MADD k 5 1 k 6 1"], 3);
    assert_eq!(madd, format!("*2\r\n{MOVED}{MOVED}"));
    losing.harness.stop();
}

#[test]
fn the_client_of_a_command_that_is_queued_is_closed_without_a_reply() {
    for (write, _) in WRITES.iter().chain(&[("TS.MADD k 5 1 k 6 1", "")]) {
        let losing = Losing::start();
        let (mut client, mut other) = (losing.synced(), losing.harness.client());
        send(&mut client, &[*write, "PING"]);
        wait_for(|| losing.log.newest() > 2);
        let waits_in_loop = *write == "FLUSHALL";
        if !waits_in_loop {
            expect_silence(&mut client, &mut other);
        }
        losing.lose();
        if waits_in_loop {
            let mut reply = vec![0; UNKNOWN.len()];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(String::from_utf8(reply).unwrap(), UNKNOWN);
        } else {
            expect_end(&mut client);
        }
        losing.harness.stop();
    }
}

#[test]
fn a_command_of_which_a_part_is_in_the_log_says_that_it_is_not_known() {
    // Many keys lie in more than one shard, each of which has a group of its own.
    let keys: Vec<String> = (0..64).map(|key| format!("many{key}")).collect();
    let madd: String = keys.iter().map(|key| format!(" {key} 2 2")).collect();
    for (write, refusals) in [
        ("DEL k j".to_owned(), 0),
        (format!("TS.MADD{madd}"), keys.len()),
        // One that the fast path does not take.
        (format!("TS.MADD{madd} k x 1"), keys.len()),
    ] {
        let losing = Losing::start();
        losing.log.prove();
        let mut client = losing.harness.client();
        for key in &keys {
            assert_eq!(ask(&mut client, &format!("TS.ADD {key} 1 1")), ":1\r\n");
        }
        losing.lose_after(1);
        let lines = 1 + refusals + usize::from(write.ends_with("x 1"));
        let lines = if refusals == 0 { 1 } else { lines };
        let reply = ask_at_once(&mut client, &[&write], lines);
        assert_eq!(reply.matches(UNKNOWN).count(), refusals.max(1), "{reply}");
        assert!(!reply.contains("MOVED"), "{reply}");
        losing.harness.stop();
    }
}

/// As [`Losing::lose_after`], and nobody is known to own the log then.
fn lose_to_nobody_after(losing: &Losing, groups: usize) {
    let node = Arc::clone(&losing.node);
    losing.log.lose_after(groups, move || {
        node.change(|standing| {
            standing.role = Role::Follower;
            standing.owner = None;
        });
    });
}

#[test]
fn nobody_is_told_to_try_again_what_may_be_in_the_log() {
    let whole = ["TS.ADD k 2 2", "TS.INCRBY k 1 TIMESTAMP 2", "DEL k j"];
    for write in whole {
        let losing = Losing::start();
        losing.log.prove();
        lose_to_nobody_after(&losing, 0);
        let reply = ask(&mut losing.harness.client(), write);
        assert!(
            reply.starts_with("-TRYAGAIN no node owns"),
            "{write}: {reply}"
        );
        losing.harness.stop();
    }
    let losing = Losing::start();
    losing.log.prove();
    lose_to_nobody_after(&losing, 1);
    let reply = ask(&mut losing.harness.client(), "DEL k j");
    let unknown = "-ERR unknown whether this command was carried out, or a part of it: this node has \
        lost the log; no node owns the log at the moment\r\n";
    assert_eq!(reply, unknown);
    losing.harness.stop();
}

#[test]
fn what_follows_a_command_that_is_not_known_is_not_sent_on_with_it() {
    let keys: Vec<String> = (0..64).map(|key| format!("many{key}")).collect();
    let madd: String = keys.iter().map(|key| format!(" {key} 2 2")).collect();
    let madd = format!("TS.MADD{madd}");
    let losing = Losing::start();
    losing.log.prove();
    let mut client = losing.harness.client();
    for key in &keys {
        assert_eq!(ask(&mut client, &format!("TS.ADD {key} 1 1")), ":1\r\n");
    }
    losing.lose_after(1);
    let lines = 1 + keys.len() + 2;
    let reply = ask_at_once(&mut client, &[&madd, "TS.ADD k 5 5", "TS.ADD j 5 5"], lines);
    let refused: Vec<_> = reply.split_inclusive("\r\n").skip(1).collect();
    let (of_madd, behind) = refused.split_at(keys.len());
    assert!(of_madd.iter().all(|line| *line == UNKNOWN), "{reply}");
    // In a batch with it nothing is known of them either.
    let is_right = |line: &&str| *line == UNKNOWN || line.starts_with("-MOVED ");
    assert!(behind.iter().all(is_right), "{reply}");
    // What comes later is in no batch with them, and nothing of it was written.
    assert_eq!(ask(&mut client, "TS.ADD k 6 6"), MOVED);
    assert_eq!(ask(&mut client, "TS.MADD k 7 7 k 8 8"), MOVED);
    losing.harness.stop();
}

#[test]
fn a_pipeline_is_sent_on_from_the_first_command_that_is_not_in_the_log() {
    let losing = Losing::start();
    losing.log.prove();
    losing.lose_after(1);
    let mut client = losing.harness.client();
    // Each INCRBY is a group of its own.
    let pipeline = [
        "TS.INCRBY k 1 TIMESTAMP 2",
        "TS.INCRBY k 1 TIMESTAMP 3",
        "TS.ADD j 3 3",
    ];
    let reply = ask_at_once(&mut client, &pipeline, 3);
    let of_j = reply.lines().next_back().unwrap();
    assert!(reply.starts_with(&format!(":2\r\n{MOVED}")), "{reply}");
    assert!(
        of_j.starts_with("-MOVED ") && of_j.ends_with("db-2:6379"),
        "{of_j}"
    );
    losing.harness.stop();
}

#[test]
fn a_transaction_that_may_have_written_is_not_sent_on() {
    let losing = Losing::start();
    losing.log.prove();
    losing.lose_after(1);
    let mut client = losing.harness.client();
    let commands = [
        "MULTI",
        "TS.INCRBY k 1 TIMESTAMP 2",
        "TS.INCRBY j 1 TIMESTAMP 2",
        "EXEC",
    ];
    send(&mut client, &commands);
    let mut reply = String::new();
    // A reset is an end as well.
    let _ = client.read_to_string(&mut reply);
    assert_eq!(reply, "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    losing.harness.stop();
}

#[test]
fn waitaof_does_not_say_that_writes_are_there_or_lost() {
    let losing = Losing::start();
    let mut client = losing.harness.client();
    assert_eq!(ask(&mut client, "TS.ADD k 2 2"), ":2\r\n");
    client.write_all(b"WAITAOF 1 0 0\r\n").unwrap();
    wait_for(|| ask(&mut losing.harness.client(), "CLIENT LIST").contains("flags=b"));
    losing.lose();
    let told = "-UNBLOCKED this node has lost the log: unknown whether the writes of this \
        connection are in it; db-2:6379 owns the log\r\n";
    assert_eq!(ask_at_once(&mut client, &[], 1), told);
    losing.harness.stop();
}
