//! Compaction rules and expiry: they come last, and work on as they did on the source.

use crate::harness::{Client, Server};
use crate::migrate::live::follow;
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

/// RedisTimeSeries tells the time of the first row as the newest where rows come late.
#[test]
fn rows_that_came_late_are_copied() {
    let peer = Peer::start();
    let mut client = peer.client();
    for command in [
        "TS.CREATE s",
        "TS.CREATE d",
        "TS.ADD s 100000 1",
        "TS.CREATERULE s d AGGREGATION sum 10",
        "TS.ADD s 10 10",
        "TS.ADD s 20 20",
        "TS.ADD s 30 30",
        "TS.ADD s 40 40",
    ] {
        let reply = client.ask(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    for more in [&[][..], &["--psync"]] {
        let target = Server::start();
        let (status, summary, errors) = run(&[&copying(&peer, &target)[..], more].concat());
        assert_eq!(status, Some(0), "{summary}{errors}");
        assert!(
            summary.contains("agree by count and checksum: 9 samples"),
            "{summary}"
        );
        let range = "TS.RANGE d - +";
        assert_eq!(target.client().ask(range), client.ask(range));
    }
}

#[test]
fn what_goes_between_two_runs_goes_from_the_target() {
    let (peer, target) = (Peer::start(), Server::start());
    let mut client = peer.client();
    let make = |client: &mut Client, commands: &[&str]| {
        for command in commands {
            let reply = client.ask(command);
            assert!(!reply.starts_with('-'), "{command}: {reply}");
        }
    };
    make(
        &mut client,
        &[
            "TS.ADD a 1 1",
            "TS.ADD b 1 1",
            "TS.CREATE d",
            "TS.CREATERULE a d AGGREGATION sum 10",
            "TS.ADD text 1 1",
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let resume = ["--resume", state.to_str().unwrap()];
    let words = [&copying(&peer, &target)[..], &resume].concat();
    let (status, summary, errors) = run(&words);
    assert_eq!(status, Some(0), "{summary}{errors}");
    make(
        &mut client,
        &[
            "DEL b",
            "TS.DELETERULE a d",
            "SET text 1",
            "TS.ADD a 25 1",
            "TS.ADD a 35 1",
        ],
    );
    let (status, summary, _) = run(&words);
    assert_eq!(status, Some(3), "{summary}");
    for left in [
        "b: deleted on the source, still on the target (use --delete)",
        "text: deleted on the source, still on the target (use --delete)",
        "rule a -> d: not on the source (use --delete)",
    ] {
        assert!(summary.contains(left), "{left} in {summary}");
    }
    let (status, summary, errors) = run(&[&words[..], &["--delete"]].concat());
    assert_eq!(status, Some(0), "{summary}{errors}");
    let mut ours = target.client();
    assert_eq!(ours.ask("EXISTS b text"), ":0\r\n");
    make(&mut ours, &["TS.ADD a 45 1"]);
    assert_eq!(ours.ask("TS.RANGE d - +"), client.ask("TS.RANGE d - +"));
    // While commands are followed, too.
    let more = [&resume[..], &["--psync"]].concat();
    let (status, summary, told) = follow(&peer, &target, &more, |line| {
        if line.starts_with("following the commands") {
            make(&mut client, &["DEL a", "RENAME text other"]);
        }
    });
    assert_eq!(status, Some(0), "{summary}{told:?}");
    assert_eq!(ours.ask("EXISTS a d"), ":1\r\n");
    // A source that lost everything is not followed.
    client.ask("FLUSHALL");
    let (status, _, errors) = run(&[&words[..], &["--delete"]].concat());
    assert_eq!(status, Some(1));
    assert!(errors.contains("is it the right one?"), "{errors}");
    assert_eq!(ours.ask("EXISTS d"), ":1\r\n");
}

#[test]
fn rows_of_rules_are_followed_and_a_series_of_others_is_left_alone() {
    let (peer, target) = (filled(), Server::start());
    let mut ours = target.client();
    ours.expect(&[("TS.ADD mean 4000 1", ":4000\r\n")]);
    let (status, summary, told) = follow(&peer, &target, &["--psync"], |line| {
        if line.starts_with("following the commands") {
            let mut client = peer.client();
            for command in [
                "TS.ADD raw 7400 1",
                "TS.ADD raw 650 100",
                "TS.DEL raw 1500 1600",
                "TS.INCRBY raw 5 TIMESTAMP 9400",
                "TS.CREATE new LABELS a b",
                "TS.INCRBY new 2",
                "TS.ADD gone 1 1",
                "RENAME gone moved",
                "TS.ADD short 1 1",
                "DEL short",
                "SET text 1",
            ] {
                let reply = client.ask(command);
                assert!(!reply.starts_with('-'), "{command}: {reply}");
            }
        }
    });
    assert_eq!(status, Some(3), "{summary}{told:?}");
    assert!(summary.contains("mean: "), "{summary}");
    // The pass found nothing that the commands had not said.
    let is_clean = |line: &String| line.starts_with("pass 1: 0 of ");
    assert!(told.iter().any(is_clean), "{told:?}");
    assert_eq!(ours.ask("TS.RANGE mean - +"), "*1\r\n*2\r\n:4000\r\n+1\r\n");
    for key in ["raw", "total", "new", "moved"] {
        let range = format!("TS.RANGE {key} - +");
        assert_eq!(ours.ask(&range), peer.client().ask(&range), "{key}");
    }
    assert_eq!(ours.ask("EXISTS gone short text"), ":0\r\n");
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
