//! A start over damaged data.

use crate::harness::{Server, command, eventually};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write, copy, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::thread::spawn;

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
        "quarantine_unaccepted:1",
    ] {
        assert!(info.contains(field), "{info}");
    }
    let held = std::fs::read_dir(server.dir().join("quarantine")).unwrap();
    let held: Vec<_> = held.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(held.iter().any(|name| name == "UNACCEPTED"));
}

/// What the first start met is in blocks then: no later one meets it again.
#[test]
fn a_hole_in_the_log_is_found_once() {
    for is_killed in [false, true] {
        let server = Server::over(damaged(), &[]);
        let mut client = server.client();
        assert_eq!(client.info("recovery_log_holes"), 1);
        eventually("a flush", || {
            client.info("flushes") > 0 && client.info("wal_rolls") > 0
        });
        let dir = if is_killed {
            server.kill()
        } else {
            server.terminate().1
        };
        let server = Server::over(dir, &["--strict"]);
        let mut client = server.client();
        assert_eq!(client.info("recovery_log_holes"), 0);
        client.expect(&[(
            "TS.RANGE key - +",
            "*2\r\n*2\r\n:1\r\n+1\r\n*2\r\n:3\r\n+3\r\n",
        )]);
    }
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

/// Two series with ten samples each in a block; the chunk of one of them is
/// damaged. The directory, the damaged key and the other one.
fn damaged_block() -> (tempfile::TempDir, &'static str, &'static str) {
    let server = Server::with(&[]);
    let mut client = server.client();
    for key in ["a", "b"] {
        for at in 1..=10 {
            client.expect(&[(&format!("TS.ADD {key} {at} {at}"), &format!(":{at}\r\n"))]);
        }
    }
    client.expect(&[("SAVE", "+OK\r\n")]);
    let (_, dir) = server.terminate();
    let block = std::fs::read_dir(dir.path().join("blocks")).unwrap().next();
    let block = block.unwrap().unwrap().path();
    let mut bytes = std::fs::read(&block).unwrap();
    // The chunk of the first series stands right behind the header.
    bytes[40] ^= 1;
    std::fs::write(&block, bytes).unwrap();
    let server = Server::over(dir, &[]);
    let mut client = server.client();
    let is_damaged = client.ask("TS.RANGE a - +").starts_with('-');
    let (bad, good) = if is_damaged { ("a", "b") } else { ("b", "a") };
    assert!(
        client
            .ask(&format!("TS.RANGE {bad} - +"))
            .contains("damaged")
    );
    (server.kill(), bad, good)
}

#[test]
fn samples_in_a_damaged_block_are_deleted_though_they_cannot_be_counted() {
    let (dir, bad, good) = damaged_block();
    let server = Server::over(dir, &[]);
    let mut client = server.client();
    let reply = client.ask(&format!("TS.DEL {bad} 3 5"));
    assert!(reply.starts_with('-'), "{reply}");
    for word in [
        "the samples are deleted, but not counted: ",
        "damaged",
        ".blk",
    ] {
        assert!(reply.contains(word), "{reply}");
    }
    // What is left of the chunk is as unreadable as before.
    let named = format!("for key '{bad}'");
    let reply = client.ask(&format!("TS.RANGE {bad} - +"));
    assert!(
        reply.starts_with('-') && reply.contains("damaged") && reply.contains(&named),
        "{reply}"
    );
    client.ask(&format!("TS.DEL {bad} 0 100"));
    let (empty, count) = (format!("TS.RANGE {bad} - +"), format!("TS.DEL {good} 3 5"));
    let (add, one) = (format!("TS.ADD {bad} 20 7"), "*1\r\n*2\r\n:20\r\n+7\r\n");
    client.expect(&[
        (&empty, "*0\r\n"),
        (&count, ":3\r\n"),
        (&add, ":20\r\n"),
        (&empty, one),
    ]);
    // As after any other deletion, a restart changes nothing.
    let server = Server::over(server.kill(), &[]);
    let left = client_count(&server, good);
    server.client().expect(&[(&empty, one)]);
    assert_eq!(left, "*1\r\n*2\r\n:0\r\n+7\r\n");
}

fn client_count(server: &Server, key: &str) -> String {
    server
        .client()
        .ask(&format!("TS.RANGE {key} - + AGGREGATION count 100"))
}

#[test]
fn a_damaged_series_is_named_where_it_cannot_be_copied() {
    let (dir, bad, _) = damaged_block();
    let server = Server::over(dir, &[]);
    let reply = server.client().ask(&format!("COPY {bad} copy"));
    let named = format!("for key '{bad}'\r\n");
    assert!(
        reply.contains("damaged") && reply.ends_with(&named),
        "{reply}"
    );
}

/// A server over `dir` whose log nobody reads once it is ready, with no room in
/// its pipe; what was sent is said when the other end hears of it.
fn start_unread(dir: tempfile::TempDir) -> (Server, Sender<()>) {
    let mut child = command(dir.path())
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = child.stderr.take().unwrap();
    let end = format!("/proc/self/fd/{}", said.as_raw_fd());
    let (shown, mut relay) = pipe().unwrap();
    child.stderr = Some(OwnedFd::from(shown).into());
    let (go_on, told) = channel();
    spawn(move || {
        let (mut said, mut line) = (BufReader::new(said), String::new());
        while !line.contains("ready") {
            line.clear();
            if said.read_line(&mut line).unwrap() == 0 {
                return;
            }
            relay.write_all(line.as_bytes()).unwrap();
        }
        // Where the test failed nobody says it.
        let _ = told.recv();
        let _ = copy(&mut said, &mut relay);
    });
    let server = Server::adopt(child, dir);
    let flags = OFlags::NONBLOCK.bits() as i32;
    let pipe = OpenOptions::new().write(true).custom_flags(flags).open(end);
    let mut pipe = pipe.unwrap();
    let lines = [b'\n'; 4096];
    for len in [lines.len(), 1] {
        while pipe.write(&lines[..len]).is_ok_and(|len| len > 0) {}
    }
    (server, go_on)
}

#[test]
fn a_log_that_nobody_reads_holds_no_command_up() {
    let (dir, bad, good) = damaged_block();
    let (server, go_on) = start_unread(dir);
    let mut client = server.client();
    let reply = client.ask(&format!("TS.RANGE {bad} - +"));
    assert!(reply.contains("damaged"), "{reply}");
    let add = format!("TS.ADD {good} 20 7");
    client.expect(&[(&add, ":20\r\n"), ("PING", "+PONG\r\n")]);
    go_on.send(()).unwrap();
    server.wait_for_log("the rest of it is served");
}
