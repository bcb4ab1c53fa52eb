//! Reading a whole log to verify it. Tested by `tests/verdicts.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::log::record::{Record, RecordIter};
use crate::log::{LogStart, Position, Replay};
use crate::storage::files::Directory;
use latewood_model::SeriesId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Decodes every record and counts them.
#[derive(Debug, Default)]
pub(super) struct Counter {
    samples: AtomicU64,
    others: AtomicU64,
}

impl Counter {
    pub(super) fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Records of other kinds seen.
    pub(super) fn others(&self) -> u64 {
        self.others.load(Ordering::Relaxed)
    }
}

impl Replay for Counter {
    fn workers(&self) -> usize {
        1
    }

    fn apply(&self, _worker: usize, _at: Position, records: RecordIter<'_>) -> Result<()> {
        let (mut samples, mut others) = (0, 0);
        for record in records {
            match record? {
                Record::Sample { .. } => samples += 1,
                _ => others += 1,
            }
        }
        self.samples.fetch_add(samples, Ordering::Relaxed);
        self.others.fetch_add(others, Ordering::Relaxed);
        Ok(())
    }
}

/// Does the same, and puts directory and log before the decision table.
pub(super) struct Judge<'a> {
    directory: &'a Directory,
    /// Up to which group the files hold what the log says of each series.
    stored: HashMap<SeriesId, u64>,
    counter: Counter,
    unstored: AtomicU64,
    refusal: Mutex<Option<Error>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(directory: &'a Directory, stored: HashMap<SeriesId, u64>) -> Self {
        Self {
            directory,
            stored,
            counter: Counter::default(),
            unstored: AtomicU64::new(0),
            refusal: Mutex::default(),
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.counter.samples()
    }

    /// Those of them that no block holds yet.
    pub(super) fn unstored(&self) -> u64 {
        self.unstored.load(Ordering::Relaxed)
    }

    /// Why a start refuses the directory, if its table says so.
    pub(super) fn refusal(self) -> Option<Error> {
        self.refusal.into_inner()
    }
}

impl Replay for Judge<'_> {
    fn workers(&self) -> usize {
        1
    }

    fn begins(&self, start: LogStart) -> Result<()> {
        match self.directory.decide(start.into()) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(error) => *self.refusal.lock() = Some(error),
            Ok(_) => {}
        }
        Ok(())
    }

    fn apply(&self, worker: usize, at: Position, records: RecordIter<'_>) -> Result<()> {
        let mut unstored = 0;
        for record in records.clone() {
            if let Record::Sample { id, .. } = record? {
                let is_stored = at.0 < self.directory.contents.log_start
                    || self.stored.get(&id).is_some_and(|&held| held >= at.0);
                unstored += u64::from(!is_stored);
            }
        }
        self.unstored.fetch_add(unstored, Ordering::Relaxed);
        self.counter.apply(worker, at, records)
    }
}
