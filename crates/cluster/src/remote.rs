//! The log of a database, in a partition of Kafka.
//!
//! Writers hand groups over and go on. One thread owns the tablet ([`crate::owner`]): it appends
//! all groups that wait as one record, has it proven, and tells those who wait how far the log
//! is durable. So the groups of many writers share a record, and the more the longer Kafka
//! takes.
//!
//! Invariants: groups are appended in the order of their numbers; `durable` is behind groups of
//! records that are known to count, and of nothing else. What waits and what no checkpoint
//! holds is bounded by [`Bounds`]: beyond them the database refuses writes before it applies
//! them. With a [`Lease`], a record is appended at least every half second.
//!
//! Tested by `tests/remote.rs` with databases over a Kafka with faults.

mod lease;
mod lost;
mod pin;
mod trim;
mod waiting;

use crate::envelope::{Checkpoint, PAYLOAD_BYTES_MAX};
use crate::kafka::Offset;
use crate::owner::{Claimed, Error as OwnerError, History, Owner, Source, Stop};
use crate::retry::Cancel;
use latewood_engine::{Error, ErrorKind, LogStats, Position, RemoteLog, RemotePin, Result};
pub use lease::{LEASE, Lease};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pin::Pin;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
pub use waiting::Bounds;
use waiting::{Batch, Waiting};

/// The owner proves that it still is one when nothing was written for this time, and with a lease
/// for reads.
const TICK_EVERY: Duration = Duration::from_secs(10);
const TICK_EVERY_LEASED: Duration = Duration::from_millis(500);
/// How long a stop waits for what is not durable yet.
const CLOSE_WAIT: Duration = Duration::from_secs(30);

/// A complete manifest in the object store, and which groups are needed beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The object.
    pub manifest: String,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its length.
    pub bytes: u64,
    /// The first group that is needed beside it.
    pub sequence: u64,
}

/// Called once, from the thread of the owner, when the log can no longer be written.
pub type OnEnd = Box<dyn Fn(&OwnerError) + Send + Sync>;

