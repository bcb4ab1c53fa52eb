//! One directory, the servers that live on it one after another, and the writers.

use crate::harness::{Numbers, PATIENCE, Server, encoded};
use crate::kill::connection::{Ports, Protocol};
use crate::kill::model::Policy;
use crate::kill::writer::Writer;
use crate::tls::certificates::Authority;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DURABILITIES: [&str; 3] = ["none", "interval", "sync"];
/// What is under way when a server is killed.
const CHORES: [&str; 4] = ["PING", "BGSAVE", "LATEWOOD SETTLE", "LATEWOOD MERGE"];
const PROTOCOLS: [Protocol; 5] = [
    Protocol::Resp,
    Protocol::Resp,
    Protocol::Influx,
    Protocol::OpenTsdb,
    Protocol::RemoteWrite,
];

/// See the module.
pub(crate) struct World {
    random: Numbers,
    authority: Authority,
    options: Vec<String>,
    writers: Vec<Writer>,
    server: Option<Server>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        println!("run of LATEWOOD_SEED={seed}");
        let mut random = Numbers(seed);
        let policy = Policy::ALL[random.below(6) as usize];
        let (authority, mut options) = Authority::with_server();
        // Without `--wal off`.
        options.drain(..2);
        let sender_policy = policy.name();
        // Files are written as often as can be.
        let others = format!(
            "--sender-duplicate-policy {sender_policy} --log-max 1mb --flush-age 1 \
             --http 127.0.0.1:0 --https 127.0.0.1:0 --listen-lines opentsdb=127.0.0.1:0 \
             --listen-lines opentsdb=127.0.0.1:0,tls"
        );
        options.extend(others.split(' ').map(str::to_owned));
        let writers = PROTOCOLS.into_iter().zip(0..);
        let writers = writers.map(|(protocol, n)| Writer::new(n, protocol, policy, seed));
        let mut world = Self {
            writers: writers.collect(),
            random,
            authority,
            options,
            server: None,
        };
        world.start(tempfile::tempdir().unwrap());
        world
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.writers.iter().map(Writer::acknowledged).sum()
    }

    /// A load, a kill, a start, and a look at everything.
    pub(crate) fn live_and_be_killed(&mut self) {
        let pause_ms = 30 + self.random.below(250);
        let chore = CHORES[self.random.below(CHORES.len() as u64) as usize];
        let chore_ms = self.random.below(40);
        let dir = self.live(|server, is_over| {
            sleep(Duration::from_millis(pause_ms));
            let mut client = server.client();
            client.send(&encoded(chore));
            sleep(Duration::from_millis(chore_ms));
            is_over.store(true, Ordering::Release);
            server.kill()
        });
        self.be_killed_at_start(&dir);
        self.start(dir);
        self.check();
    }

    /// The same with an orderly end, once somebody has written something.
    pub(crate) fn live_and_stop(&mut self) {
        let answered: Vec<_> = self
            .writers
            .iter()
            .map(|one| one.answered.clone())
            .collect();
        let dir = self.live(|server, is_over| {
            let begun = Instant::now();
            while !answered.iter().all(|one| one.load(Ordering::Acquire)) {
                assert!(begun.elapsed() < PATIENCE, "a writer had no answer");
                sleep(Duration::from_millis(1));
            }
            sleep(Duration::from_millis(100));
            is_over.store(true, Ordering::Release);
            let (ended_well, dir) = server.terminate();
            assert!(ended_well, "SIGTERM");
            dir
        });
        self.start(dir);
        self.check();
    }

    /// Writers write until `end` has ended the server; its directory.
    fn live(&mut self, end: impl FnOnce(Server, &AtomicBool) -> TempDir) -> TempDir {
        let server = self.server.take().unwrap();
        let ports = Ports::of(&server, &self.authority);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in &mut self.writers {
                let (ports, is_over) = (&ports, &is_over);
                scope.spawn(move || writer.load(ports, is_over));
            }
            end(server, &is_over)
        })
    }

    /// Starts servers and kills them before they are ready.
    fn be_killed_at_start(&mut self, dir: &TempDir) {
        while self.random.below(4) == 0 {
            let mut child = crate::harness::command(dir.path())
                .args(["--listen", "127.0.0.1:0", "--threads", "2"])
                .args(&self.options)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(self.random.below(100)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn start(&mut self, dir: TempDir) {
        let durability = DURABILITIES[self.random.below(3) as usize];
        let mut options: Vec<_> = self.options.iter().map(String::as_str).collect();
        options.extend(["--durability", durability]);
        self.server = Some(Server::over(dir, &options));
    }

    fn check(&mut self) {
        let mut client = self.server.as_ref().unwrap().client();
        for writer in &mut self.writers {
            writer.check(&mut client);
        }
        let known: BTreeSet<_> = self.writers.iter().flat_map(Writer::keys).collect();
        let keys = client.ask("KEYS *");
        let mut keys = keys.lines().filter(|line| !line.starts_with(['*', '$']));
        assert_eq!(
            keys.find(|key| !known.contains(key)),
            None,
            "an unknown key"
        );
    }
}
