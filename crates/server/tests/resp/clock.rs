//! The real process with a wall clock that jumps between its starts.

use crate::harness::{Server, command};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Moves the wall clock of a process; the monotonic one stays.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int outcome = (int)syscall(SYS_clock_gettime, clock, now);
    const char *shift = getenv("CLOCK_SHIFT_S");
    if (outcome == 0 && clock == CLOCK_REALTIME && shift)
        now->tv_sec += atoll(shift);
    return outcome;
}
"#;

const DAY_S: i64 = 86_400;
const YEARS_S: i64 = 20 * 365 * DAY_S;

fn compile_shim(dir: &Path) {
    let source = dir.join("shim.c");
    std::fs::write(&source, SHIM).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(dir.join("shim.so"))
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
}

fn start(shim: &Path, dir: TempDir, shift_s: i64) -> Server {
    let child = command(dir.path())
        .args(["--listen", "127.0.0.1:0", "--threads", "2"])
        .args(["--retention", "90d"])
        .env("LD_PRELOAD", shim.join("shim.so"))
        .env("CLOCK_SHIFT_S", shift_s.to_string())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Server::adopt(child, dir)
}

#[test]
fn one_start_with_a_clock_far_ahead_or_behind_loses_nothing_and_stops_nobody() {
    let shim = tempfile::tempdir().unwrap();
    compile_shim(shim.path());
    let mut server = start(shim.path(), tempfile::tempdir().unwrap(), 0);
    let mut client = server.client();
    let now_ms: i64 = client.ask("TS.ADD s0 * 0")[1..].trim().parse().unwrap();
    for series in 0..6 {
        for day in 0..80 {
            let at = now_ms - (80 - day) * DAY_S * 1000;
            client.ask(&format!("TS.ADD s{series} {at} {day}"));
        }
        client.ask(&format!("TS.ADD s{series} {now_ms} 80"));
    }
    let count = "TS.RANGE s1 - + AGGREGATION count 100000000000000";
    for (shift_s, jump) in [
        (YEARS_S, "clock_jump_ms:6307"),
        (-YEARS_S, "clock_jump_ms:-6307"),
    ] {
        drop(client);
        server = start(shim.path(), server.terminate().1, shift_s);
        client = server.client();
        client.expect(&[(count, "*1\r\n*2\r\n:0\r\n+81\r\n")]);
        let info = client.ask("INFO latewood");
        assert!(info.contains(jump), "{info}");
        let at = now_ms + shift_s.signum();
        client.expect(&[(&format!("TS.ADD s0 {at} 1"), &format!(":{at}\r\n"))]);
    }
    drop(client);
    let server = start(shim.path(), server.terminate().1, 0);
    let mut client = server.client();
    client.expect(&[(count, "*1\r\n*2\r\n:0\r\n+81\r\n")]);
    assert_eq!(client.info("clock_jump_ms"), 0);
    assert!(client.ask("TS.ADD s1 * 1").starts_with(':'));
}
