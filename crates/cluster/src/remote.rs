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
//! them. With a [`Lease`] or followers, a record is appended at least every half second, and at once
//! where a read asks for one. While an owner before may answer reads under its lease, neither
//! groups nor checkpoints are appended.
//!
//! Tested by `tests/remote.rs` with databases over a Kafka with faults.

mod engine;
mod figures;
mod lease;
mod lost;
mod moment;
mod pin;
mod trim;
mod waiting;

use crate::envelope::Checkpoint;
use crate::kafka::Offset;
use crate::owner::{Claimed, Error as OwnerError, History, Owner, Source, Stop};
use crate::retry::Cancel;
use latewood_engine::{Error, ErrorKind, Position, RemoteLog, Result};
pub use lease::{LEASE, Lease, OnAsk, Sent, Shown};
use moment::Moment;
use parking_lot::{Condvar, Mutex, MutexGuard};
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
/// for reads or followers.
const TICK_EVERY: Duration = Duration::from_secs(10);
const TICK_EVERY_WATCHED: Duration = Duration::from_millis(500);

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
        let (owner, applied_bytes) = (claimed.owner, claimed.applied_bytes);
        let end = owner.state().sequence;
        let first = owner.begin().1.sequence;
        let log = Arc::new(Self {
            held: ((end > 1).then_some(Position(first)), Position(end)),
            history: Mutex::new(Some(owner.history())),
            source: owner.source(),
            bounds,
            durable: AtomicU64::new(end - 1),
            state: Mutex::new(Waiting {
                log_bytes: applied_bytes,
                ..Waiting::new(owner.begin())
            }),
            changed: Condvar::new(),
            done: Condvar::new(),
            lease: lease.map(Arc::new),
            cancel,
            on_end,
            thread: Mutex::new(None),
        });
        if let Some(lease) = &log.lease {
            let asked = Arc::downgrade(&log);
            lease.on_ask(Box::new(move || {
                if let Some(log) = asked.upgrade() {
                    // The thread looks before it waits, under the lock.
                    drop(log.state.lock());
                    log.changed.notify_one();
                }
            }));
        }
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
        let is_watched = self.lease.is_some() || owner.is_attended();
        let every = if is_watched {
            TICK_EVERY_WATCHED
        } else {
            TICK_EVERY
        };
        // Reads wait for the first record under a lease, followers for the first that they hear.
        let mut due = self.now();
        if !is_watched {
            due = due.after(every);
        }
        loop {
            if owner.is_hello_due() {
                owner.say_hello();
            }
            let held = self.held_for();
            let mut state = self.state.lock();
            if let Some(failed) = state.must_end.take() {
                return Err(failed);
            }
            // First, as batches may never end. It names no group that waits: its files hold
            // proven ones only.
            if let Some(complete) = state.complete.take_if(|_| held.is_zero()) {
                let bytes = state.log_bytes;
                drop(state);
                let sent = self.prove(|| self.append_checkpoint(&mut owner, &complete, bytes));
                due = sent?.after(every);
                self.trim(&owner);
            } else if let Some(batch) = state.batches.pop_front_if(|_| held.is_zero()) {
                drop(state);
                due = self
                    .prove(|| self.append_batch(&mut owner, &batch))?
                    .after(every);
            } else if state.is_closing && state.batches.is_empty() {
                drop(state);
                self.end_lease();
                return owner.farewell().map(drop);
            } else if let Some(left) = self.idle_until(due) {
                state.turns = state.turns_asked;
                self.done.notify_all();
                let left = if held.is_zero() { left } else { left.min(held) };
                self.changed.wait_for(&mut state, left);
            } else {
                drop(state);
                due = self.prove(|| self.append_tick(&mut owner))?.after(every);
            }
        }
    }

    fn now(&self) -> Moment {
        Moment {
            at: Instant::now(),
            leased_ns: self.lease.as_ref().map(|lease| lease.now_ns()),
        }
    }

    /// How long no record is due; `None` if one is, or a read waits for one.
    fn idle_until(&self, due: Moment) -> Option<Duration> {
        let is_asked = self.lease.as_ref().is_some_and(|lease| lease.is_asked());
        if is_asked {
            return None;
        }
        self.now().until(due)
    }

    /// How long nothing may be written yet: an owner before may still answer reads, without it.
    fn held_for(&self) -> Duration {
        let lease = self.lease.as_ref();
        lease.map_or(Duration::ZERO, |lease| lease.begins_in())
    }

    /// Has a record appended and renews the lease with it. Returns when it was sent.
    fn prove(
        &self,
        append: impl FnOnce() -> std::result::Result<(), OwnerError>,
    ) -> std::result::Result<Moment, OwnerError> {
        let begun = self.now();
        let leased = self.lease.as_ref().map(|lease| (lease, lease.send()));
        append()?;
        if let Some((lease, sent)) = leased {
            lease.prove(self.durable.load(Ordering::Acquire));
            lease.renew(sent);
        }
        Ok(begun)
    }

    fn end_lease(&self) {
        if let Some(lease) = &self.lease {
            lease.end();
        }
    }

    fn append_tick(self: &Arc<Self>, owner: &mut Owner) -> std::result::Result<(), OwnerError> {
        if !self.held_for().is_zero() {
            return owner.beat().map(drop);
        }
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

impl fmt::Debug for TabletLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, durable) = (self.held, self.durable());
        write!(f, "TabletLog({held:?}, {durable:?})")
    }
}
