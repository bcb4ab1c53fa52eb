//! Copies of a RedisTimeSeries that others write to.

use crate::harness::{Client, Server, eventually};
use crate::migrate::peer::Peer;
use crate::migrate::{assert_same, contents, copying, latewood, outcome, run};
use latewood_wire::resp::encode_command;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stops the writer when it goes, also where the test fails: else it would
/// wait for the writer for ever.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes samples in one pipeline and reads all replies.
fn add(client: &mut Client, key: &str, samples: impl Iterator<Item = (u64, f64)>) {
    let mut bytes = Vec::new();
    let mut count = 0;
    for (timestamp, value) in samples {
        let (timestamp, value) = (timestamp.to_string(), value.to_string());
        encode_command(
            &mut bytes,
            &["TS.ADD", key, &timestamp, &value, "ON_DUPLICATE", "LAST"],
        );
        count += 1;
    }
    client.send(&bytes);
    for _ in 0..count {
        let reply = client.reply();
        assert_eq!(reply[0], b':', "{}", String::from_utf8_lossy(&reply));
    }
}

/// Series of every kind: empty, of the length of one, two and a bit more than two pages, with
/// options, labels, late samples, odd names.
fn fill(client: &mut Client) {
    client.expect(&[
        ("TS.CREATE empty LABELS site north", "+OK\r\n"),
        (
            "TS.CREATE blocked DUPLICATE_POLICY BLOCK CHUNK_SIZE 128 LABELS a=b c",
            "+OK\r\n",
        ),
        (
            "TS.CREATE kept RETENTION 50000 ENCODING UNCOMPRESSED",
            "+OK\r\n",
        ),
        ("TS.CREATE ignoring DUPLICATE_POLICY LAST", "+OK\r\n"),
        ("PEXPIREAT empty 33000000000000", ":1\r\n"),
        ("SET text 1", "+OK\r\n"),
        ("SADD set 1", ":1\r\n"),
    ]);
    for (key, length) in [("one-page", 5_000), ("two-pages", 10_000), ("more", 10_001)] {
        add(client, key, (0..length).map(|at| (at * 3, at as f64 / 7.0)));
    }
    add(
        client,
        "blocked",
        (0..3_000).map(|at| (90_000 - at * 30, -1.0 / (at + 1) as f64)),
    );
    add(
        client,
        "kept",
        (0..1_000).map(|at| (at * 100, f64::MAX / (at + 1) as f64)),
    );
    // Too close to each other for the IGNORE rule that follows.
    add(client, "ignoring", (0..100).map(|at| (at, 1.0)));
    client.expect(&[("TS.ALTER ignoring IGNORE 50 5", "+OK\r\n")]);
    for room in 0..20_u64 {
        let key = format!("room:{room} \u{e4}\u{1F600}");
        let create = [
            "TS.CREATE",
            &key,
            "LABELS",
            "room",
            &room.to_string(),
            "note",
            "x \"y\" z",
        ];
        assert_eq!(client.ask_words(&create), "+OK\r\n");
        add(
            client,
            &key,
            (0..500).map(|at| (at * 7919 % 500 * 10, at as f64)),
        );
    }
}

