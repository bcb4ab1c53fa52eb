//! The server over real brokers, named by `LATEWOOD_KAFKA`, and a folder as object store: nodes
//! that are killed, lose their disk or are deposed; local databases made of what they leave.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod blocks;
mod checkpoints;
mod folders;
mod leases;
mod restore;

use folders::{damage, files, wipe};
use latewood_cluster::kafka::Kafka;
use latewood_cluster::kafka::client::connect;
use latewood_cluster::kafka::options::Given;
use latewood_cluster::topic::{Replication, new_topic};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A database of a name of its own, and where its nodes have their folders.
struct World {
    url: String,
    folder: TempDir,
    _brokers: Option<RwLockReadGuard<'static, ()>>,
}

impl World {
    /// With brokers that no other test stops meanwhile.
    fn new(what: &str) -> Self {
        let brokers = BROKERS.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            _brokers: Some(brokers),
            ..Self::alone(what)
        }
    }

    fn alone(what: &str) -> Self {
        let brokers = std::env::var("LATEWOOD_KAFKA").expect("LATEWOOD_KAFKA names a broker");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let id = now.unwrap().as_nanos();
        Self {
            url: format!("kafka://{brokers}/{what}-{id}"),
            folder: TempDir::new().unwrap(),
            _brokers: None,
        }
    }

    fn init(&self) -> Output {
        self.cluster("init", &[])
    }

    fn cluster(&self, what: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latewood"));
        command
            .args(["cluster", what, "--log", &self.url])
            .args(more);
        command.output().unwrap()
    }

    /// `latewood cluster check`: its status and what it says.
    fn check(&self) -> (Option<i32>, String) {
        let checked = self.cluster("check", &["--objects", &self.objects()]);
        (checked.status.code(), text(&checked))
    }

    fn objects(&self) -> String {
        let objects = self.folder.path().join("objects");
        std::fs::create_dir_all(&objects).unwrap();
        format!("file://{}", objects.display())
    }

    fn dir(&self, node: &str) -> PathBuf {
        self.folder.path().join(node)
    }

    fn serve(&self, node: &str) -> Node {
        self.serve_with(node, &["--http", "off"])
    }

    /// With these options beside those of the log.
    fn serve_with(&self, node: &str, more: &[&str]) -> Node {
        let objects = self.objects();
        let log = ["--log", &self.url, "--objects", &objects];
        self.start(node, &[&log[..], more].concat())
    }

    /// As [`World::serve`], with a log of its own on the disk.
    fn serve_local(&self, node: &str) -> Node {
        self.start(node, &["--http", "off"])
    }

    fn start(&self, node: &str, more: &[&str]) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let child = Command::new(env!("CARGO_BIN_EXE_latewood"))
            .arg("serve")
            .arg("--dir")
            .arg(self.dir(node))
            .args(["--listen", &address])
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Node { child, address }
    }

    /// `latewood cluster restore` to the directory of a node.
    fn restore(&self, node: &str) -> Output {
        let (objects, dir) = (self.objects(), self.dir(node).display().to_string());
        self.cluster("restore", &["--objects", &objects, "--dir", &dir])
    }
}

struct Node {
    child: Child,
    address: String,
}

