//! The flusher: writes partitions from memory into blocks, one at a time.
//!
//! A partition is *due* when memory is short, when the log has grown long, when
//! its oldest unflushed sample is old, or on request. Its series are frozen a few
//! at a time, each under the lock of its shard, with the log position up to which
//! the files will hold it; there is no global pause. Writers do not wait unless
//! the memory budget is used up ([`crate::keyspace::memory_budget`]). Once the
//! files are durable and published, the frozen heads are dropped and the log is
//! trimmed.
//!
//! One flush runs at a time, of all databases that share a memory budget. Heads
//! frozen by a failed flush stay readable and are written by the next flush, which
//! has the same partition and the same number. Readers skip frozen heads whose flush
//! number their blocks include, so no later number may be published first.
//!
//! Tested by `tests/flush` on the simulated disk, by the model test and
//! by the server's tests on a real one.

mod files;
mod idle;
mod park;
mod partition;
mod rows;
mod stats;

pub(crate) use park::Which;
pub use stats::FlushStats;

use crate::base::error::Result;
use crate::keyspace::core::Core;
use crate::keyspace::settle::Settler;
use crate::log::Position;
use crate::observe::notices::About;
use crate::observe::observer::Work;
use crate::observe::signals::Job;
use files::Written;
use idle::Looks;
use parking_lot::{Mutex, MutexGuard};
use stats::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Interval at which memory, log and ages are checked.
const TICK: Duration = Duration::from_millis(100);
/// Delay of a retry after a failure, initial and maximum.
const RETRY_NS: u64 = 1_000_000_000;
const RETRY_MAX_NS: u64 = 60_000_000_000;

pub(crate) struct Flusher {
    core: Arc<Core>,
    settler: Arc<Settler>,
    pub(crate) age_ms: AtomicU64,
    pub(crate) log_bytes_max: AtomicU64,
    /// Bytes of log that the start replayed: an earlier run left them.
    replayed_bytes: AtomicU64,
    /// Everything up to this position of the log is to be flushed.
    pub(crate) asked: AtomicU64,
    /// How often somebody asked for that.
    pub(crate) requests: AtomicU64,
    turn: Mutex<Turn>,
    counters: Counters,
}

/// State of the running flush; locked during a flush.
#[derive(Debug, Default)]
struct Turn {
    /// The partition and number of the flush that failed last.
    failed: Option<(u32, u64)>,
    failures: u32,
    retry_ns: u64,
    /// What the log had written at the last checkpoint; `None` before the first:
    /// then what an earlier run left counts, too, or a server that is stopped
    /// again and again would have a longer log at every start.
    checkpoint_bytes: Option<u64>,
    looks: Looks,
}

impl Flusher {
    pub(crate) fn new(core: &Arc<Core>, settler: &Arc<Settler>) -> Self {
        Self {
            core: core.clone(),
            settler: settler.clone(),
            age_ms: core.options.flush_age_ms.into(),
            log_bytes_max: core.options.log_bytes_max.into(),
            replayed_bytes: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            turn: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// Hears how much log a start replayed.
    pub(crate) fn note_replayed(&self, bytes: u64) {
        self.replayed_bytes.store(bytes, Ordering::Relaxed);
    }
}

pub(crate) fn run(flusher: &Flusher) {
    let core = &flusher.core;
    core.budget.set_flushes(&core.member, true);
    let _end = EndsFlushing(core);
    while core.observe.signals.goes_on(Job::Flush, TICK) {
        core.look_if_stale();
        // A failure is counted, reported in the figures and retried.
        while matches!(flusher.flush_if_due(), Ok(true)) || flusher.park_if_due() {
            if core.observe.signals.stopped() {
                break;
            }
        }
    }
}

/// Tells waiting writers that a thread that ended or panicked flushes no more.
struct EndsFlushing<'a>(&'a Core);

impl Drop for EndsFlushing<'_> {
    fn drop(&mut self) {
        self.0.budget.set_flushes(&self.0.member, false);
    }
}

impl Flusher {
    /// Flushes the partition whose turn it is, if one is due. Returns whether it did.
    pub(crate) fn flush_if_due(&self) -> Result<bool> {
        let core = &self.core;
        if let Err(halted) = core.check_writable() {
            core.budget.set_flushes(&core.member, false);
            return Err(halted);
        }
        let mut turn = self.turn.lock();
        let now_ns = core.env.clock.monotonic_ns();
        if turn.failed.is_some() && now_ns < turn.retry_ns {
            return Ok(false);
        }
        let requests = self.requests.load(Ordering::Acquire);
        self.look_at_log(&mut turn);
        let due = || match turn.failed {
            Some((partition, _)) => Some(partition),
            None => self.due_partition(now_ns),
        };
        let mut running = None;
        if due().is_some() {
            let is_closing = || core.observe.signals.stopped();
            running = core.budget.flush.begin_unless(is_closing);
            if running.is_none() {
                return Ok(false);
            }
        }
        // Another database may have flushed meanwhile.
        match running.as_ref().and_then(|_| due()) {
            Some(partition) => self.flush_in_turn(&mut turn, partition).map(|()| true),
            None => {
                let now_ms = || self.core.env.clock.now_ms();
                self.counters.answer(requests, now_ms);
                Ok(false)
            }
        }
    }

