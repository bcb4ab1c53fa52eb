//! Making the log durable, and giving up what is no longer needed.
//!
//! One thread syncs for all who wait: those who come while it works wait for
//! the next sync, which covers them all. Segments go only once a durable header
//! says that nothing in them is needed, so a power cut never finds a log
//! whose beginning is gone and still wanted.
//!
//! Invariants: `durable` never passes what a sync has covered; after a failed
//! sync it never grows. Tested by `tests/log_write.rs`, `tests/log_fault.rs` and
//! `tests/log_crash.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::log::group::{GroupHeader, HEADER_BYTES};
use crate::log::options::Position;
use crate::log::writer::LocalLog;
use crate::observe::observer::Work;
use parking_lot::MutexGuard;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LocalLog {
    /// Returns once every group up to `position` is durable. All who wait at
    /// a time share one sync: the first one leads, and groups appended while
    /// it works wait for the next.
    ///
    /// # Errors
    /// `Halted` after an earlier failure, also for those who waited for the
    /// sync that failed; `Io` for its leader.
    pub(crate) fn sync_to(&self, position: Position) -> Result<()> {
        // A position from before a restart may lie ahead; all there is will do.
        let position = position.min(self.written());
        if self.durable() >= position {
            return Ok(());
        }
        let mut syncing = self.commit.lock();
        while self.durable() < position {
            self.latch.check()?;
            if *syncing {
                self.committed.wait(&mut syncing);
                continue;
            }
            *syncing = true;
            let sync =
                AssertUnwindSafe(|| MutexGuard::unlocked(&mut syncing, || self.sync_written()));
            let outcome = catch_unwind(sync);
            *syncing = false;
            if outcome.is_err() {
                let sentence = "a sync of the log panicked";
                self.latch.fail(Error::new(ErrorKind::Halted, sentence));
            }
            // Those who wait must hear of it in any case.
            self.committed.notify_all();
            MutexGuard::unlocked(&mut syncing, || self.latch.tell_durable());
            outcome.unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        Ok(())
    }

    /// Says that no group before `position` is needed any more. Segments
    /// wholly before it are recycled by [`LocalLog::background_tick`], once a
    /// durable segment header says the same; until then they are replayed.
    ///
    /// # Errors
    /// `Halted` after an earlier failure.
    pub(crate) fn trim(&self, position: Position) -> Result<()> {
        let mut tail = self.tail.lock();
        self.latch.check()?;
        tail.start = tail.start.max(position.0.min(tail.next_sequence));
        let second = tail.segments.get(1);
        if second.is_some_and(|second| second.first_sequence <= tail.start) {
            tail.roll_wanted = tail.header.start < tail.start;
        }
        Ok(())
    }

    /// One step of the work that should not wait for a writer: prepares the next
    /// segment, and then, which may take a sync, gives back segments that were
    /// trimmed. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// `Halted` after an earlier failure; `Io` for the failure itself.
    pub(crate) fn background_tick(&self) -> Result<()> {
        self.latch.check()?;
        let halt = |error| self.latch.fail(error);
        self.store.prepare_ahead().map_err(halt)?;
        self.roll_idle()?;
        let (trimmed, header_first) = {
            let tail = self.tail.lock();
            (tail.trimmed(), tail.header.first_sequence)
        };
        if trimmed > 0 && self.written().0 >= header_first {
            // The header that lets the segments go must not be lost itself.
            self.sync_to(Position(header_first))?;
            let dropped = self.tail.lock().drop_oldest(trimmed);
            for segment in dropped {
                self.store.give_back(segment.number).map_err(halt)?;
            }
        }
        Ok(())
    }

    /// Begins the wanted segment if the current one is empty: a start before the next
    /// write must not read trimmed groups or report them as damaged.
    fn roll_idle(&self) -> Result<()> {
        let (number, file) = {
            let mut tail = self.tail.lock();
            if !tail.roll_wanted || !tail.is_empty() {
                return Ok(());
            }
            self.reserve(&mut tail, 0)?;
            (tail.header.number, Arc::clone(&tail.file))
        };
        self.syncs.fetch_add(1, Ordering::Relaxed);
        file.sync().map_err(|error| {
            let path = self.store.path(number);
            self.latch
                .fail(Error::io("cannot sync the log", &path, error))
        })
    }

    /// Makes everything durable and writes a closing header, by which the next open
    /// distinguishes a complete log from a truncated one. No append may follow.
    ///
    /// # Errors
    /// `Halted` after an earlier failure; `Io` for the failure itself.
    pub(crate) fn close(&self) -> Result<()> {
        self.latch.check()?;
        self.sync_to(self.written())?;
        let tail = self.tail.lock();
        let is_untouched = tail.is_empty() && !tail.roll_wanted && tail.rolls == 0;
        if is_untouched && self.found_closed {
            // Nothing was written since open: this segment was never needed.
            return Ok(());
        }
        drop(tail);
        self.close_behind_last()
    }

    /// The same, also where nothing was written since open.
    ///
    /// # Errors
    /// As [`LocalLog::close`].
    pub(crate) fn close_behind_last(&self) -> Result<()> {
        self.latch.check()?;
        // The closing header says that all before it is durable.
        self.sync_to(self.written())?;
        let mut tail = self.tail.lock();
        self.reserve(&mut tail, HEADER_BYTES)?;
        let sequence = tail.next_sequence;
        let header = GroupHeader::closing_header(sequence).encode(0, tail.header.salt);
        let position = self.put(&mut tail, &header)?;
        drop(tail);
        self.sync_to(position)
    }

    /// Syncs everything written so far; one thread at a time.
    fn sync_written(&self) -> Result<()> {
        let (files, newest) = {
            let mut tail = self.tail.lock();
            // On failure the log halts, so nobody misses what is taken here.
            let mut files = std::mem::take(&mut tail.unsynced);
            files.push((tail.header.number, Arc::clone(&tail.file)));
            (files, tail.next_sequence - 1)
        };
        let started_ns = self.env.clock.monotonic_ns();
        for (number, file) in files {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            file.sync().map_err(|error| {
                let path = self.store.path(number);
                self.latch
                    .fail(Error::io("cannot sync the log", &path, error))
            })?;
        }
        let took_ns = self.env.clock.monotonic_ns() - started_ns;
        self.last_sync_us.store(took_ns / 1000, Ordering::Relaxed);
        self.latch.observer.note(Work::LogSync, took_ns);
        // Groups behind `newest` came while this sync ran, or have a time of their own from now on.
        self.unsynced_since_ns.store(started_ns, Ordering::Relaxed);
        self.durable.store(newest, Ordering::Release);
        Ok(())
    }
}
