//! What a node tells of itself and the others, as Redis does.

use super::super::ask;
use super::super::disk_waits::{expect, expect_silence, send};
use super::Noded;
use latewood_cluster::node::Role;
use std::net::TcpStream;

const ONE: &str = "0101010101010101010101010101010101010101";
const TWO: &str = "0202020202020202020202020202020202020202";

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The reply of CLUSTER SLOTS where `owner` has all of them, and `other` none.
fn slots(owner: (&str, &str), other: (&str, &str)) -> String {
    let place = |(host, id)| format!("*4\r\n{}:6379\r\n{}*0\r\n", bulk(host), bulk(id));
    let (owner, other) = (place(owner), place(other));
    format!("*1\r\n*4\r\n:0\r\n:16383\r\n{owner}{other}")
}

/// The reply has each of these lines.
fn has_lines(client: &mut TcpStream, command: &str, lines: &[&str]) {
    let reply = ask(client, command);
    for line in lines {
        let found = reply.contains(&format!("\r\n{line}\r\n"));
        assert!(found, "{line} in {reply}");
    }
}

#[test]
fn an_owner_is_a_master_with_replicas() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    let replica = format!("{TWO} db-2:6379@0 slave {ONE} 0 0 5 connected");
    let nodes = format!("{ONE} db-1:6379@0 myself,master - 0 0 5 connected 0-16383\n{replica}\n");
    for (command, reply) in [
        ("CLUSTER NODES", bulk(&nodes)),
        ("CLUSTER MYID", bulk(ONE)),
        ("CLUSTER SLOTS", slots(("db-1", ONE), ("db-2", TWO))),
        (
            &format!("CLUSTER REPLICAS {ONE}"),
            format!("*1\r\n{}", bulk(&replica)),
        ),
        (
            &format!("CLUSTER SLAVES {ONE}"),
            format!("*1\r\n{}", bulk(&replica)),
        ),
        (
            &format!("CLUSTER REPLICAS {TWO}"),
            "-ERR The specified node is not a master\r\n".to_owned(),
        ),
        (
            &format!("CLUSTER COUNT-FAILURE-REPORTS {TWO}"),
            ":0\r\n".to_owned(),
        ),
        (
            "CLUSTER REPLICAS xyz",
            "-ERR Unknown node xyz\r\n".to_owned(),
        ),
    ] {
        assert_eq!(ask(&mut client, command), reply, "{command}");
    }
    let shards = ask(&mut client, "CLUSTER SHARDS");
    let has_both = shards.contains("$6\r\nmaster\r\n") && shards.contains("$7\r\nreplica\r\n");
    assert!(has_both, "{shards}");
    assert_eq!(ask(&mut client, "CLUSTER MYSHARDID").len(), bulk(ONE).len());
    has_lines(
        &mut client,
        "CLUSTER INFO",
        &["cluster_state:ok", "cluster_known_nodes:2"],
    );
    assert!(ask(&mut client, "ROLE").starts_with("*3\r\n$6\r\nmaster\r\n"));
    let slave = "slave0:ip=db-2,port=6379,state=online,offset=7,lag=0";
    let lines = ["role:master", "connected_slaves:1", slave];
    has_lines(&mut client, "INFO replication", &lines);
    has_lines(&mut client, "INFO server", &["redis_mode:cluster"]);
    noded.harness.stop();
}

#[test]
fn a_follower_is_a_replica_of_the_owner() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    noded.follow();
    let slots = slots(("db-2", TWO), ("db-1", ONE));
    assert_eq!(ask(&mut client, "CLUSTER SLOTS"), slots);
    let role = "*5\r\n$5\r\nslave\r\n$4\r\ndb-2\r\n:6379\r\n$9\r\nconnected\r\n";
    assert!(ask(&mut client, "ROLE").starts_with(role));
    let lines = [
        "role:slave",
        "master_host:db-2",
        "master_link_status:up",
        "cluster_enabled:1",
        "cluster_role:follower",
        "cluster_behind_ms:0",
        "cluster_newest_group:0",
        "cluster_unapplied_groups:0",
        "cluster_takes_reads:1",
        "cluster_users_differ:0",
    ];
    has_lines(&mut client, "INFO replication cluster", &lines);
    noded.get_stale();
    let lines = [
        "master_link_status:down",
        "cluster_behind_ms:5001",
        "cluster_takes_reads:0",
    ];
    has_lines(&mut client, "INFO replication cluster", &lines);
    let others_users = |standing: &mut latewood_cluster::node::Standing| {
        standing.members[1].digests = [1, 0];
    };
    noded.node.change(others_users);
    let lines = ["cluster_users_differ:1", "cluster_settings_differ:0"];
    has_lines(&mut client, "INFO cluster", &lines);
    noded.harness.stop();
}

#[test]
fn before_an_owner_is_known_nobody_has_slots() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    noded.become_role(Role::Follower, None);
    noded.node.change(|standing| standing.last_owner = None);
    assert_eq!(ask(&mut client, "CLUSTER SLOTS"), "*0\r\n");
    let lines = ["cluster_state:fail", "cluster_slots_assigned:0"];
    has_lines(&mut client, "CLUSTER INFO", &lines);
    assert!(ask(&mut client, "CLUSTER NODES").contains("myself,slave - 0 0 5 connected"));
    noded.harness.stop();
}

