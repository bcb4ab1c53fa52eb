//! One sender: its series, what it sends, and how it hears that it was taken.
//!
//! Nobody else writes to its series, so every answer is known beforehand.

use crate::harness::{Client, Numbers};
use crate::kill::connection::{Connection, Ports, Protocol};
use crate::kill::model::{Policy, Series, State};
use crate::kill::rule::Rule;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

/// The first timestamp: as milliseconds for every protocol.
const FIRST_MS: u64 = 1_700_000_000_000;

/// What a series is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Samples, deletions, and removal.
    Plain,
    /// Increments.
    Counter,
    /// Samples and deletions, with rules.
    Source,
    /// Samples, then an expiry, then nothing until it is gone.
    Mortal,
    /// Samples by another protocol, which creates it.
    Sent,
}

/// A series and what belongs to it.
pub(crate) struct Kept {
    pub(crate) series: Series,
    pub(crate) role: Role,
    pub(crate) rules: Vec<Rule>,
}

/// See the module.
pub(crate) struct Writer {
    pub(crate) protocol: Protocol,
    pub(crate) random: Numbers,
    pub(crate) kept: Vec<Kept>,
    pub(crate) name: String,
    newest_ms: u64,
    values: u64,
    /// Set with the first answer.
    pub(crate) answered: Arc<AtomicBool>,
}

impl Writer {
    /// `sent` is the policy of series that another protocol than that of Redis creates.
    pub(crate) fn new(number: u64, protocol: Protocol, sent: Policy, seed: u64) -> Self {
        let mut writer = Self {
            protocol,
            random: Numbers(seed ^ (number << 32)),
            kept: Vec::new(),
            name: format!("w{number}"),
            newest_ms: FIRST_MS,
            values: 0,
            answered: Arc::default(),
        };
        let roles = match protocol {
            Protocol::Resp => vec![
                Role::Plain,
                Role::Plain,
                Role::Counter,
                Role::Source,
                Role::Source,
                Role::Mortal,
                Role::Mortal,
            ],
            _ => vec![Role::Sent; 3],
        };
        for (at, role) in roles.into_iter().enumerate() {
            let kept = writer.make(at, role, sent);
            writer.kept.push(kept);
        }
        writer
    }

    fn make(&mut self, at: usize, role: Role, sent: Policy) -> Kept {
        let random = &mut self.random;
        let name = &self.name;
        let (key, policy) = match role {
            Role::Sent => (format!("sent_v{{at=\"{at}\",writer=\"{name}\"}}"), sent),
            _ => {
                let policy = Policy::ALL[random.below(6) as usize];
                (format!("{name}:{at}"), policy)
            }
        };
        let rules = match role {
            Role::Source => (0..3)
                .map(|number| Rule::new(&key, number, random.below(2400)))
                .collect(),
            _ => Vec::new(),
        };
        let series = Series::new(key, policy);
        Kept {
            series,
            role,
            rules,
        }
    }

    /// The next timestamp: newer, a little late, or anywhere.
    pub(crate) fn timestamp(&mut self) -> u64 {
        let random = &mut self.random;
        match random.below(3) {
            0 => {
                self.newest_ms += 1 + random.below(10);
                self.newest_ms
            }
            1 => (self.newest_ms - random.below(50)).max(FIRST_MS),
            _ => FIRST_MS + random.below(self.newest_ms - FIRST_MS + 1),
        }
    }

    /// A value that no other sample of this writer has.
    pub(crate) fn value(&mut self) -> f64 {
        self.values += 1;
        (self.values * 7_919 % 1_000_003) as f64
    }

    /// Writes until the server is gone. Answers are checked, then noted.
    pub(crate) fn load(&mut self, ports: &Ports, is_over: &AtomicBool) {
        let is_tls = self.random.below(2) == 0;
        let ended = ports
            .connect(self.protocol, is_tls)
            .and_then(|mut connection| self.write_on(&mut connection));
        let error = ended.unwrap_err();
        let is_expected = is_over.load(Ordering::Acquire);
        assert!(is_expected, "{} with TLS {is_tls}: {error}", self.name);
    }

    fn write_on(&mut self, connection: &mut Connection) -> io::Result<()> {
        loop {
            match self.protocol {
                Protocol::Resp => self.write_commands(connection)?,
                _ => self.write_samples(connection)?,
            }
            self.answered.store(true, Ordering::Release);
        }
    }

    /// Compares with what a restarted server holds, and goes on from there.
    pub(crate) fn check(&mut self, client: &mut Client) {
        for kept in &mut self.kept {
            let from_ms = now_ms();
            let found = find(client, kept);
            kept.series.settle(found, from_ms, now_ms());
            let (series, role) = (&mut kept.series, kept.role);
            for (number, rule) in kept.rules.iter().enumerate() {
                let found = rows(&client.ask(&format!("TS.RANGE {} - +", rule.destination)));
                let expected = match series.state.rules >> number & 1 {
                    1 => rule.rows(&series.state.samples),
                    _ => BTreeMap::new(),
                };
                assert!(
                    same(&found, &expected),
                    "{rule:?} ({role:?}, {:?}): {found:?}, expected {expected:?}",
                    series.policy
                );
            }
        }
    }

    /// All keys that this writer may have made.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().flat_map(|kept| {
            let destinations = kept.rules.iter().map(|rule| rule.destination.as_str());
            destinations.chain([kept.series.key.as_str()])
        })
    }

    pub(crate) fn acknowledged(&self) -> usize {
        let kept = self.kept.iter();
        kept.map(|kept| kept.series.acknowledged).sum()
    }
}

pub(crate) fn now_ms() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_millis() as u64
}

/// What a server holds of a series.
fn find(client: &mut Client, kept: &Kept) -> State {
    let key = &kept.series.key;
    let expires = client.ask(&format!("PEXPIRETIME {key}"));
    let range = client.ask(&format!("TS.RANGE {key} - +"));
    // It may have expired between the two.
    if expires == ":-2\r\n" || range.starts_with('-') {
        return State::default();
    }
    let expires: i64 = expires[1..].trim().parse().unwrap();
    let mut rules = 0;
    if !kept.rules.is_empty() {
        let info = client.ask(&format!("TS.INFO {key}"));
        for (number, rule) in kept.rules.iter().enumerate() {
            rules |= u32::from(info.contains(&rule.destination)) << number;
        }
    }
    State {
        exists: true,
        samples: rows(&range),
        expires_at_ms: u64::try_from(expires).ok(),
        rules,
    }
}

/// The samples of a TS.RANGE reply; none of an error.
fn rows(reply: &str) -> BTreeMap<u64, f64> {
    let mut lines = reply.lines();
    let mut rows = BTreeMap::new();
    while let Some(at) = lines.by_ref().find_map(|line| line.strip_prefix(':')) {
        let value = lines.next().unwrap().strip_prefix('+').unwrap();
        rows.insert(at.parse().unwrap(), value.parse().unwrap());
    }
    rows
}

/// Whether rows are the same, but for the last digits of averages.
fn same(one: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> bool {
    let is_near = |(one, other): ((&u64, &f64), (&u64, &f64))| {
        one.0 == other.0 && (one.1 - other.1).abs() <= other.1.abs() * 1e-12
    };
    one.len() == other.len() && one.iter().zip(other).all(is_near)
}
