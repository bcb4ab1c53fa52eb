//! The figures of the flusher. Tested by `tests/flush`.

use crate::background::flush::Flusher;
use crate::background::flush::files::Written;
use crate::background::flush::park::Parked;
use crate::base::error::Result;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Figures of flushes since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushStats {
    /// Flushes of a partition that are on disk.
    pub flushes: u64,
    /// Flushes that failed.
    pub failed: u64,
    /// Why the last one failed, until one succeeds.
    pub last_error: Option<String>,
    /// Why the last one failed, if three or more in a row did because of a full disk.
    pub disk_full: Option<String>,
    /// Bytes of blocks and series files written.
    pub bytes_written: u64,
    /// Samples and late operations written.
    pub samples: u64,
    /// How long the flushes took, all together.
    pub total_ns: u64,
    /// How long the last one took.
    pub last_ns: u64,
    /// Times that series were parked, how many series, and bytes of the files written for them.
    pub parkings: u64,
    /// See there.
    pub parked: u64,
    /// See there.
    pub parked_bytes_written: u64,
    /// Times that series could not be parked.
    pub parkings_failed: u64,
    /// Whether one is asked for or under way.
    pub in_progress: bool,
    /// When everything that was asked for last was on disk, milliseconds since
    /// the Unix epoch; 0 where nobody asked.
    pub saved_at_ms: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    flushes: AtomicU64,
    failed: AtomicU64,
    bytes_written: AtomicU64,
    samples: AtomicU64,
    total_ns: AtomicU64,
    last_ns: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// How many in a row failed because of a full disk.
    disk_full: AtomicU64,
    /// Requests whose flushes are done.
    answered: AtomicU64,
    saved_at_ms: AtomicI64,
    parkings: AtomicU64,
    parked: AtomicU64,
    parked_bytes_written: AtomicU64,
    parkings_failed: AtomicU64,
}

impl Counters {
    pub(super) fn note_parked(&self, parked: &Result<Parked>) {
        let add = |counter: &AtomicU64, by| counter.fetch_add(by, Ordering::Relaxed);
        match parked {
            Ok(parked) => {
                add(&self.parkings, u64::from(parked.series > 0));
                add(&self.parked, parked.series);
                add(&self.parked_bytes_written, parked.bytes_written);
            }
            Err(_) => drop(add(&self.parkings_failed, 1)),
        }
    }

    pub(crate) fn note(&self, flushed: &Result<Written>, took_ns: u64) {
        let add = |counter: &AtomicU64, by| counter.fetch_add(by, Ordering::Relaxed);
        add(&self.total_ns, took_ns);
        self.last_ns.store(took_ns, Ordering::Relaxed);
        match flushed {
            Ok(written) => {
                add(&self.flushes, 1);
                add(&self.bytes_written, written.len_bytes());
                add(&self.samples, written.samples());
                *self.last_error.lock() = None;
                self.disk_full.store(0, Ordering::Relaxed);
            }
            Err(error) => {
                add(&self.failed, 1);
                *self.last_error.lock() = Some(error.to_string());
                if error.is_disk_full() {
                    add(&self.disk_full, 1);
                } else {
                    self.disk_full.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Everything that the first `requests` requests asked for is on disk.
    pub(crate) fn answer(&self, requests: u64, now_ms: impl FnOnce() -> i64) {
        if self.answered.swap(requests, Ordering::Relaxed) < requests {
            self.saved(now_ms());
        }
    }

    /// Everything is on disk.
    pub(crate) fn saved(&self, now_ms: i64) {
        self.saved_at_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Flusher {
    pub(crate) fn flush_stats(&self) -> FlushStats {
        let counters = &self.counters;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_error = counters.last_error.lock().clone();
        FlushStats {
            flushes: load(&counters.flushes),
            failed: load(&counters.failed),
            disk_full: last_error
                .clone()
                .filter(|_| load(&counters.disk_full) >= 3),
            last_error,
            bytes_written: load(&counters.bytes_written),
            samples: load(&counters.samples),
            total_ns: load(&counters.total_ns),
            last_ns: load(&counters.last_ns),
            in_progress: self.turn.is_locked() || load(&counters.answered) < load(&self.requests),
            parkings: load(&counters.parkings),
            parked: load(&counters.parked),
            parked_bytes_written: load(&counters.parked_bytes_written),
            parkings_failed: load(&counters.parkings_failed),
            saved_at_ms: counters.saved_at_ms.load(Ordering::Relaxed),
        }
    }
}
