//! A connection that waits: for samples (TS.READ BLOCK), for the end of a pause, or
//! for a reply that is made elsewhere. Its next commands wait behind it, unread.
//!
//! A change, the deadline and CLIENT UNBLOCK may end a wait for samples: the first
//! to claim it in the connection's figures does.

use super::parked::Parked;
use super::session::Session;
use crate::clients::Flag;
use crate::messaging::Why;
use crate::state::Shared;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a connection waits for, and how long.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// When the wait ends by itself.
    pub(crate) deadline: Option<Instant>,
    /// The reply is not to be sent.
    pub(crate) is_muted: bool,
    /// What it waits for.
    pub(crate) what: What,
}

/// A command that waits for samples.
pub(crate) trait Reader: Debug + Send {
    /// Looks again; writes the reply if the wait is over, and says so.
    /// Where the reply takes long, the session waits for that next.
    fn resume(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        out: &mut Vec<u8>,
        why: Why,
    ) -> bool;

    /// Ends listening.
    fn forget(&self, shared: &Shared);

    /// The memory it takes, which [`Session::hold`] granted before the wait.
    fn held_bytes(&self) -> usize;
}

/// What a connection waits for.
#[derive(Debug)]
pub(crate) enum What {
    /// The end of CLIENT PAUSE; then the command is run that was held up.
    PauseEnd,
    /// Samples of a series.
    Samples(Box<dyn Reader>),
    /// A reply that is made elsewhere.
    Reply(Arc<Parked>),
}

impl What {
    /// Whether it waits for others, as CLIENT LIST and INFO show it: not where its
    /// own command runs.
    fn is_blocked(&self) -> bool {
        !matches!(self, Self::Reply(_))
    }
}

impl Session {
    /// Begins to wait.
    pub(crate) fn wait(&mut self, shared: &Shared, deadline: Option<Instant>, what: What) {
        if what.is_blocked() {
            shared.clients.blocked.fetch_add(1, Ordering::Relaxed);
            self.info.figures.set(Flag::Blocked, true);
        }
        if matches!(what, What::Samples(_)) {
            self.info.figures.let_unblock();
        }
        self.waiting = Some(Box::new(Waiting {
            deadline,
            is_muted: false,
            what,
        }));
    }

    /// Whether it waits for the end of a pause.
    pub(crate) fn is_paused(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| matches!(waiting.what, What::PauseEnd))
    }

    /// Looks whether the wait is over; if so writes its reply. Whether the
    /// connection may go on.
    pub(crate) fn resume(&mut self, shared: &Shared, out: &mut Vec<u8>, why: Why) -> bool {
        let Some(mut waiting) = self.waiting.take() else {
            return false;
        };
        if !matches!(waiting.what, What::PauseEnd) {
            self.renew_permit(shared);
            if self.closing {
                self.abandon(shared, &waiting);
                return true;
            }
        }
        let start = out.len();
        let is_over = match &mut waiting.what {
            What::PauseEnd => true,
            What::Samples(reader) => reader.resume(shared, self, out, why),
            What::Reply(parked) => self.take_parked(shared, parked, out),
        };
        if waiting.is_muted && is_over {
            self.end_stream(shared);
            out.truncate(start);
        }
        if is_over {
            self.end_waiting(shared, &waiting);
            if let Some(next) = &mut self.waiting {
                next.is_muted = waiting.is_muted;
            }
        } else {
            self.waiting = Some(waiting);
        }
        is_over
    }

    /// Ends a wait without a reply, because the connection ends.
    pub(crate) fn stop_waiting(&mut self, shared: &Shared) {
        if let Some(waiting) = self.waiting.take() {
            self.abandon(shared, &waiting);
        }
    }

    fn abandon(&mut self, shared: &Shared, waiting: &Waiting) {
        if let What::Reply(parked) = &waiting.what {
            shared.readers.cancel(&parked.cancelled);
        }
        self.end_waiting(shared, waiting);
    }

    fn end_waiting(&mut self, shared: &Shared, waiting: &Waiting) {
        match &waiting.what {
            What::Samples(reader) => {
                reader.forget(shared);
                self.give_back(shared, reader.held_bytes());
            }
            What::Reply(parked) => self.give_back(shared, parked.held_bytes),
            What::PauseEnd => {}
        }
        if !waiting.what.is_blocked() {
            return;
        }
        shared.clients.blocked.fetch_sub(1, Ordering::Relaxed);
        self.info.figures.set(Flag::Blocked, false);
    }
}