    /// Flushes every partition that something was written to.
    pub(crate) fn flush_all_partitions(&self) -> Result<()> {
        self.core.check_publishable()?;
        let mut turn = self.turn.lock();
        if let Some((partition, _)) = turn.failed {
            let _running = self.core.budget.flush.begin();
            self.flush_in_turn(&mut turn, partition)?;
        }
        for (partition, head) in self.heads().iter() {
            // Without a log nobody notes what a partition owes it.
            if head.is_dirty() || self.core.log().is_none() {
                let _running = self.core.budget.flush.begin();
                // Partitions have 32 bits.
                self.flush_in_turn(&mut turn, partition as u32)?;
            }
        }
        let now_ms = self.core.env.clock.now_ms();
        self.counters.saved(now_ms);
        Ok(())
    }

    fn flush_in_turn(&self, turn: &mut MutexGuard<'_, Turn>, partition: u32) -> Result<()> {
        let begun_ns = self.core.env.clock.monotonic_ns();
        let is_first = turn.failed.is_none();
        let number = match turn.failed {
            Some((_, number)) => number,
            None => self.core.store.next_flush(),
        };
        let flushed = self.flush_what_is_left(partition, number, is_first);
        let took_ns = self.core.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.counters.note(&flushed, took_ns);
        self.core.observe.observer.note(Work::Flush, took_ns);
        self.core.budget.flush.end(self.core.budget.now_ns());
        self.core.look_at_memory();
        match flushed {
            Ok(_) => {
                turn.failed = None;
                turn.failures = 0;
                let works = self.core.options.background;
                self.core.budget.set_flushes(&self.core.member, works);
                if self.core.budget.wants_flush() {
                    // Another database may have more by now.
                    self.core.budget.wake_flusher();
                }
                Ok(())
            }
            Err(error) => {
                let text = format_args!(
                    "a flush failed and is tried again: {error}; what it was to write stays in memory and in the log"
                );
                self.core.observe.notices.tell(About::Flush, text);
                turn.failed = Some((partition, number));
                let wait_ns = RETRY_NS << turn.failures.min(6);
                turn.failures += 1;
                turn.retry_ns = begun_ns + took_ns + wait_ns.min(RETRY_MAX_NS);
                self.core.budget.set_flushes(&self.core.member, false);
                Err(error)
            }
        }
    }

    /// Flushes a partition, again where everything was removed meanwhile: series
    /// that came since may be frozen under this number.
    fn flush_what_is_left(&self, partition: u32, number: u64, is_first: bool) -> Result<Written> {
        loop {
            let epoch = self.core.store.epoch();
            // Another round finds no files to change: they were removed.
            let flushed = self.flush_partition(partition, number, is_first);
            if flushed.is_ok() || self.core.store.epoch() == epoch {
                return flushed;
            }
        }
    }

    /// Asks for a flush of everything once the log has grown long.
    fn look_at_log(&self, turn: &mut Turn) {
        let Some(log) = self.core.log() else { return };
        let stats = log.stats();
        let since = match turn.checkpoint_bytes {
            Some(begun) => stats.bytes_written.saturating_sub(begun),
            None => stats.bytes_written + self.replayed_bytes.load(Ordering::Relaxed),
        };
        let max = self.log_bytes_max.load(Ordering::Relaxed);
        let max = self.core.store.disk_budget.log_bytes_max(max);
        // The log of an earlier run may be too long for the disk budget.
        let is_long = turn.checkpoint_bytes.is_none()
            && self.core.store.disk_budget.is_log_long(stats.bytes_on_disk);
        if since >= max || is_long {
            turn.checkpoint_bytes = Some(stats.bytes_written);
            let end = self.log_end().0;
            self.asked.fetch_max(end, Ordering::Relaxed);
        }
    }

    /// The partition to flush next: the one that owes the log longest, where
    /// somebody asked or it is too old; else the largest, where memory is short.
    fn due_partition(&self, now_ns: u64) -> Option<u32> {
        let heads = self.heads();
        let asked = self.asked.load(Ordering::Relaxed);
        let age_ns = self
            .age_ms
            .load(Ordering::Relaxed)
            .saturating_mul(1_000_000);
        let owing = heads.iter().filter_map(|(partition, head)| {
            let owed = head.owed?;
            let is_old = now_ns.saturating_sub(owed.since_ns) >= age_ns;
            (is_old || owed.position <= asked).then_some((owed.position, partition))
        });
        if let Some((_, partition)) = owing.min() {
            return Some(partition as u32);
        }
        let bytes: u64 = heads.iter().map(|(_, head)| head.bytes as u64).sum();
        let fills_disk = self.core.log().is_none()
            && self
                .core
                .store
                .disk_budget
                .is_log_long(bytes.saturating_mul(2));
        if !self.core.budget.wants_flush_of(&self.core.member) && !fills_disk {
            return None;
        }
        let by_bytes = heads
            .iter()
            .map(|(partition, head)| (head.bytes, partition));
        by_bytes.max().map(|(_, partition)| partition as u32)
    }

    /// The end of the log, or of what was replayed of it.
    pub(crate) fn log_end(&self) -> Position {
        match self.core.log() {
            Some(log) => log.written(),
            None => Position(self.core.log.replayed.load(Ordering::Relaxed)),
        }
    }
}