#[test]
fn without_an_owner_clients_keep_the_followers_of_the_last_one() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    noded.follow();
    let before = slots(("db-2", TWO), ("db-1", ONE));
    assert_eq!(ask(&mut client, "CLUSTER SLOTS"), before);
    // It leaves, or it is not heard any more: first the one, later the other.
    noded.node.change(|standing| standing.owner = None);
    for _ in 0..2 {
        assert_eq!(ask(&mut client, "CLUSTER SLOTS"), before);
        let lines = [
            "cluster_state:fail",
            "cluster_slots_ok:0",
            "cluster_slots_fail:16384",
            "cluster_known_nodes:2",
        ];
        has_lines(&mut client, "CLUSTER INFO", &lines);
        let nodes = ask(&mut client, "CLUSTER NODES");
        let gone = format!("{TWO} db-2:6379@0 master,fail - 0 0 5 disconnected 0-16383\n");
        assert!(nodes.contains(&gone), "{nodes}");
        assert!(ask(&mut client, "CLUSTER SHARDS").contains("$4\r\nfail\r\n"));
        noded.node.change(|standing| standing.members.truncate(1));
    }
    // A process that begins at its address stands in its place.
    let mut again = noded.node.standing().last_owner.clone().unwrap();
    again.id = latewood_cluster::node::NodeId([3; 20]);
    noded.node.change(|standing| standing.members.push(again));
    let three = "03".repeat(20);
    let expected = slots(("db-2", &three), ("db-1", ONE));
    assert_eq!(ask(&mut client, "CLUSTER SLOTS"), expected);
    // The next owner takes it.
    noded.become_role(Role::Owner, Some(super::ME));
    let expected = slots(("db-1", ONE), ("db-2", &three));
    assert_eq!(ask(&mut client, "CLUSTER SLOTS"), expected);
    has_lines(&mut client, "CLUSTER INFO", &["cluster_state:ok"]);
    noded.harness.stop();
}

#[test]
fn offsets_of_replication_are_groups_of_the_log() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    let position = noded.harness.shared.db.position().0;
    assert!(position > 0);
    noded.node.change(|standing| {
        standing.newest = 40;
        standing.members[0].applied = 38;
        standing.members[1].applied = position - 1;
    });
    let replica = format!(
        "slave0:ip=db-2,port=6379,state=online,offset={},lag=0",
        position - 1
    );
    let own = format!("master_repl_offset:{position}");
    has_lines(&mut client, "INFO replication", &[&replica, &own]);
    noded.follow();
    let lines = [
        "slave_repl_offset:38",
        "slave_read_repl_offset:40",
        "master_repl_offset:38",
    ];
    has_lines(&mut client, "INFO replication", &lines);
    noded.harness.stop();
}

#[test]
fn a_node_tells_who_has_its_address_and_what_differs() {
    let noded = Noded::start();
    let mut client = noded.harness.client();
    let lines = [
        "cluster_address_shared_with:",
        "cluster_settings_differing:",
    ];
    has_lines(&mut client, "INFO cluster", &lines);
    noded.node.change(|standing| {
        standing.twin = Some(latewood_cluster::node::Twin {
            id: super::OWNER,
            is_older: false,
        });
        standing.members[1].digests = [0, 1 << 48 | 1 << 12];
    });
    let shared = format!("cluster_address_shared_with:{TWO}");
    let lines = [
        &shared,
        "cluster_settings_differ:1",
        "cluster_settings_differing:retention,rules",
    ];
    has_lines(&mut client, "INFO cluster", &lines);
    has_lines(&mut client, "CLUSTER INFO", &[&shared]);
    noded.harness.stop();
}

#[test]
fn wait_counts_the_followers_that_have_the_writes() {
    let noded = Noded::start();
    let (mut client, mut other) = (noded.harness.client(), noded.harness.client());
    assert_eq!(ask(&mut client, "WAIT 1 0"), ":1\r\n", "it wrote nothing");
    let has = |applied: u64| {
        noded
            .node
            .change(|standing| standing.members[1].applied = applied);
    };
    assert_eq!(ask(&mut client, "TS.ADD k 3 3"), ":3\r\n");
    let position = noded.harness.shared.db.position().0;
    has(position - 1);
    assert_eq!(ask(&mut client, "WAIT 0 0"), ":0\r\n");
    assert_eq!(ask(&mut client, "WAIT 1 1"), ":0\r\n");
    send(&mut client, &["WAIT 1 0"]);
    expect_silence(&mut client, &mut other);
    has(position);
    expect(&mut client, ":1\r\n");
    // All that ends it without them says how many have.
    let id = ask(&mut client, "CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    for (reason, reply) in [
        ("TIMEOUT", ":1\r\n"),
        (
            "ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
    ] {
        send(&mut client, &["WAIT 2 0"]);
        expect_silence(&mut client, &mut other);
        assert!(ask(&mut other, "CLIENT LIST").contains("flags=b"));
        let unblocked = ask(&mut other, &format!("CLIENT UNBLOCK {id} {reason}"));
        assert_eq!(unblocked, ":1\r\n");
        expect(&mut client, reply);
    }
    let unblocked = ask(&mut other, &format!("CLIENT UNBLOCK {id}"));
    assert_eq!(unblocked, ":0\r\n", "it does not wait");
    send(&mut client, &["WAIT 2 0"]);
    expect_silence(&mut client, &mut other);
    noded.follow();
    expect(
        &mut client,
        "-UNBLOCKED this node has lost the log; db-2:6379 owns the log\r\n",
    );
    noded.harness.stop();
}
