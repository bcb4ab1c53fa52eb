//! An event loop at a node whose role and freshness the test sets: what is answered, and where the
//! rest is sent.

mod lost;
mod shown;
mod waiting;

use super::disk_waits::{expect, expect_silence, send, wait_for};
use super::{Harness, ask};
use crate::options::testing::{self, STALENESS_MS};
use latewood_cluster::node::{Node, NodeId, Role};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;

const ME: NodeId = NodeId([1; 20]);
const OWNER: NodeId = NodeId([2; 20]);
/// The slot of `k` is 7629; of commands without a key it is 0.
const MOVED: &str = "-MOVED 7629 db-2:6379\r\n";
const MOVED_ANY: &str = "-MOVED 0 db-2:6379\r\n";
const NOBODY: &str = "-TRYAGAIN no node owns the log at the moment\r\n";
const LOADING: &str = "-LOADING Latewood is loading the dataset in memory\r\n";
/// So many empty buckets are no work for an event loop.
const LONG: &str = "TS.RANGE k - + AGGREGATION count 1 EMPTY";

/// A loop, and what its node is; `db-2` is another.
struct Noded {
    harness: Harness,
    clock: Arc<SimClock>,
    node: Arc<Node>,
}

impl Noded {
    /// An owner with two samples under `k`.
    fn start() -> Self {
        let harness = Harness::start();
        let (node, clock) = testing::follow(&harness.shared);
        let noded = Self {
            harness,
            clock,
            node,
        };
        noded.become_role(Role::Owner, Some(ME));
        let mut client = noded.harness.client();
        assert_eq!(ask(&mut client, "TS.ADD k 1 1 LABELS a b"), ":1\r\n");
        assert_eq!(ask(&mut client, "TS.ADD k 2 2"), ":2\r\n");
        noded
    }

    fn become_role(&self, role: Role, owner: Option<NodeId>) {
        self.node.change(|standing| {
            standing.role = role;
            standing.owner = owner;
        });
    }

    /// A follower of `db-2` that has all of the log.
    fn follow(&self) {
        self.become_role(Role::Follower, Some(OWNER));
        self.refresh();
    }

    fn refresh(&self) {
        self.clock.advance_ms(1);
        self.node.set_fresh(self.clock.boottime_ns());
    }

    fn get_stale(&self) {
        self.clock.advance_ms(STALENESS_MS + 1);
    }

    /// A client that accepts answers of followers.
    fn reader(&self) -> TcpStream {
        let mut client = self.harness.client();
        assert_eq!(ask(&mut client, "READONLY"), "+OK\r\n");
        client
    }

    fn reading_thread(&self) -> JoinHandle<()> {
        let shared = Arc::clone(&self.harness.shared);
        std::thread::spawn(move || shared.readers.run(&shared))
    }

    fn stop(self, reader: JoinHandle<()>) {
        self.harness.shared.readers.stop();
        reader.join().unwrap();
        self.harness.stop();
    }
}

/// Commands that write, with the slot of their key.
const WRITES: &[(&str, &str)] = &[
    ("TS.ADD k 3 3", MOVED),
    ("TS.MADD k 3 3", MOVED),
    ("TS.ADD k 3 3 RETENTION 5", MOVED),
    ("TS.INCRBY k 1", MOVED),
    ("TS.DEL k 0 1", MOVED),
    ("TS.CREATERULE k j AGGREGATION sum 1", MOVED),
    ("DEL k", MOVED),
    ("EXPIRE k 1", MOVED),
    ("RENAME k j", MOVED),
    ("COPY k j", MOVED),
    ("RESTORE k 0 x", MOVED),
    ("LATEWOOD ADD k 3 3", MOVED),
    ("FLUSHALL", MOVED_ANY),
    ("FLUSHDB", MOVED_ANY),
    // Changes are told of where they are made.
    ("WATCH k", MOVED),
];