/// The log of a tablet that this process owns.
pub struct TabletLog {
    /// The first group that is held, if any ever was, and the first behind the claim.
    held: (Option<Position>, Position),
    history: Mutex<Option<History>>,
    source: Source,
    bounds: Bounds,
    durable: AtomicU64,
    state: Mutex<Waiting>,
    /// For the thread: there is something to do.
    changed: Condvar,
    /// For all others: something was done, or never will be.
    done: Condvar,
    lease: Option<Arc<Lease>>,
    cancel: Arc<Cancel>,
    on_end: OnEnd,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TabletLog {
    /// The log of the tablet that was claimed, with a lease if reads need one. `cancel` is that of
    /// the claim's retries: it ends the log as a killed process would.
    ///
    /// # Errors
    /// `Io` if the thread cannot be started.
    pub fn start(
        claimed: Claimed,
        bounds: Bounds,
        lease: Option<Lease>,
        cancel: Arc<Cancel>,
        on_end: OnEnd,
    ) -> Result<Arc<Self>> {
        let owner = claimed.owner;
        let end = owner.state().sequence;
        let first = owner.begin().1.sequence;
        let log = Arc::new(Self {
            held: ((end > 1).then_some(Position(first)), Position(end)),
            history: Mutex::new(Some(owner.history())),
            source: owner.source(),
            bounds,
            durable: AtomicU64::new(end - 1),
            state: Mutex::new(Waiting::new(owner.begin())),
            changed: Condvar::new(),
            done: Condvar::new(),
            lease: lease.map(Arc::new),
            cancel,
            on_end,
            thread: Mutex::new(None),
        });
        let run = Arc::clone(&log);
        let thread = thread::Builder::new()
            .name("tablet".to_owned())
            .spawn(move || run.run(owner))
            .map_err(|error| Error::io("cannot start a thread", Path::new("tablet"), error))?;
        *log.thread.lock() = Some(thread);
        Ok(log)
    }

    /// Writes that a manifest is complete, and returns what the log says of it, and where, once
    /// that counts.
    /// The log is trimmed then; where Kafka cannot do it now, the next call does.
    ///
    /// # Errors
    /// Those of [`Owner::checkpoint`].
    pub fn checkpoint(
        &self,
        complete: Complete,
    ) -> std::result::Result<(Offset, Checkpoint), OwnerError> {
        let mut state = self.state.lock();
        state.complete = Some(complete);
        state.checkpoints_asked += 1;
        self.changed.notify_one();
        loop {
            if let Some(checkpoint) = state.checkpoint.take() {
                return Ok(checkpoint);
            }
            if let Some(ended) = &state.ended {
                return Err(ended.clone());
            }
            self.done.wait(&mut state);
        }
    }

    /// Waits up to `limit` for the queue to empty. Returns whether it did.
    pub fn drain(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while state.queued_bytes > 0 && state.ended.is_none() {
            if self.done.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        state.queued_bytes == 0 && !state.has_failed()
    }

    /// How many checkpoints were asked for.
    pub fn checkpoints_asked(&self) -> u64 {
        self.state.lock().checkpoints_asked
    }

    /// Bytes of the groups that wait for Kafka.
    pub fn queued_bytes(&self) -> u64 {
        self.state.lock().queued_bytes
    }

    /// Bytes of the groups that no checkpoint holds.
    pub fn log_bytes(&self) -> u64 {
        self.state.lock().log_bytes
    }

    /// Bytes of the groups that this process wrote to Kafka.
    pub fn written_bytes(&self) -> u64 {
        self.state.lock().written_bytes
    }

    /// What it may hold.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Owns the tablet until the log is closed or can no longer be written.
    fn run(self: &Arc<Self>, owner: Owner) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(owner)));
        let panicked = |_| Err(Stop::Refused("its thread panicked".to_owned()).into());
        // After the farewell nothing is appended: whoever still waits gets an error.
        let ended = served.unwrap_or_else(panicked);
        let ended = ended.err().unwrap_or(OwnerError::Cancelled);
        self.end_lease();
        self.state.lock().ended = Some(ended.clone());
        self.done.notify_all();
        if ended != OwnerError::Cancelled {
            (self.on_end)(&ended);
        }
    }

    fn serve(self: &Arc<Self>, mut owner: Owner) -> std::result::Result<(), OwnerError> {
        // Reads wait for the first record under a lease.
        let mut due = Instant::now();
        if self.lease.is_none() {
            due += TICK_EVERY;
        }
        loop {
            let mut state = self.state.lock();
            if let Some(failed) = state.must_end.take() {
                return Err(failed);
            }
            // First, as batches may never end. It names no group that waits: its files hold
            // proven ones only.
            if let Some(complete) = state.complete.take() {
                let held = state.log_bytes;
                drop(state);
                due = self.prove(|| self.append_checkpoint(&mut owner, &complete, held))?;
                self.trim(&owner);
            } else if let Some(batch) = state.batches.pop_front() {
                drop(state);
                due = self.prove(|| self.append_batch(&mut owner, &batch))?;
            } else if state.is_closing {
                drop(state);
                self.end_lease();
                return owner.farewell().map(drop);
            } else if Instant::now() < due {
                self.changed.wait_until(&mut state, due);
            } else {
                drop(state);
                due = self.prove(|| self.append_tick(&mut owner))?;
            }
        }
    }

    /// Has a record appended and renews the lease with it. Returns when the next record is due.
    fn prove(
        &self,
        append: impl FnOnce() -> std::result::Result<(), OwnerError>,
    ) -> std::result::Result<Instant, OwnerError> {
        let sent = Instant::now();
        let Some(lease) = &self.lease else {
            return append().map(|()| sent + TICK_EVERY);
        };
        let sent_ns = lease.now_ns();
        append()?;
        lease.renew(sent_ns);
        Ok(sent + TICK_EVERY_LEASED)
    }

    fn end_lease(&self) {
        if let Some(lease) = &self.lease {
            lease.end();
        }
    }

    fn append_tick(self: &Arc<Self>, owner: &mut Owner) -> std::result::Result<(), OwnerError> {
        if owner.tick()?.is_renewed {
            self.state.lock().begin = owner.begin();
            self.trim(owner);
        }
        Ok(())
    }

    fn append_batch(
        &self,
        owner: &mut Owner,
        batch: &Batch,
    ) -> std::result::Result<(), OwnerError> {
        let begun = Instant::now();
        owner.append(batch.first, batch.groups, &batch.bytes)?;
        let bytes = batch.bytes.len() as u64;
        let mut state = self.state.lock();
        state.queued_bytes -= bytes;
        state.log_bytes += bytes;
        state.written_bytes += bytes;
        state.since = state.batches.front().map(|batch| batch.since);
        state.records += 1;
        state.last_append_us = begun.elapsed().as_micros() as u64;
        let newest = owner.state().sequence - 1;
        self.durable.store(newest, Ordering::Release);
        drop(state);
        self.done.notify_all();
        Ok(())
    }

    /// `held` bytes were in no checkpoint before.
    fn append_checkpoint(
        &self,
        owner: &mut Owner,
        complete: &Complete,
        held: u64,
    ) -> std::result::Result<(), OwnerError> {
        let before = owner.begin().1.sequence;
        if owner.begins_with_groups(complete.sequence) {
            // The log begins with this record then: a start reads less, and the groups may have
            // been deleted by hand.
            owner.tick()?;
        }
        let Complete {
            manifest,
            sha256,
            bytes,
            sequence,
        } = complete;
        let (offset, checkpoint) = owner.checkpoint(manifest, *sha256, *bytes, *sequence)?;
        // Groups are about as long before as behind it.
        let (gone, all) = (
            checkpoint.state.sequence.saturating_sub(before),
            owner.state().sequence.saturating_sub(before),
        );
        let gone_bytes = u128::from(held) * u128::from(gone) / u128::from(all.max(1));
        let mut state = self.state.lock();
        state.log_bytes -= gone_bytes as u64;
        state.checkpoint = Some((offset, checkpoint));
        state.begin = owner.begin();
        drop(state);
        self.done.notify_all();
        Ok(())
    }

    /// Until when reads may be answered, if they need a lease.
    pub fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref()
    }

    /// The first record that is needed beside the newest checkpoint.
    pub fn begin(&self) -> Offset {
        self.state.lock().begin.0
    }

    fn check_in(&self, state: &MutexGuard<'_, Waiting>) -> Result<()> {
        match &state.ended {
            None => Ok(()),
            Some(ended) => Err(failed(ended)),
        }
    }
}