impl Node {
    /// Asks until the server has loaded; the reply without its line break.
    fn ask(&self, command: &str) -> String {
        for _ in 0..1_200 {
            if let Ok(stream) = TcpStream::connect(&self.address) {
                let reply = send(stream, command);
                if !reply.is_empty() && !reply.starts_with("-LOADING") {
                    return reply;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not answer {command}");
    }

    /// Waits until it has said so.
    fn says(&mut self, wanted: &str) {
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        while !said.contains(wanted) {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{said}");
            said.push(char::from(byte[0]));
        }
    }

    /// The number of a field of INFO, whose lines come without their ends.
    fn figure(&self, field: &str) -> u64 {
        let info = self.ask("INFO");
        let rest = info.split(&format!("{field}:")).nth(1).unwrap();
        let figure = rest.split(|byte: char| !byte.is_ascii_digit()).next();
        figure.unwrap().parse().unwrap()
    }

    fn sum(&self) -> String {
        self.ask("TS.INCRBY sum 0 TIMESTAMP 1000000");
        self.ask("TS.RANGE sum 1000000 +")
    }

    /// How it ended, and what it said until then.
    fn end(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (self.child.wait().unwrap(), said)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(self) -> (ExitStatus, String) {
        self.signal("TERM");
        self.end()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }
}

/// Sends one command; all that is answered, or nothing where the connection ends.
fn send(mut stream: TcpStream, command: &str) -> String {
    stream
        .write_all(format!("{command}\r\nPING\r\n").as_bytes())
        .unwrap();
    let (mut reply, mut reader) = (String::new(), BufReader::new(stream));
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return String::new(),
            Ok(_) if line == "+PONG\r\n" => return reply,
            Ok(_) if line.starts_with("-LOADING") => return line,
            Ok(_) => reply.push_str(line.trim_end()),
        }
    }
}

fn text(output: &Output) -> String {
    let bytes = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(bytes).unwrap()
}

/// The brokers: shared by most tests, alone for one that stops them.
static BROKERS: RwLock<()> = RwLock::new(());

/// `tests/cluster/kafka.sh` with all three brokers in turn.
fn all_brokers(verb: &str) {
    let first = std::env::var("LATEWOOD_KAFKA").unwrap();
    let port = first.rsplit_once(':').unwrap().1;
    for broker in ["1", "2", "3"] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cluster/kafka.sh");
        let mut command = Command::new(script);
        command.args([verb, broker]).env("PORT", port);
        assert!(command.status().unwrap().success());
    }
}

#[test]
fn a_topic_is_made_once_and_checked_then() {
    let world = World::new("init");
    let (status, said) = world.serve("a").end();
    assert!(
        status.code() == Some(1) && said.contains("no such topic"),
        "{said}"
    );
    let made = world.init();
    assert!(made.status.success(), "{}", text(&made));
    assert!(
        text(&made).starts_with("created topic init-"),
        "{}",
        text(&made)
    );
    let again = text(&world.init());
    assert!(
        again.contains("is there and its settings are safe"),
        "{again}"
    );
}

#[test]
fn a_topic_that_loses_records_is_refused() {
    let world = World::new("unsafe");
    let (address, kafka) = connect(&world.url, Given::default()).unwrap();
    let mut topic = new_topic(&address.name, 1, Replication::Durable);
    let retention = topic
        .settings
        .iter_mut()
        .find(|(name, _)| name == "retention.ms");
    retention.unwrap().1 = "60000".to_owned();
    kafka.create(&topic).unwrap();
    let wanted = "retention.ms is 60000, must be -1";
    let refused = world.init();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains(wanted), "{}", text(&refused));
    let (status, said) = world.serve("a").end();
    assert!(status.code() == Some(1) && said.contains(wanted), "{said}");
}

#[test]
fn a_node_may_lose_its_disk_at_any_moment() {
    let world = World::new("disk");
    assert!(world.init().status.success());
    let node = world.serve("a");
    for at in 0..50 {
        assert_eq!(
            node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}")),
            format!(":{at}")
        );
    }
    node.kill();
    wipe(&world.dir("a"));
    // The log alone, behind a first checkpoint without samples.
    let node = world.serve("b");
    let sum = node.sum();
    assert!(sum.ends_with("+50"), "{sum}");
    let info = node.ask("INFO latewood");
    for wanted in ["wal_remote:1", "checkpoints:0", "recovery_samples:50"] {
        assert!(info.contains(wanted), "{wanted}: {info}");
    }
    assert!(!info.contains("wal_remote_bytes:0"), "{info}");
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    assert!(said.contains("checkpoint saved"), "{said}");
    wipe(&world.dir("b"));
    // The checkpoint of the stop.
    let node = world.serve("c");
    let sum = node.sum();
    assert!(sum.ends_with("+50"), "{sum}");
    let info = node.ask("INFO latewood");
    assert!(info.contains("checkpoint_last_error:none"), "{info}");
    assert!(!info.contains("checkpoint_last_save_time:0"), "{info}");
    node.kill();
    // With the files that are there.
    let node = world.serve("c");
    assert!(node.sum().ends_with("+50"));
    node.kill();
}