/// Commands that read, with the slot of their key and what they find.
const READS: &[(&str, &str, &str)] = &[
    ("TS.GET k", MOVED, "*2\r\n:2\r\n+2\r\n"),
    ("TS.RANGE k 1 1", MOVED, "*1\r\n*2\r\n:1\r\n+1\r\n"),
    ("TS.READ k 2", MOVED, "*1\r\n*2\r\n:2\r\n+2\r\n"),
    (
        "TS.GET no",
        "-MOVED 13676 db-2:6379\r\n",
        "-ERR TSDB: the key does not exist\r\n",
    ),
    ("LATEWOOD RANGE k 1 1", MOVED, "*1\r\n*2\r\n:1\r\n+1\r\n"),
    ("TS.MGET FILTER a=c", MOVED_ANY, "*0\r\n"),
    ("TS.QUERYINDEX a=b", MOVED_ANY, "*1\r\n$1\r\nk\r\n"),
    ("EXISTS k", MOVED, ":1\r\n"),
    ("TTL k", MOVED, ":-1\r\n"),
    ("DBSIZE", MOVED_ANY, ":1\r\n"),
    ("KEYS *", MOVED_ANY, "*1\r\n$1\r\nk\r\n"),
    ("SCAN 0", MOVED_ANY, "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"),
    ("MEMORY USAGE no", "-MOVED 13676 db-2:6379\r\n", "$-1\r\n"),
];

#[test]
fn writes_are_for_the_owner_alone() {
    let noded = Noded::start();
    noded.follow();
    for mut client in [noded.harness.client(), noded.reader()] {
        for (write, moved) in WRITES {
            assert_eq!(ask(&mut client, write), *moved, "{write}");
        }
    }
    let mut client = noded.reader();
    noded.become_role(Role::Follower, None);
    for (write, _) in WRITES {
        assert_eq!(ask(&mut client, write), NOBODY, "{write}");
    }
    noded.become_role(Role::Loading, None);
    for (write, _) in WRITES {
        assert_eq!(ask(&mut client, write), LOADING, "{write}");
    }
    noded.become_role(Role::Loading, Some(OWNER));
    for (write, moved) in WRITES {
        assert_eq!(ask(&mut client, write), *moved, "{write}");
    }
    noded.become_role(Role::Owner, Some(ME));
    assert_eq!(ask(&mut client, "TS.ADD k 3 3"), ":3\r\n");
    noded.harness.stop();
}

#[test]
fn reads_are_answered_to_who_accepts_them_of_a_fresh_follower() {
    let noded = Noded::start();
    let (mut plain, mut reader) = (noded.harness.client(), noded.reader());
    for (read, moved, found) in READS {
        assert_eq!(ask(&mut plain, read), *found, "{read} at the owner");
        noded.follow();
        assert_eq!(ask(&mut plain, read), *moved, "{read}");
        assert_eq!(ask(&mut reader, read), *found, "{read}");
        noded.get_stale();
        assert_eq!(ask(&mut reader, read), *moved, "{read}");
        noded.become_role(Role::Follower, None);
        assert_eq!(ask(&mut reader, read), NOBODY, "{read}");
        noded.refresh();
        assert_eq!(ask(&mut reader, read), *found, "{read} without an owner");
        assert_eq!(ask(&mut plain, read), NOBODY, "{read}");
        noded.become_role(Role::Loading, None);
        assert_eq!(ask(&mut reader, read), LOADING, "{read}");
        noded.become_role(Role::Loading, Some(OWNER));
        assert_eq!(ask(&mut reader, read), *moved, "{read}");
        noded.become_role(Role::Owner, Some(ME));
    }
    noded.harness.stop();
}

#[test]
fn a_connection_says_that_it_accepts_followers_or_came_to_a_port_that_does() {
    let noded = Noded::start();
    noded.follow();
    let mut client = noded.harness.client();
    for (command, found) in [
        ("READONLY", true),
        ("READWRITE", false),
        ("READONLY", true),
        ("ASKING", true),
        ("RESET", false),
    ] {
        assert!(ask(&mut client, command).starts_with('+'), "{command}");
        let reply = ask(&mut client, "EXISTS k");
        assert_eq!(reply, if found { ":1\r\n" } else { MOVED }, "{command}");
    }
    let mut reader = noded.harness.reading_client();
    assert!(ask(&mut reader, "CLIENT INFO").contains(" flags=r "));
    for command in ["PING", "RESET"] {
        assert!(ask(&mut reader, command).starts_with('+'), "{command}");
        assert_eq!(ask(&mut reader, "EXISTS k"), ":1\r\n", "{command}");
    }
    assert_eq!(ask(&mut reader, "TS.ADD k 3 3"), MOVED);
    noded.harness.stop();
}

