//! What clients write, what a database must hold of it, and how it is read.

use crate::tablet::away::{query, rows};
use latewood_engine::{
    Append, Create, Db, ErrorKind, Position, Refusal, Result, RuleSpec, Scratch,
};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::collections::BTreeMap;

/// The series that clients write; the first is the source of a rule.
pub(crate) const KEYS: [&str; 6] = ["source", "last", "sum", "count", "block", "deleted"];
/// Where the rule writes, and its buckets.
pub(crate) const SUMS: &[u8] = b"sums";
pub(crate) const BUCKET_MS: i64 = 10;

/// What a client does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Add {
        key: usize,
        at: i64,
        value: f64,
        policy: DuplicatePolicy,
    },
    Increment {
        key: usize,
        at: i64,
    },
    DeleteRange {
        key: usize,
        from: i64,
        to: i64,
    },
    Remove {
        key: usize,
    },
}

/// What a client hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Refused,
}

/// The samples of each series that exists, values by their bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain([Option<BTreeMap<i64, u64>>; KEYS.len()]);

impl Plain {
    /// Behind [`create_rule`].
    pub(crate) fn with_rule() -> Self {
        let mut plain = Self::default();
        plain.0[0] = Some(BTreeMap::new());
        plain
    }

    /// Does what a database does, and answers as it does.
    pub(crate) fn apply(&mut self, command: Command) -> Answer {
        match command {
            Command::Add {
                key,
                at,
                value,
                policy,
            } => {
                let series = self.0[key].get_or_insert_default();
                let kept = match series.get(&at) {
                    None => Some(value),
                    Some(old) => policy.resolve(f64::from_bits(*old), value),
                };
                let Some(kept) = kept else {
                    return Answer::Refused;
                };
                series.insert(at, kept.to_bits());
            }
            Command::Increment { key, at } => {
                let series = self.0[key].get_or_insert_default();
                let newest = series.last_key_value().map(|(at, value)| (*at, *value));
                let (newest_at, newest) = newest.unwrap_or((i64::MIN, 0.0_f64.to_bits()));
                if at < newest_at {
                    return Answer::Refused;
                }
                series.insert(at, (f64::from_bits(newest) + 1.0).to_bits());
            }
            Command::DeleteRange { key, from, to } => match &mut self.0[key] {
                None => return Answer::Refused,
                Some(series) => series.retain(|at, _| !(from..=to).contains(at)),
            },
            Command::Remove { key } if self.0[key].is_none() => return Answer::Refused,
            Command::Remove { key } => self.0[key] = None,
        }
        Answer::Done
    }

    /// What a database holds; `None` where a block of it cannot be had now.
    pub(crate) fn of(db: &Db) -> Option<Self> {
        let mut plain = Self::default();
        for (key, held) in KEYS.iter().zip(&mut plain.0) {
            *held = match rows(db, key.as_bytes(), &query(i64::MIN, i64::MAX)) {
                Ok(rows) => Some(rows.into_iter().collect()),
                Err(error) if error.kind() == ErrorKind::NoSuchKey => None,
                Err(error) if error.is_away() || error.kind() == ErrorKind::Io => return None,
                Err(error) => panic!("{key}: {error}"),
            };
        }
        Some(plain)
    }

    /// The rows of the rule: the sums of all buckets of its source but the newest.
    pub(crate) fn sums(&self) -> Vec<(i64, u64)> {
        let mut sums = BTreeMap::<i64, f64>::new();
        for (at, value) in self.0[0].iter().flatten() {
            let bucket = at.div_euclid(BUCKET_MS) * BUCKET_MS;
            *sums.entry(bucket).or_default() += f64::from_bits(*value);
        }
        sums.pop_last();
        let sums = sums.into_iter().map(|(at, sum)| (at, sum.to_bits()));
        sums.collect()
    }
}

/// Has a database do it: what its client hears once the group at the position is durable; `None`
/// where a block is needed that cannot be had now.
pub(crate) fn run(db: &Db, command: Command) -> Result<Option<(Answer, Position)>> {
    let of = |outcome: std::result::Result<i64, Refusal>| match outcome {
        Ok(_) => Some(Answer::Done),
        Err(Refusal::Duplicate | Refusal::OlderThanNewest) => Some(Answer::Refused),
        Err(Refusal::Away) => None,
        Err(refusal) => panic!("{command:?}: {refusal}"),
    };
    let done = run_any(db, command, &of);
    match done {
        Err(error) if error.is_away() => Ok(None),
        done => done,
    }
}

fn run_any(
    db: &Db,
    command: Command,
    of: &dyn Fn(std::result::Result<i64, Refusal>) -> Option<Answer>,
) -> Result<Option<(Answer, Position)>> {
    match command {
        Command::Add {
            key,
            at,
            value,
            policy,
        } => {
            let sample = Append {
                key: KEYS[key].as_bytes(),
                timestamp: at,
                value,
                on_duplicate: Some(policy),
                create: Create::Defaults,
            };
            let mut scratch = Scratch::new();
            let position = db.append(&[sample], &mut scratch)?;
            Ok(of(scratch.outcomes()[0]).map(|answer| (answer, position)))
        }
        Command::Increment { key, at } => {
            let key = KEYS[key].as_bytes();
            let (outcome, position) = db.increment(key, 1.0, Some(at), Create::Defaults)?;
            Ok(of(outcome).map(|answer| (answer, position)))
        }
        Command::DeleteRange { key, from, to } => {
            match db.delete_range(KEYS[key].as_bytes(), from, to) {
                Ok((_, position)) => Ok(Some((Answer::Done, position))),
                Err(error) if error.kind() == ErrorKind::NoSuchKey => {
                    Ok(Some((Answer::Refused, db.position())))
                }
                Err(error) => Err(error),
            }
        }
        Command::Remove { key } => match db.remove(&[KEYS[key].as_bytes()])? {
            (0, _) => Ok(Some((Answer::Refused, db.position()))),
            (_, position) => Ok(Some((Answer::Done, position))),
        },
    }
}

/// Gives a new database the rule.
pub(crate) fn create_rule(db: &Db) -> Result<Position> {
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: BUCKET_MS,
        align: 0,
    };
    let options = SeriesOptions::default();
    db.create(SUMS, &options)?;
    db.create(KEYS[0].as_bytes(), &options)?;
    db.create_rule(KEYS[0].as_bytes(), SUMS, spec)
}

impl Plain {
    /// Where another one is not the same, for messages.
    pub(crate) fn difference(&self, held: &Self) -> String {
        let pairs = KEYS.iter().zip(self.0.iter().zip(&held.0));
        let wrong = pairs.filter(|(_, (wanted, held))| wanted != held);
        let shown = |series: &Option<BTreeMap<i64, u64>>| {
            let samples = series.iter().flatten();
            let samples = samples.map(|(at, value)| (*at, f64::from_bits(*value)));
            samples.collect::<Vec<_>>()
        };
        let texts = wrong.map(|(key, (wanted, held))| {
            format!("{key} is {:?}, not {:?}", shown(held), shown(wanted))
        });
        texts.collect::<Vec<_>>().join("; ")
    }
}
