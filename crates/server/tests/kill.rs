//! The built server under load, killed with SIGKILL and started again.
//!
//! Several connections send pipelines of new, late and rewritten samples and
//! note what was acknowledged. After every kill the restarted server must hold
//! each acknowledged value, or one sent after it for the same timestamp that
//! the kill left without an answer; what was never acknowledged is there whole
//! or not at all. A kill takes nothing the kernel has, so this holds under
//! every durability but `none`.
//!
//! The load follows from the seed printed (`TEST_SEED` repeats it), the moment
//! of the kill does not. `LATEWOOD_SOAK_SECONDS=s` lets `soak_kill` go on.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

#[allow(dead_code, reason = "shared with the tests of the protocol")]
#[path = "resp/harness.rs"]
mod harness;

use harness::{Client, Numbers, Server};
use latewood_wire::resp::{encode_command, skip_reply};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections that write at a time, each to keys of its own.
const CONNECTIONS: u64 = 4;
/// Keys of one connection.
const KEYS: u64 = 3;

/// What was written to one timestamp of one key.
#[derive(Default)]
struct Written {
    acknowledged: Option<u64>,
    /// Sent after the last acknowledgement, not answered yet.
    open: Vec<u64>,
}

/// What one connection has written: by key and timestamp.
struct Ledger {
    connection: u64,
    random: Numbers,
    next_value: u64,
    newest: u64,
    written: BTreeMap<(u64, u64), Written>,
    /// Set with the first answer to a sample.
    answered: Arc<AtomicBool>,
}

type Sent = Vec<Vec<((u64, u64), u64)>>;

impl Ledger {
    fn new(connection: u64, seed: u64) -> Self {
        Self {
            connection,
            random: Numbers(seed ^ (connection << 32)),
            next_value: 0,
            newest: 1_000_000,
            written: BTreeMap::new(),
            answered: Arc::default(),
        }
    }

    /// The next sample: newer, late, or over one that is there.
    fn sample(&mut self) -> ((u64, u64), u64) {
        let key = self.random.below(KEYS);
        let timestamp = match self.random.below(3) {
            0 => {
                self.newest += 1 + self.random.below(10);
                self.newest
            }
            1 => self.newest - self.random.below(50),
            _ => self.random.below(self.newest),
        };
        self.next_value += 1;
        let written = self.written.entry((key, timestamp)).or_default();
        written.open.push(self.next_value);
        ((key, timestamp), self.next_value)
    }

    /// A pipeline of commands and, for each, the samples in it.
    fn pipeline(&mut self, bytes: &mut Vec<u8>) -> Sent {
        let commands = 1 + self.random.below(60);
        let mut sent = Sent::new();
        for _ in 0..commands {
            let many = self.random.below(4) == 0;
            let count = if many { 1 + self.random.below(20) } else { 1 };
            let samples: Vec<_> = (0..count).map(|_| self.sample()).collect();
            let mut words = vec![if many { "TS.MADD" } else { "TS.ADD" }.to_owned()];
            for &((key, timestamp), value) in &samples {
                words.extend([
                    key_name(self.connection, key),
                    timestamp.to_string(),
                    value.to_string(),
                ]);
            }
            encode_command(bytes, &words);
            sent.push(samples);
        }
        sent
    }

    fn acknowledge(&mut self, samples: &[((u64, u64), u64)]) {
        for (place, value) in samples {
            let written = self.written.get_mut(place).unwrap();
            written.acknowledged = Some(*value);
            written.open.retain(|open| open > value);
        }
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Writes until the server is gone. Replies are checked, then noted.
    fn load(&mut self, address: &str) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        let mut received = Vec::new();
        for key in 0..KEYS {
            let mut bytes = Vec::new();
            encode_command(&mut bytes, &["TS.CREATE", &key_name(self.connection, key)]);
            stream.write_all(&bytes)?;
            // After the first life they exist.
            reply(&mut stream, &mut received)?;
        }
        loop {
            let mut bytes = Vec::new();
            let sent = self.pipeline(&mut bytes);
            stream.write_all(&bytes)?;
            for samples in &sent {
                let reply = reply(&mut stream, &mut received)?;
                let refused = reply.contains('-');
                assert!(!refused, "the server refused {samples:?}: {reply}");
                self.acknowledge(samples);
            }
        }
    }

