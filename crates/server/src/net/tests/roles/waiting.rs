//! TS.READ with BLOCK at a node that follows: who waits hears of what is applied.

use super::super::disk_waits::{expect, expect_silence, send};
use super::super::{Harness, ask};
use super::{ME, MOVED, OWNER};
use crate::options::testing::{self, STALENESS_MS, TestLog};
use latewood_cluster::node::{Node, Role};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimClock;
use latewood_engine::{Append, Create, Db, Scratch};
use std::net::TcpStream;
use std::sync::Arc;

/// A fresh follower of `db-2`, and the database of that.
struct Following {
    harness: Harness,
    log: Arc<TestLog>,
    owner: Db,
    node: Arc<Node>,
    clock: Arc<SimClock>,
}

impl Following {
    /// With a sample under each of `k` and `j`, which is applied.
    fn start() -> Self {
        let log = Arc::new(TestLog::default());
        log.prove();
        let owner = testing::open_on_log(Arc::clone(&log));
        let harness = Harness::serving(testing::shared_follower);
        let (node, clock) = testing::follow(&harness.shared);
        let following = Self {
            harness,
            log,
            owner,
            node,
            clock,
        };
        following.add(&[b"k", b"j"], 1);
        following.apply();
        following
    }

    /// The owner adds a sample to each of these.
    fn add(&self, keys: &[&[u8]], timestamp: i64) {
        let batch: Vec<_> = keys
            .iter()
            .map(|key| Append {
                key,
                timestamp,
                value: 5.0,
                on_duplicate: None,
                create: Create::Defaults,
            })
            .collect();
        self.owner.append(&batch, &mut Scratch::new()).unwrap();
    }

    /// The follower applies all that the owner wrote.
    fn apply(&self) {
        let db = &self.harness.shared.db;
        db.follow(&self.log.groups(db.applied().0)).unwrap();
    }

    fn reader(&self) -> TcpStream {
        let mut client = self.harness.client();
        assert_eq!(ask(&mut client, "READONLY"), "+OK\r\n");
        client
    }
}

#[test]
fn who_waits_at_a_follower_hears_of_what_is_applied() {
    let following = Following::start();
    let (mut client, mut other) = (following.reader(), following.reader());
    let owner = &following.owner;
    let changes: [(&str, &dyn Fn(), &str); 6] = [
        (
            "TS.READ k 2 BLOCK 0 1",
            &|| following.add(&[b"j", b"k"], 2),
            "*1\r\n*2\r\n:2\r\n+5\r\n",
        ),
        (
            "TS.READ new - BLOCK 0 1",
            &|| following.add(&[b"new"], 3),
            "*1\r\n*2\r\n:3\r\n+5\r\n",
        ),
        (
            "TS.READ other - BLOCK 0 1",
            &|| assert!(owner.rename(b"new", b"other", false).unwrap().0),
            "*1\r\n*2\r\n:3\r\n+5\r\n",
        ),
        (
            "TS.READ other 9 BLOCK 0 1",
            &|| assert!(owner.rename(b"other", b"new", false).unwrap().0),
            "*0\r\n",
        ),
        (
            "TS.READ k 9 BLOCK 0 1",
            &|| assert_eq!(owner.remove(&[b"k"]).unwrap().0, 1),
            "*0\r\n",
        ),
        (
            "TS.READ j 9 BLOCK 0 1",
            &|| assert!(owner.flush_all().is_ok()),
            "*0\r\n",
        ),
    ];
    for (read, change, reply) in changes {
        send(&mut client, &[read]);
        expect_silence(&mut client, &mut other);
        change();
        expect_silence(&mut client, &mut other);
        following.apply();
        expect(&mut client, reply);
    }
    following.harness.stop();
}

#[test]
fn who_waits_at_a_follower_that_gets_stale_is_sent_on() {
    let following = Following::start();
    let (mut client, mut other) = (following.reader(), following.reader());
    send(&mut client, &["TS.READ k 9 BLOCK 0 1", "PING"]);
    expect_silence(&mut client, &mut other);
    following.clock.advance_ms(STALENESS_MS + 1);
    expect(&mut client, MOVED);
    expect(&mut client, "+PONG\r\n");
    // As does what wakes it at that moment.
    following.node.set_fresh(following.clock.boottime_ns());
    send(&mut client, &["TS.READ k 9 BLOCK 0 1"]);
    expect_silence(&mut client, &mut other);
    following.add(&[b"k"], 9);
    following.clock.advance_ms(STALENESS_MS + 1);
    following.apply();
    expect(&mut client, MOVED);
    assert_eq!(ask(&mut client, "TS.READ k 9 BLOCK 0 1"), MOVED);
    following.harness.stop();
}

#[test]
fn who_accepts_no_follower_waits_at_the_owner() {
    let following = Following::start();
    let mut plain = following.harness.client();
    assert_eq!(ask(&mut plain, "TS.READ k 9 BLOCK 0 1"), MOVED);
    following.harness.stop();
}

#[test]
fn who_waits_at_a_follower_that_takes_the_log_over_waits_on() {
    let following = Following::start();
    let (mut client, mut other) = (following.reader(), following.reader());
    send(&mut client, &["TS.READ k 9 BLOCK 0 1"]);
    expect_silence(&mut client, &mut other);
    let log = Arc::clone(&following.log);
    following.harness.shared.db.promote(log).unwrap();
    following.node.change(|standing| {
        assert_eq!(standing.owner, Some(OWNER));
        (standing.role, standing.owner) = (Role::Owner, Some(ME));
    });
    assert_eq!(ask(&mut other, "TS.ADD k 9 9"), ":9\r\n");
    expect(&mut client, "*1\r\n*2\r\n:9\r\n+9\r\n");
    following.harness.stop();
}