#[test]
fn what_is_about_the_connection_or_the_process_is_run_by_every_node() {
    let noded = Noded::start();
    for role in [Role::Follower, Role::Loading] {
        noded.become_role(role, None);
        let mut client = noded.harness.client();
        for (command, begins) in [
            ("PING", "+PONG"),
            ("ECHO x", "$1"),
            ("SELECT 0", "+OK"),
            ("INFO server", "$"),
            ("CLIENT ID", ":"),
            ("CONFIG GET maxclients", "*2"),
            ("CONFIG SET maxclients 9999", "+OK"),
            ("ACL WHOAMI", "$7"),
            ("COMMAND COUNT", ":"),
            ("PUBLISH c x", ":0"),
            ("SLOWLOG LEN", ":"),
            ("LASTSAVE", ":"),
            ("TIME", "*2"),
            ("CLUSTER INFO", "$"),
            ("LATEWOOD HELP", "*"),
            ("MULTI", "+OK"),
            ("PING", "+QUEUED"),
            ("EXEC", "*1\r\n+PONG"),
            ("MONITOR", "+OK"),
        ] {
            let reply = ask(&mut client, command);
            assert!(reply.starts_with(begins), "{command}: {reply}");
        }
    }
    noded.harness.stop();
}

#[test]
fn what_the_owner_does_is_refused_in_words() {
    let noded = Noded::start();
    noded.follow();
    let mut client = noded.reader();
    let why = "; db-2:6379 owns the log\r\n";
    for (command, begins) in [
        ("SAVE", "-ERR SAVE: checkpoints are saved by the owner"),
        ("BGSAVE", "-ERR BGSAVE: checkpoints are saved by the owner"),
        (
            "WAIT 1 0",
            "-ERR WAIT cannot be used with replica instances",
        ),
        (
            "WAITAOF 1 0 0",
            "-ERR WAITAOF cannot be used with replica instances",
        ),
        (
            "LATEWOOD BACKUP /x",
            "-ERR LATEWOOD BACKUP is for the owner",
        ),
        ("LATEWOOD SETTLE", "-ERR LATEWOOD SETTLE is for the owner"),
        ("LATEWOOD MERGE NOW", "-ERR LATEWOOD MERGE is for the owner"),
        (
            "LATEWOOD CLOCK ACCEPT",
            "-ERR LATEWOOD CLOCK is for the owner",
        ),
    ] {
        assert_eq!(ask(&mut client, command), format!("{begins}{why}"));
    }
    noded.harness.stop();
}

#[test]
fn a_node_that_loses_the_log_between_two_commands_sends_the_second_on() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.harness.client());
    // The pause stands between the two commands of the pipeline.
    let pipeline = [
        "TS.ADD k 3 3",
        "CLIENT PAUSE 3600000 WRITE",
        "TS.ADD k 4 4",
        "TS.GET k",
    ];
    send(&mut client, &pipeline);
    expect(&mut client, ":3\r\n+OK\r\n");
    expect_silence(&mut client, &mut other);
    noded.follow();
    assert_eq!(ask(&mut other, "CLIENT UNPAUSE"), "+OK\r\n");
    expect(&mut client, MOVED);
    expect(&mut client, MOVED);
    assert_eq!(ask(&mut noded.reader(), "TS.GET k"), "*2\r\n:3\r\n+3\r\n");
    noded.harness.stop();
}

#[test]
fn who_waits_for_samples_is_sent_on_when_the_log_is_lost() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.harness.client());
    send(
        &mut client,
        &["TS.READ k 3 BLOCK 0 1", "TS.ADD k 4 4", "PING"],
    );
    expect_silence(&mut client, &mut other);
    noded.follow();
    expect(&mut client, MOVED);
    expect(&mut client, MOVED);
    expect(&mut client, "+PONG\r\n");
    noded.harness.stop();
}

