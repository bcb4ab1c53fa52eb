//! What clients see of a server that is still loading.

use crate::harness::{Client, PATIENCE, Server, command};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Instant;

const LOADING: &str = "-LOADING Latewood is loading the dataset in memory\r\n";

/// The fields of INFO that are there while loading.
const FIELDS: [&str; 5] = [
    "loading_start_time:",
    "loading_total_bytes:",
    "loading_loaded_bytes:",
    "loading_loaded_perc:",
    "loading_eta_seconds:",
];

/// A directory with a log that takes a while to replay.
fn loaded() -> tempfile::TempDir {
    let server = Server::with(&["--ts-duplicate-policy", "last"]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut bytes = Vec::new();
    for at in 0..400_000_u64 {
        // Far apart and late, so that replay has something to do.
        let at = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
        bytes.extend_from_slice(format!("TS.ADD key {at} 1\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"QUIT\r\n");
    let mut reader = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    stream.write_all(&bytes).unwrap();
    reading.join().unwrap().unwrap();
    server.kill()
}

/// Starts over `dir` and asks until the data is there; how many commands
/// were refused before.
#[expect(clippy::zombie_processes, reason = "only a failed test leaves one")]
fn refused_while_loading(dir: tempfile::TempDir) -> (usize, tempfile::TempDir) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let child = command(dir.path())
        .args(["--listen", &address, "--threads", "2"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let stream = loop {
        match TcpStream::connect(&address) {
            Ok(stream) => break stream,
            Err(_) => assert!(begun.elapsed() < PATIENCE, "no socket"),
        }
    };
    let mut client = Client::new(stream);
    let mut early = 0;
    loop {
        let info = client.ask("INFO persistence");
        let is_loading = info.contains("\r\nloading:1\r\n");
        for field in FIELDS {
            assert_eq!(info.contains(field), is_loading, "{info}");
        }
        let commands = [
            "PING",
            "TS.GET key",
            "TS.ADD key 1 1",
            "CONFIG SET timeout 0",
        ];
        let replies = commands.map(|text| client.ask(text));
        let refused = replies.iter().filter(|reply| *reply == LOADING).count();
        assert!(refused == 0 || is_loading, "{replies:?}");
        early += refused;
        if !is_loading {
            assert!(client.ask("TS.GET key").starts_with("*2\r\n"));
            let (ended_well, dir) = Server::adopt(child, dir).terminate();
            assert!(ended_well);
            return (early, dir);
        }
        assert!(begun.elapsed() < PATIENCE, "still loading");
    }
}

#[test]
fn early_clients_hear_loading_and_then_get_answers() {
    let mut dir = loaded();
    // A start may be over before this test gets to ask.
    for _ in 0..20 {
        let (early, again) = refused_while_loading(dir);
        if early > 0 {
            return;
        }
        dir = again;
    }
    panic!("no start was met while it was loading");
}

#[test]
fn a_start_that_fails_says_why() {
    let server = Server::with(&[]);
    let mut second = command(server.dir())
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(second.stderr.take().unwrap()).lines();
    let said: Vec<String> = lines.map(|line| line.unwrap()).collect();
    let said = said.join("\n");
    assert!(said.contains("in use by another process"), "{said}");
    assert!(!second.wait().unwrap().success());
}
