//! How the process is configured and how it refuses to start.

use crate::harness::{Server, command};
use std::net::TcpListener;
use std::process::Command;

fn setting(server: &Server, name: &str) -> String {
    let reply = server.client().ask(&format!("CONFIG GET {name}"));
    reply.split("\r\n").nth(4).unwrap().to_owned()
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("latewood.toml");
    let text = "wal = \"off\"\nmaxclients = 11\ntimeout = 21\nts-retention-policy = 31\n";
    std::fs::write(&file, text).unwrap();
    let data = dir.path().join("data");
    let process = command(&data)
        .args(["--listen", "127.0.0.1:0", "--maxclients", "13"])
        .arg("--config")
        .arg(&file)
        .env("LATEWOOD_MAXCLIENTS", "12")
        .env("LATEWOOD_TIMEOUT", "22")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let server = Server::adopt(process, dir);
    assert_eq!(setting(&server, "maxclients"), "13");
    assert_eq!(setting(&server, "timeout"), "22");
    assert_eq!(setting(&server, "ts-retention-policy"), "31");
    assert_eq!(setting(&server, "sync-interval"), "1000");
}

#[test]
fn a_variable_that_no_option_has_is_named_in_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let process = command(dir.path())
        .args(["--listen", "127.0.0.1:0"])
        .env("LATEWOOD_MAXCLIENT", "12")
        .env("LATEWOOD_KAFKA_PASSWORD", "no option, but known")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let log = std::cell::RefCell::new(String::new());
    Server::adopt_after(process, dir, |line| {
        log.borrow_mut().push_str(line);
        line.contains("ready")
    });
    let log = log.into_inner();
    assert!(log.contains("LATEWOOD_MAXCLIENT"), "{log}");
    assert!(!log.contains("LATEWOOD_KAFKA_PASSWORD"), "{log}");
}

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_wrong_file_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("latewood.toml");
    std::fs::write(&file, "maxcliens = 11\n").unwrap();
    let refusal = refusal(command(dir.path()).arg("--config").arg(&file));
    assert!(refusal.contains("maxcliens"), "{refusal}");
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_what_would_be_right() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("latewood.toml");
    for (line, words) in [
        ("strict = 1", "expected \"on\", \"off\", true or false"),
        ("wal = \"no\"", "expected \"on\", \"off\", true or false"),
        ("threads = \"2\"", "expected a whole number without quotes"),
        ("timeout = 1.5", "expected a whole number without quotes"),
        (
            "ts-ignore-max-val-diff = \"1\"",
            "expected a number without quotes",
        ),
        (
            "durability = true",
            "expected sync, interval or none, in quotes",
        ),
        ("dir = true", "expected a text in quotes"),
        (
            "tls-auth-clients = 1",
            "expected yes, no or optional, in quotes",
        ),
        (
            "ts-duplicate-policy = \"foo\"",
            "block, first, last, min, max or sum",
        ),
        (
            "sender-duplicate-policy = \"foo\"",
            "block, first, last, min, max or sum",
        ),
        ("ts-encoding = \"zip\"", "compressed or uncompressed"),
    ] {
        std::fs::write(&file, format!("{line}\n")).unwrap();
        let refusal = refusal(command(dir.path()).arg("--config").arg(&file));
        assert!(refusal.contains(words), "{line}: {refusal}");
    }
}

#[test]
fn a_taken_port_is_refused_in_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let refusal = refusal(command(dir.path()).args(["--listen", &address]));
    let expected = format!("cannot listen on {address}: another process has it already");
    assert!(refusal.contains(&expected), "{refusal}");
}

#[test]
fn a_unix_socket_serves_and_goes_away() {
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latewood.sock");
    let server = Server::with(&["--wal", "off", "--unixsocket", path.to_str().unwrap()]);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(b"TS.ADD k 1 1\r\nQUIT\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, ":1\r\n+OK\r\n");
    let (ended_well, _) = server.terminate();
    assert!(ended_well && !path.exists());
}

#[test]
fn help_and_version_say_what_this_is() {
    let text = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_latewood"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text(&["--version"]).starts_with("latewood "));
    assert!(text(&["--help"]).contains("redis-cli TS.ADD"));
    let serve = text(&["serve", "--help"]);
    for option in [
        "--durability",
        "--config",
        "LATEWOOD_DIR",
        "--requirepass",
        "--ts-encoding",
    ] {
        assert!(serve.contains(option), "{option}");
    }
}
