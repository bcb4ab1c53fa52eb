//! A file system that is really full: a small one in memory, mounted where
//! only the server sees it.

use crate::harness::{Client, Server, command};
use latewood_wire::resp::encode_command;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Bytes of the file system, less than the disk budget keeps the files to.
const DISK: &str = "6m";
/// Samples in one command.
const BATCH: u64 = 500;

/// Values that no coding makes small.
fn value(at: u64) -> f64 {
    f64::from_bits(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | 0x3ff0 << 48)
}

/// Bytes of one that holds a database, and less than two log segments on a large disk.
const SMALL_DISK: &str = "100m";

/// Whether this machine lets no process mount a file system of its own, as LEFT_OUT says.
fn is_left_out() -> bool {
    std::env::var("LEFT_OUT").is_ok_and(|tools| tools.split(' ').any(|tool| tool == "namespaces"))
}

/// `latewood` in `dir`, with `script` run before it where only it sees the mounts.
fn mounted(script: &str, dir: &Path, options: &[&str]) -> Child {
    let serve = command(dir);
    Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(serve.get_program())
        .args(serve.get_args())
        .args(["--listen", "127.0.0.1:0", "--http", "off"])
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes until the server refuses; how many samples it took, and the refusal.
/// There is none where the connection was closed: the log took the last batch,
/// and stopped before it was synced.
fn write_until_refused(client: &mut Client) -> (u64, Option<String>) {
    for first in (0..10_000_000).step_by(BATCH as usize) {
        let mut words = vec!["TS.MADD".to_owned()];
        for at in first..first + BATCH {
            words.extend(["key".to_owned(), at.to_string(), value(at).to_string()]);
        }
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &words);
        client.send(&bytes);
        let Some(reply) = client.reply_or_end() else {
            return (first, None);
        };
        let reply = String::from_utf8(reply).unwrap();
        if let Some(place) = reply.find('-') {
            // Of a batch that is refused nothing was acknowledged.
            assert!(!reply[..place].contains(':'), "{reply}");
            return (first, Some(reply[place..].to_owned()));
        }
    }
    panic!("six mebibytes took ten million samples");
}

/// Every sample that was acknowledged has its value.
fn check(client: &mut Client, acknowledged: u64) {
    for first in (0..acknowledged).step_by(10_000) {
        let last = acknowledged.min(first + 10_000) - 1;
        let reply = client.ask(&format!("TS.RANGE key {first} {last}"));
        let samples = (first..=last).map(|at| format!("*2\r\n:{at}\r\n+{}\r\n", value(at)));
        let samples: String = samples.collect();
        assert!(
            reply == format!("*{}\r\n{samples}", last - first + 1),
            "from {first} on"
        );
    }
}

/// Waits for the error in the log that tells that writes stopped.
fn wait_for_stop(server: &Server) {
    let stopped = server.wait_for_log("writes are refused from now on");
    assert!(stopped.contains("ERROR"), "{stopped}");
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    if is_left_out() {
        return;
    }
    for durability in ["sync", "interval"] {
        let dir = tempfile::tempdir().unwrap();
        // The second server finds the same files and more room. The first one
        // does not outlive a test that fails.
        let script = format!(
            "mount -t tmpfs -o size={DISK} latewood \"$4\"
             setpriv --pdeathsig KILL \"$@\"
             mount -o remount,size=64m \"$4\"
             exec \"$@\""
        );
        let options = ["--disk-budget", "16mb", "--durability", durability];
        let child = mounted(&script, dir.path(), &options);
        let server = Server::adopt(child, dir);
        let mut client = server.client();
        client.expect(&[("TS.CREATE key", "+OK\r\n")]);
        let (acknowledged, refusal) = write_until_refused(&mut client);
        if let Some(refusal) = refusal {
            // Whoever meets the full disk first hears of it, all others that writes stopped.
            let met = refusal.contains("No space left on device");
            assert!(met || refusal.starts_with("-MISCONF"), "{refusal}");
        } else {
            assert_eq!(durability, "sync");
            client = server.client();
        }
        let refusal = client.ask(&format!("TS.ADD key {} 1", acknowledged + BATCH));
        assert!(refusal.starts_with("-MISCONF"), "{refusal}");
        assert!(acknowledged > 50_000, "{acknowledged}");
        check(&mut client, acknowledged);
        let info = client.ask("INFO");
        assert!(info.contains("No space left on device"), "{info}");
        wait_for_stop(&server);
        let id = info
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"));
        let id = rustix::process::Pid::from_raw(id.unwrap().parse().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        let ready = server.wait_for_log("ready");
        let address = ready.split("listen=\"").nth(1).unwrap();
        let address = address.split(['"', ' ']).next().unwrap();
        let mut client = Client::new(TcpStream::connect(address).unwrap());
        check(&mut client, acknowledged);
        let next = acknowledged + BATCH;
        client.expect(&[(&format!("TS.ADD key {next} 1"), &format!(":{next}\r\n"))]);
    }
}

#[test]
fn a_small_disk_takes_writes() {
    if is_left_out() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={SMALL_DISK} latewood \"$4\"
         exec setpriv --pdeathsig KILL \"$@\""
    );
    let child = mounted(&script, dir.path(), &[]);
    let server = Server::adopt_after(child, dir, |line| line.contains("log segments are of"));
    let mut client = server.client();
    client.expect(&[("TS.CREATE key", "+OK\r\n"), ("TS.ADD key 1 1", ":1\r\n")]);
    for first in (0..100 * BATCH).step_by(BATCH as usize) {
        let batch = (first + 10..first + 10 + BATCH).map(|at| format!("key {at} {}", value(at)));
        let reply = client.ask(&format!("TS.MADD {}", batch.collect::<Vec<_>>().join(" ")));
        assert!(!reply.contains('-'), "{reply}");
    }
}
