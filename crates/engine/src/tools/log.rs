//! Reading a log to know that it can be read.

use crate::error::Result;
use crate::wal::{Position, Record, RecordIter, Replay};
use std::sync::atomic::{AtomicU64, Ordering};

/// Decodes every record and counts them.
#[derive(Debug, Default)]
pub(super) struct Counter {
    samples: AtomicU64,
    others: AtomicU64,
}

impl Counter {
    /// Samples seen.
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