    /// Compares with what the server holds; that is settled from then on.
    fn check(&mut self, client: &mut Client) {
        let mut found = BTreeMap::new();
        for key in 0..KEYS {
            let rows = client.ask(&format!("TS.RANGE {} - +", key_name(self.connection, key)));
            // A key nobody got to write does not exist.
            found.extend(samples(&rows).map(|(timestamp, value)| ((key, timestamp), value)));
        }
        for (place, written) in &self.written {
            let value = found.remove(place);
            let possible = value == written.acknowledged
                || value.is_some_and(|value| written.open.contains(&value));
            assert!(
                possible,
                "{place:?} of {} holds {value:?}; acknowledged {:?}, open {:?}",
                self.connection, written.acknowledged, written.open
            );
        }
        assert!(found.is_empty(), "nobody wrote {found:?}");
        for (place, written) in &mut self.written {
            let (key, timestamp) = *place;
            if !written.open.is_empty() {
                let name = key_name(self.connection, key);
                let rows = client.ask(&format!("TS.RANGE {name} {timestamp} {timestamp}"));
                written.acknowledged = samples(&rows).next().map(|(_, value)| value);
                written.open.clear();
            }
        }
    }

    fn acknowledged(&self) -> usize {
        let written = self.written.values();
        written
            .filter(|written| written.acknowledged.is_some())
            .count()
    }
}

fn key_name(connection: u64, key: u64) -> String {
    format!("device:{connection}:{key}")
}

fn reply(stream: &mut TcpStream, received: &mut Vec<u8>) -> std::io::Result<String> {
    loop {
        if let Some((len, _)) = skip_reply(received).unwrap() {
            let bytes: Vec<u8> = received.drain(..len).collect();
            return Ok(String::from_utf8(bytes).unwrap());
        }
        let mut buffer = [0; 16 * 1024];
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => received.extend_from_slice(&buffer[..read]),
        }
    }
}

/// The samples of a TS.RANGE reply.
fn samples(rows: &str) -> impl Iterator<Item = (u64, u64)> {
    let mut lines = rows.lines();
    std::iter::from_fn(move || {
        let timestamp = lines.by_ref().find_map(|line| line.strip_prefix(':'))?;
        let value = lines.next().unwrap().strip_prefix('+').unwrap();
        Some((timestamp.parse().unwrap(), value.parse().unwrap()))
    })
}

/// Loads, kills and checks a server `lives` times on one directory.
fn kill_again_and_again(durability: &str, seed: u64, lives: usize) {
    println!("durability {durability}, seed {seed}");
    let options = ["--durability", durability, "--ts-duplicate-policy", "last"];
    let random = &mut Numbers(seed);
    let mut ledgers: Vec<_> = (0..CONNECTIONS).map(|n| Ledger::new(n, seed)).collect();
    let mut server = Server::with(&options);
    for _ in 0..lives {
        let address = server.address().to_owned();
        let pause = Duration::from_millis(30 + random.below(250));
        let dir = std::thread::scope(|scope| {
            for ledger in &mut ledgers {
                let address = &address;
                // Ends with the connection, when the server is killed.
                scope.spawn(move || ledger.load(address).unwrap_err());
            }
            std::thread::sleep(pause);
            server.kill()
        });
        server = Server::over(dir, &options);
        let mut client = server.client();
        ledgers
            .iter_mut()
            .for_each(|ledger| ledger.check(&mut client));
    }
    let acknowledged: usize = ledgers.iter().map(Ledger::acknowledged).sum();
    assert!(acknowledged > 0, "nothing was ever acknowledged");
    println!("{acknowledged} timestamps after {lives} kills");
}

#[test]
fn a_killed_server_keeps_what_it_acknowledged_under_sync() {
    kill_again_and_again("sync", harness::seed(), 4);
}

#[test]
fn a_killed_server_keeps_what_it_acknowledged_under_interval() {
    kill_again_and_again("interval", harness::seed(), 4);
}

#[test]
fn a_server_asked_to_stop_ends_well_and_keeps_everything() {
    for durability in ["sync", "interval", "none"] {
        let options = ["--durability", durability, "--ts-duplicate-policy", "last"];
        let mut ledger = Ledger::new(9, harness::seed());
        let server = Server::with(&options);
        let address = server.address().to_owned();
        let answered = ledger.answered.clone();
        let (ended_well, dir) = std::thread::scope(|scope| {
            let load = scope.spawn(|| ledger.load(&address).unwrap_err());
            while !answered.load(Ordering::Relaxed) && !load.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            server.terminate()
        });
        assert!(ended_well, "SIGTERM under {durability}");
        assert!(ledger.acknowledged() > 0);
        let server = Server::over(dir, &options);
        ledger.check(&mut server.client());
    }
}

#[test]
fn soak_kill() {
    let limit = std::env::var("LATEWOOD_SOAK_SECONDS").map_or(0, |text| text.parse().unwrap());
    let (begun, first) = (Instant::now(), harness::seed());
    let mut runs = 0;
    while runs == 0 || begun.elapsed() < Duration::from_secs(limit) {
        let durability = ["interval", "sync"][runs as usize % 2];
        kill_again_and_again(durability, first.wrapping_add(runs), 2);
        runs += 1;
    }
}
