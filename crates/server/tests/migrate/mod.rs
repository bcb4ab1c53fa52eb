//! `latewood import` and `latewood export` between the built server, a real RedisTimeSeries and
//! files, with writers at work.
//!
//! The peer is what `bench/peers/redistimeseries.sh` installs; the first test that needs it
//! fetches it. Both sides are compared through `latewood export csv`, which reads every sample,
//! label, option, rule and expiry.

mod both;
mod csv;
mod exact;
mod influx;
mod live;
mod parquet;
mod peer;
mod prometheus;
mod rdb;
mod rules;
mod wrong;

use crate::harness::Server;
use flate2::Compression;
use flate2::write::GzEncoder;
use peer::Peer;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The built binary with these words.
fn latewood(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latewood"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LATEWOOD_") {
            command.env_remove(name);
        }
    }
    command.args(words).stdin(Stdio::null());
    command
}

/// The words that copy everything.
fn copying<'a>(source: &'a Peer, target: &'a Server) -> [&'a str; 6] {
    let (from, to) = (source.address(), target.address());
    ["import", "redis", "--from", from, "--to", to]
}

/// Runs it to its end; exit status, standard output and standard error.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    outcome(&latewood(words).output().unwrap())
}

fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Everything a server holds, as CSV.
fn contents(address: &str) -> String {
    let (status, lines, errors) = run(&["export", "csv", "--from", address]);
    assert_eq!(status, Some(0), "{errors}");
    lines
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Fails with the first line that differs, not with megabytes.
fn assert_same(one: &str, other: &str) {
    for (number, (left, right)) in one.lines().zip(other.lines()).enumerate() {
        assert_eq!(left, right, "line {}", number + 1);
    }
    assert_eq!(one.lines().count(), other.lines().count());
}
