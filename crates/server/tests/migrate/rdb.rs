//! `latewood import rdb`: files that Redis 7.4 and 8.2 wrote, and one of the peer as it is now.

use crate::harness::Server;
use crate::migrate::{latewood, outcome, rules, run};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn golden(name: &str) -> String {
    format!("{}/../rdb/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the import of a file with these further words.
fn import(file: &str, target: &Server, more: &[&str]) -> (Option<i32>, String, String) {
    let words = [&["import", "rdb", file, "--to", target.address()], more].concat();
    run(&words)
}

/// The samples of `key` as the file says they are: timestamp and the bits of the value.
fn expected(server: &str, key: &str) -> Vec<(i64, u64)> {
    let text = std::fs::read_to_string(golden(&format!("{server}.rows"))).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (of, row) = line.split_once(' ')?;
        let (timestamp, value) = row.split_once(' ')?;
        let value = u64::from_str_radix(value, 16).ok()?;
        (of == key).then_some((timestamp.parse().ok()?, value))
    });
    rows.collect()
}

fn found(target: &Server, key: &str) -> Vec<(i64, u64)> {
    let (_, csv, _) = run(&["export", "csv", "--from", target.address(), "--match", key]);
    let rows = csv.lines().filter_map(|line| {
        let mut words = line.split(',').skip(1);
        let timestamp = words.next()?.parse().ok()?;
        let value: f64 = words.next()?.parse().ok()?;
        Some((timestamp, value.to_bits()))
    });
    rows.collect()
}

#[test]
fn a_file_becomes_the_series_that_it_was_made_of() {
    for server in ["redis-7.4", "redis-8.2"] {
        let target = Server::start();
        let file = golden(&format!("{server}.rdb"));
        let (status, summary, errors) = import(&file, &target, &[]);
        assert_eq!(status, Some(0), "{summary}{errors}");
        for part in [
            "10 of 10 series agree by count and checksum: 948 samples\n",
            "6 compaction rules, 1 expiries\n",
            "skipped, stream: stream\n",
            "skipped, hash: ",
        ] {
            assert!(summary.contains(part), "{part} in {summary}");
        }
        for key in [
            "room:1",
            "plain",
            "one",
            "room:hour",
            "room:twa",
            "room:max",
        ] {
            let rows = expected(server, key);
            assert!(!rows.is_empty());
            assert_eq!(found(&target, key), rows, "{server} {key}");
        }
        let mut client = target.client();
        client.expect(&[
            ("DBSIZE", ":10\r\n"),
            ("PEXPIRETIME one", ":4102444800000\r\n"),
        ]);
        let info = client.ask("TS.INFO plain");
        for part in [
            "uncompressed",
            "ignoreMaxTimeDiff\r\n:5\r\n",
            "duplicatePolicy\r\n+max\r\n",
        ] {
            assert!(info.contains(part), "{part} in {info}");
        }

        let (status, summary, _) = import(&file, &target, &[]);
        assert_eq!(status, Some(3), "{summary}");
        assert!(
            summary.contains("room:1: not copied: the series exists on the target"),
            "{summary}"
        );
        let (status, summary, errors) = import(&file, &target, &["--overwrite"]);
        assert_eq!(status, Some(0), "{summary}{errors}");
    }
}

/// What Redis wrote after rules, late samples and an open bucket is what a copy of the running
/// server would have made.
#[test]
fn a_file_of_the_peer_carries_rules_and_expiry_on() {
    let (peer, target) = (rules::filled(), Server::start());
    let mut client = peer.client();
    client.expect(&[("SAVE", "+OK\r\n")]);
    let reply = client.ask("CONFIG GET dir");
    let dir = reply.split("\r\n").nth(4).unwrap();
    let file = Path::new(dir).join("dump.rdb");
    let (status, summary, errors) = import(file.to_str().unwrap(), &target, &[]);
    assert_eq!(status, Some(0), "{summary}{errors}");
    assert!(
        summary.contains("2 compaction rules, 1 expiries"),
        "{summary}"
    );
    rules::go_on_alike(&peer, &target);
}

#[test]
fn what_is_no_file_or_damaged_is_refused_in_words() {
    let target = Server::start();
    let text = golden("redis-7.4.rows");
    let (status, _, errors) = import(&text, &target, &[]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("not a file of Redis"), "{errors}");
    let (status, _, errors) = import("/no/such/file", &target, &[]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("/no/such/file"), "{errors}");

    let whole = std::fs::read(golden("redis-8.2.rdb")).unwrap();
    let words = ["import", "rdb", "-", "--to", target.address()];
    let mut command = latewood(&words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it took all.
    let _ = child
        .stdin
        .take()
        .unwrap()
        .write_all(&whole[..whole.len() / 2]);
    let (status, _, errors) = outcome(&child.wait_with_output().unwrap());
    assert_eq!(status, Some(1));
    assert!(errors.contains("the data ends at byte"), "{errors}");
    let mut changed = whole.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.rdb");
    std::fs::write(&file, &changed).unwrap();
    let (status, _, errors) = import(file.to_str().unwrap(), &target, &["--overwrite"]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("checksum"), "{errors}");
}