#[test]
fn a_transaction_is_checked_as_it_is_queued_and_as_it_runs() {
    let noded = Noded::start();
    let (mut client, mut reader) = (noded.harness.client(), noded.reader());
    let queue = |client: &mut TcpStream, command: &str| {
        assert_eq!(ask(client, "MULTI"), "+OK\r\n");
        assert_eq!(ask(client, command), "+QUEUED\r\n");
    };
    queue(&mut client, "TS.ADD k 3 3");
    noded.follow();
    assert_eq!(ask(&mut client, "EXEC"), MOVED);
    assert_eq!(ask(&mut client, "EXEC"), "-ERR EXEC without MULTI\r\n");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(ask(&mut reader, "MULTI"), "+OK\r\n");
    assert_eq!(ask(&mut reader, "TS.ADD k 3 3"), MOVED);
    assert_eq!(ask(&mut reader, "EXEC"), aborted);
    queue(&mut reader, "TS.GET k");
    assert_eq!(ask(&mut reader, "EXEC"), "*1\r\n*2\r\n:2\r\n+2\r\n");
    queue(&mut reader, "TS.GET k");
    noded.get_stale();
    assert_eq!(ask(&mut reader, "EXEC"), MOVED);
    noded.harness.stop();
}

#[test]
fn a_follower_that_gets_stale_before_a_long_read_has_its_snapshot_does_not_answer() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.reader());
    assert_eq!(ask(&mut client, "TS.ADD k 300001 1"), ":300001\r\n");
    noded.follow();
    send(&mut other, &[LONG]);
    // It is queued, and nobody runs it yet.
    wait_for(|| noded.harness.shared.readers.counts() != (0, 0));
    noded.get_stale();
    let reader = noded.reading_thread();
    expect(&mut other, MOVED);
    noded.refresh();
    send(&mut other, &[LONG]);
    expect(&mut other, "*300001\r\n*2\r\n:1\r\n+1\r\n");
    noded.stop(reader);
}

#[test]
fn a_read_that_began_before_a_takeover_is_not_answered() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.reader());
    assert_eq!(ask(&mut client, "TS.ADD k 300001 1"), ":300001\r\n");
    noded.follow();
    send(&mut other, &[LONG]);
    wait_for(|| noded.harness.shared.readers.counts() != (0, 0));
    noded.become_role(Role::Owner, Some(ME));
    let reader = noded.reading_thread();
    let refused = "-TRYAGAIN the read was not answered, because this server took the log over ";
    expect(&mut other, &format!("{refused}meanwhile\r\n"));
    noded.stop(reader);
}

#[test]
fn a_long_reply_of_a_follower_that_gets_stale_is_broken_off() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.reader());
    // More than the sockets on the way hold.
    for series in 0..60 {
        for at in [1, 50_001] {
            let add = format!("TS.ADD many{series} {at} 1 LABELS all 1");
            assert_eq!(ask(&mut client, &add), format!(":{at}\r\n"));
        }
    }
    noded.follow();
    let reader = noded.reading_thread();
    let many = "TS.MRANGE - + AGGREGATION count 1 EMPTY FILTER all=1";
    send(&mut other, &[many]);
    expect(&mut other, "*60\r\n*3\r\n");
    noded.get_stale();
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = other.read_to_end(&mut rest);
    // A part ends where a series does.
    let rest = String::from_utf8(rest).unwrap();
    let series = rest.matches(":50001\r\n+1\r\n").count();
    assert!((1..60).contains(&series), "{series} series were sent");
    noded.stop(reader);
}

#[test]
fn a_transaction_that_waited_for_its_turn_is_checked_as_it_runs() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    let shared = Arc::clone(&noded.harness.shared);
    assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
    assert_eq!(ask(&mut client, "TS.ADD k 3 3"), "+QUEUED\r\n");
    let others_turn = shared.exec_lock.share_beside_loops();
    send(&mut client, &["EXEC", "PING"]);
    wait_for(|| shared.exec_lock.is_wanted());
    noded.follow();
    drop(others_turn);
    expect(&mut client, MOVED);
    expect(&mut client, "+PONG\r\n");
    noded.harness.stop();
}