/// Writes new samples, late ones and corrections, deletes some, makes a new series now and
/// then, until told to stop.
fn disturb(client: &mut Client, stop: &AtomicBool) {
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        add(
            client,
            "more",
            (0..10).map(|at| (40_000 + round * 10 + at, 0.5)),
        );
        add(
            client,
            "more",
            (0..10).map(|at| (round * 97 % 30_000 + at, round as f64)),
        );
        add(
            client,
            "two-pages",
            (0..5).map(|at| (round * 89 % 30_000 + at, round as f64)),
        );
        let from = (round * 31 % 30_000).to_string();
        let to = (round * 31 % 30_000 + 20).to_string();
        client.ask_words(&["TS.DEL", "one-page", &from, &to]);
        if round.is_multiple_of(50) {
            add(
                client,
                &format!("new:{}", round % 1_000),
                (0..3).map(|at| (at, 1.0)),
            );
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_source_at_rest_is_copied_whole() {
    copies_whole(&[]);
}

#[test]
fn a_source_at_rest_is_copied_whole_by_its_snapshot() {
    copies_whole(&["--psync"]);
}

fn copies_whole(more: &[&str]) {
    let (peer, target) = (Peer::start(), Server::start());
    fill(&mut peer.client());
    let words = [&copying(&peer, &target)[..], more].concat();
    let (status, summary, errors) = run(&words);
    assert_eq!(status, Some(0), "{summary}{errors}");
    assert!(summary.contains("27 of 27 series agree"), "{summary}");
    assert!(summary.contains("skipped, string: text\n"), "{summary}");
    assert!(summary.contains("skipped, set: set\n"), "{summary}");
    assert!(summary.contains(" 1 expiries"), "{summary}");
    assert_same(&contents(peer.address()), &contents(target.address()));
    // The IGNORE rule is at work again.
    target
        .client()
        .expect(&[("TS.ADD ignoring 120 2", ":99\r\n")]);
}

#[test]
fn following_a_writer_ends_with_both_sides_equal() {
    let told = follows(&[], |line, _| {
        // Two passes found something: the writer was followed.
        let is_second = line.starts_with("pass 2:");
        assert!(!line.starts_with("pass 2: 0 of"), "{line}");
        is_second
    });
    assert!(!told.iter().any(|line| line.starts_with("followed")));
}

#[test]
fn following_the_commands_behind_a_snapshot_ends_with_both_sides_equal() {
    let told = follows(&["--psync"], |line, _| {
        let follows = line.starts_with("following the commands");
        if follows {
            std::thread::sleep(Duration::from_secs(1));
        }
        follows
    });
    let numbers = |line: &String| {
        let number = |word: &str| word.trim_end_matches(',').parse().ok();
        line.split(' ').filter_map(number).collect::<Vec<u64>>()
    };
    let last_of = |begin: &str| {
        let line = told.iter().rfind(|line| line.starts_with(begin));
        numbers(line.unwrap_or_else(|| panic!("{told:?}")))
    };
    let followed = last_of("followed ");
    assert!(followed[0] > 1_000 && followed[1] > 1_000, "{told:?}");
    // The pass finds a new series that the first walk did not see, and no more.
    let passed = told
        .iter()
        .find(|line| line.starts_with("pass 1: ") && line.contains("differed"));
    let by = numbers(passed.unwrap()).pop().unwrap();
    assert!(by <= 3 * 20, "{told:?}");
}

#[test]
fn a_writer_whose_commands_end_is_compared() {
    let told = follows(&["--psync"], |line, peer| {
        if line.starts_with("following the commands") {
            peer.client().ask("CLIENT KILL TYPE replica");
        }
        line.starts_with("pass 2:")
    });
    let ended = |line: &String| line.starts_with("no more commands of the source: it closed");
    assert!(told.iter().any(ended), "{told:?}");
}

/// Follows a writer until `is_enough` says so of a line.
fn follows(more: &[&str], is_enough: impl Fn(&str, &Peer) -> bool) -> Vec<String> {
    let (peer, target) = (Peer::start(), Server::start());
    fill(&mut peer.client());
    let stop = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        let stopper = Stopper(&stop);
        scope.spawn(|| disturb(&mut peer.client(), &stop));
        let (status, summary, told) = follow(&peer, &target, more, |line| {
            if is_enough(line, &peer) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        drop(stopper);
        assert_eq!(status, Some(0), "{summary}{told:?}");
        told
    });
    assert_same(&contents(peer.address()), &contents(target.address()));
    told
}

/// Copies with `--follow` and shows each line to `see`; its status, summary and lines.
pub(super) fn follow(
    peer: &Peer,
    target: &Server,
    more: &[&str],
    mut see: impl FnMut(&str),
) -> (Option<i32>, String, Vec<String>) {
    let mut import = latewood(&copying(peer, target))
        .args(["--follow", "--delete"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(import.stderr.take().unwrap()).lines();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok) {
        see(&line);
        told.push(line);
    }
    let (status, summary, _) = outcome(&import.wait_with_output().unwrap());
    (status, summary, told)
}

#[test]
fn a_series_that_never_rests_is_named() {
    let (peer, target) = (Peer::start(), Server::start());
    add(&mut peer.client(), "still", (0..100).map(|at| (at, 1.0)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopper = Stopper(&stop);
        scope.spawn(|| {
            let mut client = peer.client();
            add(&mut client, "hot", (0..2_000).map(|at| (at, 0.0)));
            for at in 2_000.. {
                add(&mut client, "hot", std::iter::once((at, at as f64)));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut reader = peer.client();
        eventually("a series", || reader.ask("EXISTS hot") == ":1\r\n");
        reader.expect(&[
            ("TS.CREATE mean", "+OK\r\n"),
            ("TS.CREATERULE hot mean AGGREGATION avg 1000000", "+OK\r\n"),
        ]);
        // The rate makes every walk last, so that the writer gets ahead of it.
        let words = copying(&peer, &target);
        let options = ["--rate", "5000", "--passes", "2"];
        let (status, summary, errors) = run(&[&words[..], &options].concat());
        drop(stopper);
        assert_eq!(status, Some(3), "{summary}{errors}");
        assert!(summary.contains("2 of 3 series agree"), "{summary}");
        assert!(summary.contains("hot: still changing"), "{summary}");
        // Making the rule would write into a destination that is still copied.
        let rule = "rule hot -> mean: hot does not agree yet";
        assert!(summary.contains(rule), "{summary}");
    });
}

#[test]
fn a_killed_import_goes_on_where_it_was() {
    let (peer, target) = (Peer::start(), Server::start());
    fill(&mut peer.client());
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    let words = copying(&peer, &target);
    let words = [&words[..], &["--resume", state]].concat();
    let mut import = latewood(&words)
        .args(["--rate", "10000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let copied = || {
        let text = std::fs::read_to_string(state).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with("copied"))
            .count()
    };
    eventually("the fourth series", || {
        assert_eq!(import.try_wait().unwrap(), None, "it ended");
        copied() >= 4
    });
    import.kill().unwrap();
    import.wait().unwrap();
    assert!(copied() < 27, "it was killed on its way");

    // Without its state the import does not know the series as its own.
    let (status, summary, _) = run(&[&words[..6], &["--match", "blocked"]].concat());
    assert_eq!(status, Some(3));
    assert!(
        summary.contains("the series exists on the target"),
        "{summary}"
    );
    // What is lost meanwhile is copied again.
    target.client().expect(&[("DEL blocked", ":1\r\n")]);
    let (status, summary, errors) = run(&words);
    assert_eq!(status, Some(0), "{summary}{errors}");
    assert_same(&contents(peer.address()), &contents(target.address()));

    // A state of another import is refused, whatever else is right.
    let (status, _, errors) = run(&[&words[..], &["--match", "room:*"]].concat());
    assert_eq!(status, Some(1));
    assert!(errors.contains("belongs to another import"), "{errors}");
}

#[test]
fn a_broken_connection_is_an_error_and_the_rest_can_follow() {
    let (mut peer, target) = (Peer::start(), Server::start());
    fill(&mut peer.client());
    let words = copying(&peer, &target);
    let mut import = latewood(&words)
        .args(["--rate", "10000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the first series", || {
        assert_eq!(import.try_wait().unwrap(), None, "it ended");
        target.client().ask("DBSIZE") != ":0\r\n"
    });
    peer.kill();
    let (status, summary, errors) = outcome(&import.wait_with_output().unwrap());
    assert_eq!(status, Some(1), "{summary}");
    assert!(errors.contains("connection to the source"), "{errors}");
}

#[test]
fn series_that_are_there_are_kept_unless_told_otherwise() {
    let (peer, target) = (Peer::start(), Server::start());
    add(&mut peer.client(), "k", (10..20).map(|at| (at, 1.0)));
    target.client().expect(&[
        ("TS.CREATE k LABELS mine yes", "+OK\r\n"),
        ("TS.ADD k 5 5", ":5\r\n"),
        ("TS.ADD k 15 5", ":15\r\n"),
    ]);
    let before = contents(target.address());
    let words = copying(&peer, &target);
    let (status, summary, _) = run(&words);
    assert_eq!(status, Some(3));
    assert!(
        summary.contains("k: not copied: the series exists"),
        "{summary}"
    );
    assert_same(&contents(target.address()), &before);

    // Overwriting alone deletes nothing.
    let (status, summary, _) = run(&[&words[..], &["--overwrite"]].concat());
    assert_eq!(status, Some(3));
    assert!(
        summary.contains("\nk: 1 samples are not on the source (use --delete)\n"),
        "{summary}"
    );
    target.client().expect(&[(
        "TS.RANGE k 0 10",
        "*2\r\n*2\r\n:5\r\n+5\r\n*2\r\n:10\r\n+1\r\n",
    )]);

    let (status, summary, _) = run(&[&words[..], &["--overwrite", "--delete"]].concat());
    assert_eq!(status, Some(0), "{summary}");
    assert_same(&contents(peer.address()), &contents(target.address()));
}
