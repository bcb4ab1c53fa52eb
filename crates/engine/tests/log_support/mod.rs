//! Helpers of the log's tests: distinguishable groups, a sink that records them,
//! and a ledger of what must survive.

use latewood_engine::io::Env;
use latewood_engine::log::{
    GroupBuilder, Log, LogOptions, Position, Record, RecordIter, RecoveryReport, Replay,
};
use latewood_engine::{ErrorKind, Result};
use latewood_model::{DuplicatePolicy, SeriesId};
use std::path::Path;
use std::sync::Mutex;

/// Where the tests' logs lie on the simulated disk.
pub(crate) const DIR: &str = "/db/wal";

/// The smallest segments there are: a few groups fill one.
pub(crate) fn small() -> LogOptions {
    LogOptions {
        segment_bytes: 64 * 1024,
        ..LogOptions::default()
    }
}

/// How many samples group `n` has: some fill a seventh of a small segment.
fn samples_of(n: u64) -> u64 {
    match n % 5 {
        0 => 1,
        2 => 40,
        _ => 700,
    }
}

/// The value of sample `i` of group `n`; the first one is `n` itself.
fn value_of(n: u64, i: u64) -> f64 {
    if i == 0 {
        return n as f64;
    }
    (n as f64 + 0.1) / (i as f64 + 0.7)
}

/// Fills `group` so that [`Collect`] can tell it is group `n`, whole.
pub(crate) fn fill(group: &mut GroupBuilder, n: u64) {
    group.begin(2);
    for i in 0..samples_of(n) {
        group.sample(
            SeriesId(4 * i),
            1_700_000_000_000 + (n * 1000 + i) as i64,
            value_of(n, i),
            DuplicatePolicy::Last,
        );
    }
}

/// A group of one, built and appended.
pub(crate) fn append(log: &Log, n: u64) -> Result<Position> {
    let mut group = GroupBuilder::new();
    fill(&mut group, n);
    log.append(&mut group)
}

/// Remembers which groups came, in order, and checks each is whole.
#[derive(Default)]
pub(crate) struct Collect {
    pub(crate) seen: Mutex<Vec<u64>>,
}

impl Replay for Collect {
    fn workers(&self) -> usize {
        1
    }

    fn apply(&self, _worker: usize, _at: Position, records: RecordIter<'_>) -> Result<()> {
        let mut n = None;
        let mut count = 0;
        for record in records {
            let Record::Sample { value, .. } = record? else {
                panic!("only samples were written");
            };
            let n = *n.get_or_insert(value as u64);
            assert_eq!(value.to_bits(), value_of(n, count).to_bits());
            count += 1;
        }
        let n = n.expect("no group is empty");
        assert_eq!(count, samples_of(n), "group {n} is whole");
        self.seen.lock().unwrap().push(n);
        Ok(())
    }
}

/// Opens a log of small segments; what it held, too.
pub(crate) fn open(env: &Env) -> Result<(Log, Vec<u64>, RecoveryReport)> {
    open_at(env, Path::new(DIR), &small())
}

/// Opens a log anywhere.
pub(crate) fn open_at(
    env: &Env,
    dir: &Path,
    options: &LogOptions,
) -> Result<(Log, Vec<u64>, RecoveryReport)> {
    let sink = Collect::default();
    let (log, report) = Log::open(env, dir, options, &sink)?;
    Ok((log, sink.seen.into_inner().unwrap(), report))
}

/// Opens a log that must be refused as damaged; what was said.
pub(crate) fn refused(env: &Env) -> String {
    match open(env) {
        Ok((_, seen, _)) => panic!("the damaged log was served: {seen:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            error.to_string()
        }
    }
}

/// What was asked of a log and what it promised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Groups in the order they were appended; the last may have failed.
    pub(crate) appended: Vec<u64>,
    /// Sequence numbers of `appended`, where an append answered.
    pub(crate) positions: Vec<Position>,
    /// Everything up to here is promised to survive a power cut.
    pub(crate) durable: Position,
    /// The log was closed in order and nothing happened since.
    pub(crate) closed: bool,
    /// Nothing before this is needed.
    pub(crate) trimmed: Position,
}

impl Ledger {
    /// What is wrong with a log that replayed `seen`, if anything is.
    pub(crate) fn verdict(
        &self,
        seen: &[u64],
        all_written: bool,
    ) -> std::result::Result<(), String> {
        let from = match seen.first() {
            Some(first) => self.appended.iter().position(|n| n == first),
            None => Some(0),
        };
        let from = from.ok_or_else(|| format!("{seen:?} begins with an unknown group"))?;
        if self.appended.get(from..from + seen.len()) != Some(seen) {
            return Err(format!("{seen:?} is no run of {:?}", self.appended));
        }
        let held = from..from + seen.len();
        for (index, &position) in self.positions.iter().enumerate() {
            let promised = all_written || position <= self.durable;
            if promised && position >= self.trimmed && !held.contains(&index) {
                return Err(format!(
                    "promised group at {position:?} is gone, have {held:?}"
                ));
            }
        }
        Ok(())
    }
}
