//! A start over damaged data.

use crate::harness::{Server, command};
use std::process::Stdio;

/// A directory whose log has a flipped bit in the second of three samples.
fn damaged() -> tempfile::TempDir {
    let server = Server::with(&[]);
    let mut client = server.client();
    for at in 1..=3 {
        client.expect(&[(&format!("TS.ADD key {at} {at}"), &format!(":{at}\r\n"))]);
    }
    let (_, dir) = server.terminate();
    let path = dir.path().join("wal/segment-0000000000000001.wal");
    let mut bytes = std::fs::read(&path).unwrap();
    let first = u32::from_le_bytes(bytes[8192..8196].try_into().unwrap()) as usize;
    bytes[8192 + 24 + first + 24] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    dir
}

#[test]
fn the_rest_is_served_and_the_damage_named() {
    let dir = damaged();
    let child = command(dir.path())
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = Server::adopt_after(child, dir, |line| {
        line.contains("the log is damaged: 1 groups")
            && line.contains("segment-0000000000000001.wal")
    });
    let mut client = server.client();
    client.expect(&[(
        "TS.RANGE key - +",
        "*2\r\n*2\r\n:1\r\n+1\r\n*2\r\n:3\r\n+3\r\n",
    )]);
    let info = client.ask("INFO latewood");
    for field in [
        "recovery_log_holes:1",
        "recovery_groups_lost:1",
        "quarantined_files:1",
    ] {
        assert!(info.contains(field), "{info}");
    }
    let held = std::fs::read_dir(server.dir().join("quarantine")).unwrap();
    assert_eq!(held.count(), 1);
}

#[test]
fn a_strict_start_refuses_in_words() {
    let dir = damaged();
    for set in ["flag", "environment"] {
        let mut start = command(dir.path());
        start.args(["--listen", "127.0.0.1:0"]);
        match set {
            "flag" => start.arg("--strict"),
            _ => start.env("LATEWOOD_STRICT", "on"),
        };
        let output = start.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{said}");
        assert!(
            said.contains("was durable and is missing or damaged"),
            "{said}"
        );
        assert!(!dir.path().join("quarantine").exists());
    }
}
