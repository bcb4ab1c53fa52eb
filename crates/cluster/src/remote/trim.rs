//! The start of the log, which moves to the newest checkpoint.
//!
//! Tested by `tests/remote.rs` and `tests/tablet/`.

use super::{OwnerError, TabletLog};
use crate::owner::Owner;
use std::sync::Arc;
use std::thread;

impl TabletLog {
    /// Gives up what is needed no more, on a thread of its own: brokers may take long, and writes
    /// do not wait for it. One at a time; what is left out, the next checkpoint does.
    pub(super) fn trim(self: &Arc<Self>, owner: &Owner) {
        let mut state = self.state.lock();
        // Who pins it later needs nothing before this checkpoint.
        if state.pins > 0 || state.is_trimming {
            return;
        }
        let (log, trim) = (Arc::clone(self), owner.trimmer());
        let thread = thread::Builder::new().name("trim".to_owned());
        let started = thread.spawn(move || {
            let trimmed = trim.wait_for_followers().and_then(|()| trim.run());
            let mut state = log.state.lock();
            state.is_trimming = false;
            match trimmed {
                Ok(()) => {}
                Err(error @ OwnerError::NotTrimmed(_)) => {
                    tracing::warn!(%error, "the next checkpoint trims the log in Kafka");
                }
                Err(error) => state.must_end = Some(error),
            }
            drop(state);
            log.changed.notify_one();
        });
        match started {
            Ok(_) => state.is_trimming = true,
            Err(error) => tracing::warn!(%error, "cannot start a thread that trims the log"),
        }
    }
}
