//! Compaction rules and expiry: they come last, and work on as they did on the source.

use crate::harness::Server;
use crate::migrate::peer::Peer;
use crate::migrate::{assert_same, contents, copying, run};

/// A source with two rules, late samples and a bucket that is still open.
pub(super) fn filled() -> Peer {
    let peer = Peer::start();
    let mut client = peer.client();
    client.expect(&[
        (
            "TS.CREATE raw DUPLICATE_POLICY LAST IGNORE 1000 1000",
            "+OK\r\n",
        ),
        ("TS.CREATE mean LABELS of raw", "+OK\r\n"),
        ("TS.CREATE total", "+OK\r\n"),
        ("TS.CREATERULE raw mean AGGREGATION avg 1000", "+OK\r\n"),
        (
            "TS.CREATERULE raw total AGGREGATION sum 1000 300",
            "+OK\r\n",
        ),
        ("TS.ALTER raw IGNORE 0 0", "+OK\r\n"),
    ]);
    for at in [100, 900, 1500, 2500, 700, 3100, 1600, 5200, 5900, 5300] {
        let reply = client.ask(&format!("TS.ADD raw {at} {}", at / 7));
        assert_eq!(reply, format!(":{at}\r\n"));
    }
    client.expect(&[
        ("TS.ALTER raw IGNORE 10 0.5", "+OK\r\n"),
        // As a user may, in a destination: it is copied, not computed.
        ("TS.ADD mean 4000 77", ":4000\r\n"),
        ("PEXPIREAT raw 33000000000000", ":1\r\n"),
    ]);
    peer
}

#[test]
fn rules_go_on_where_the_source_left_them() {
    let (peer, target) = (filled(), Server::start());
    let words = copying(&peer, &target);
    let (status, summary, errors) = run(&words);
    assert_eq!(status, Some(0), "{summary}{errors}");
    assert!(
        summary.contains("2 compaction rules, 1 expiries"),
        "{summary}"
    );
    go_on_alike(&peer, &target);
}

/// Both have the same, and the buckets that were open close on both sides with all that was in them, and late
/// samples are taken in.
pub(super) fn go_on_alike(peer: &Peer, target: &Server) {
    assert_same(&contents(peer.address()), &contents(target.address()));
    for command in [
        "TS.ADD raw 5950 3",
        "TS.ADD raw 7400 1",
        "TS.ADD raw 2600 9",
    ] {
        assert_eq!(peer.client().ask(command), target.client().ask(command));
    }
    assert_same(&contents(peer.address()), &contents(target.address()));
}

#[test]
fn a_rule_to_a_series_left_out_is_named() {
    let (peer, target) = (filled(), Server::start());
    let words = copying(&peer, &target);
    let (status, summary, errors) = run(&[&words[..], &["--match", "[rm]*"]].concat());
    assert_eq!(status, Some(3), "{summary}{errors}");
    let left = "rule raw -> total: total is not among the imported series";
    assert!(summary.contains(left), "{summary}");
    assert!(summary.contains("1 compaction rules"), "{summary}");
}

#[test]
fn a_file_carries_rules_and_expiry() {
    let (peer, target) = (filled(), Server::start());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    std::fs::write(&file, contents(peer.address())).unwrap();
    let file = file.to_str().unwrap();
    let (status, _, errors) = run(&["import", "csv", "--to", target.address(), file]);
    assert_eq!(status, Some(0), "{errors}");
    assert_same(&contents(peer.address()), &contents(target.address()));
    let closing = "TS.ADD raw 7400 1";
    assert_eq!(peer.client().ask(closing), target.client().ask(closing));
    assert_same(&contents(peer.address()), &contents(target.address()));
}