#[test]
fn a_deposed_node_ends_and_names_its_successor() {
    let world = World::new("deposed");
    assert!(world.init().status.success());
    let old = world.serve("a");
    assert_eq!(old.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    let new = world.serve("b");
    assert!(new.sum().ends_with("+1"));
    // Its tick finds out, or a write does, which is not acknowledged.
    if let Ok(stream) = TcpStream::connect(&old.address) {
        assert!(!send(stream, "TS.INCRBY sum 1 TIMESTAMP 2").starts_with(':'));
    }
    let (status, said) = old.end();
    assert_eq!(status.code(), Some(4));
    let wanted = format!("node 0 at {} owns this log since offset", new.address);
    assert!(said.contains(&wanted), "{said}");
    assert!(new.sum().ends_with("+1"));
    new.kill();
}

/// A node with one increment whose brokers hang, and a client that waits for another: it is in
/// the queue for Kafka.
fn interrupted(world: &World) -> (Node, JoinHandle<String>) {
    assert!(world.init().status.success());
    let node = world.serve("a");
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    all_brokers("pause");
    let stream = TcpStream::connect(&node.address).unwrap();
    let waiting = std::thread::spawn(|| send(stream, "TS.INCRBY sum 1 TIMESTAMP 2"));
    while node.figure("wal_remote_queued_bytes") == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    (node, waiting)
}

#[test]
fn brokers_that_are_away_delay_replies_and_lose_nothing() {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    let world = World::alone("away");
    let (node, waiting) = interrupted(&world);
    // Who only reads does not wait.
    let read = node.ask("TS.GET other");
    let is_answered = waiting.is_finished();
    all_brokers("resume");
    assert!(!is_answered);
    assert!(read.contains("does not exist"), "{read}");
    assert_eq!(waiting.join().unwrap(), ":2");
    node.kill();
    wipe(&world.dir("a"));
    let node = world.serve("a");
    let sum = node.sum();
    assert!(sum.ends_with("+2"), "{sum}");
    node.kill();
}

#[test]
fn a_stop_does_not_wait_for_brokers_for_ever() {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    let world = World::alone("stop");
    let (node, waiting) = interrupted(&world);
    let (status, said) = node.stop();
    all_brokers("resume");
    assert_eq!(status.code(), Some(1));
    assert!(
        said.contains("Kafka did not confirm the newest writes"),
        "{said}"
    );
    assert!(!waiting.join().unwrap().starts_with(':'));
    let node = world.serve("b");
    let sum = node.sum();
    assert!(sum.ends_with("+1") || sum.ends_with("+2"), "{sum}");
    node.kill();
}

#[test]
fn a_node_that_starts_before_the_brokers_waits_for_them_and_can_be_stopped() {
    let mut world = World::new("early");
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    world.url = format!("kafka://{}/early", unused.local_addr().unwrap());
    drop(unused);
    let mut node = world.serve("a");
    node.says("cannot use topic early-log yet");
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
}

/// A stopped node with a checkpoint of one sample.
fn saved(world: &World) {
    assert!(world.init().status.success());
    let node = world.serve("a");
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    let (status, said) = node.stop();
    assert!(
        status.success() && said.contains("checkpoint saved"),
        "{said}"
    );
}

#[test]
fn a_damaged_directory_is_made_anew_from_the_store() {
    let world = World::new("damaged");
    saved(&world);
    damage(&world.dir("a"), "");
    let node = world.serve("a");
    let sum = node.sum();
    assert!(sum.ends_with("+1"), "{sum}");
    node.kill();
}

#[test]
fn wrong_bytes_in_the_store_are_named_and_never_served() {
    let world = World::new("wrong");
    saved(&world);
    let (status, said) = world.check();
    assert!(status == Some(0) && said.ends_with("no damage\n"), "{said}");
    damage(&world.folder.path().join("objects"), "MANIFEST");
    let (status, said) = world.check();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("MANIFEST") && said.contains("does not match its SHA-256"),
        "{said}"
    );
    wipe(&world.dir("a"));
    let (status, said) = world.serve("a").end();
    assert!(
        status.code() == Some(1) && said.contains("MANIFEST"),
        "{said}"
    );
}

#[test]
fn a_log_is_looked_into_beside_its_owner() {
    let world = World::new("look");
    let (status, said) = world.check();
    assert_eq!(status, Some(2));
    assert!(said.contains("no such topic"), "{said}");
    assert!(world.init().status.success());
    let node = world.serve("a");
    for at in 0..3 {
        assert_eq!(
            node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}")),
            format!(":{at}")
        );
    }
    let (status, said) = world.check();
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("1 epochs, 0 lost claims, 0 repeated, 0 foreign, 0 malformed"),
        "{said}"
    );
    assert!(
        said.contains(&format!(
            "node 0 at {} owns it since offset 0",
            node.address
        )),
        "{said}"
    );
    let lines = text(&world.cluster("inspect", &[]));
    assert!(lines.starts_with("0 0 "), "{lines}");
    assert!(
        lines.contains("counts, n 0, sequence 1, checkpoint"),
        "{lines}"
    );
    assert!(lines.contains("counts, n 1, sequence 1, data: "), "{lines}");
    // Neither took it away.
    assert!(node.sum().ends_with("+3"));
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    let lines = text(&world.cluster("inspect", &[]));
    assert!(lines.trim_end().ends_with("farewell"), "{lines}");
}
