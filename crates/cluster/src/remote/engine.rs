//! What the engine asks of its log.
//!
//! Tested by `tests/remote.rs`.

use super::pin::Pin;
use super::waiting::{Batch, Bounds};
use super::{TabletLog, failed};
use crate::envelope::PAYLOAD_BYTES_MAX;
use latewood_engine::{Error, ErrorKind, LogStats, Position, RemoteLog, RemotePin, Result};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// How long a stop waits for what is not durable yet.
const CLOSE_WAIT: Duration = Duration::from_secs(30);

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
        if state.is_closing {
            let message = "this node gives the log up: nothing is written to it any more";
            return Err(Error::new(ErrorKind::Halted, message));
        }
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