#[cold]
fn failed(ended: &OwnerError) -> Error {
    Error::new(ErrorKind::Halted, ended.to_string())
}

impl RemoteLog for TabletLog {
    fn group_bytes_max(&self) -> usize {
        PAYLOAD_BYTES_MAX
    }

    fn first(&self) -> Result<Option<Position>> {
        Ok(self.held.0)
    }

    fn replay(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Position> {
        let history = self.history.lock().take();
        for data in history.into_iter().flatten() {
            let data = data.map_err(|ended| {
                let error = failed(&ended);
                self.state.lock().must_end.get_or_insert(ended);
                self.changed.notify_one();
                error
            })?;
            each(&data.payload)?;
            self.state.lock().log_bytes += data.payload.len() as u64;
        }
        Ok(self.held.1)
    }

    fn append(&self, position: Position, group: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        self.check_in(&state)?;
        let fits = |batch: &Batch| batch.bytes.len() + group.len() <= PAYLOAD_BYTES_MAX;
        if !state.batches.back().is_some_and(fits) {
            state.batches.push_back(Batch {
                first: position.0,
                since: Instant::now(),
                groups: 0,
                bytes: Vec::new(),
            });
        }
        if let Some(batch) = state.batches.back_mut() {
            batch.bytes.extend_from_slice(group);
            batch.groups += 1;
        }
        state.queued_bytes += group.len() as u64;
        if state.since.is_none() {
            state.since = state.batches.front().map(|batch| batch.since);
        }
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn durable(&self) -> Position {
        Position(self.durable.load(Ordering::Acquire))
    }

    fn sync_to(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        while self.durable() < position {
            self.check_in(&state)?;
            self.done.wait(&mut state);
        }
        Ok(())
    }

    fn why_full(&self) -> Option<String> {
        let (queued, held) = {
            let state = self.state.lock();
            (state.queued_bytes, state.log_bytes)
        };
        let Bounds {
            queue_bytes,
            log_bytes,
        } = self.bounds;
        if queued > queue_bytes {
            let text = format!("{queued} bytes wait for Kafka, at most {queue_bytes} may");
            return Some(text);
        }
        (held > log_bytes).then(|| {
            format!(
                "the log in Kafka holds {held} bytes that no checkpoint in the object store \
                 holds, at most {log_bytes} may"
            )
        })
    }

    fn check(&self) -> Result<()> {
        self.check_in(&self.state.lock())
    }

    fn close(&self) -> Result<()> {
        let deadline = Instant::now() + CLOSE_WAIT;
        let mut state = self.state.lock();
        state.is_closing = true;
        self.changed.notify_one();
        while state.queued_bytes > 0 && state.ended.is_none() {
            if self.done.wait_until(&mut state, deadline).timed_out() {
                let (bytes, wait_s) = (state.queued_bytes, CLOSE_WAIT.as_secs());
                let message = format!(
                    "{bytes} bytes of the log are not known to be in Kafka after {wait_s} s"
                );
                self.cancel.cancel();
                return Err(Error::new(ErrorKind::Halted, message));
            }
        }
        if state.queued_bytes > 0 || state.has_failed() {
            self.check_in(&state)?;
        }
        drop(state);
        if let Some(thread) = self.thread.lock().take() {
            // The farewell only makes a take-over quicker: brokers that are away are not waited for.
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            self.cancel.cancel();
            // A panic in it was told where it happened.
            let _ = thread.join();
        }
        Ok(())
    }

    fn pin(&self) -> Box<dyn RemotePin + '_> {
        Box::new(Pin::new(self))
    }

    fn stats(&self) -> LogStats {
        let state = self.state.lock();
        LogStats {
            syncs: state.records,
            last_sync_us: state.last_append_us,
            unsynced_ms: state.since.map(|since| since.elapsed().as_millis() as u64),
            ..LogStats::default()
        }
    }
}

impl fmt::Debug for TabletLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, durable) = (self.held, self.durable());
        write!(f, "TabletLog({held:?}, {durable:?})")
    }
}
