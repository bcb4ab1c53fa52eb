//! A connection that waits: for samples (TS.READ BLOCK), for followers (WAIT), for the disk
//! (WAITAOF), for the end of a pause, or for a reply that is made elsewhere. Its next commands wait
//! behind it, unread.
//!
//! A change, the deadline and CLIENT UNBLOCK may end the wait of a command: the first
//! to claim it in the connection's figures does.

use super::parked::{Beside, Parked};
use super::session::Session;
use crate::clients::Flag;
use crate::messaging::Why;
use crate::state::{Redirect, Shared};
use latewood_engine::Position;
use latewood_wire::resp::Reply;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a connection waits for, and how long.
#[derive(Debug)]
pub(super) struct Waiting {
    /// When the wait ends by itself.
    deadline: Option<Instant>,
    /// The reply is not to be sent.
    pub(super) is_muted: bool,
    pub(super) what: What,
}

/// A command that waits: for samples, or for the disk.
pub(crate) trait BlockedCommand: Debug + Send {
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

    /// Whether its reply is of a read, which may need a lease.
    fn is_read(&self) -> bool {
        false
    }

    /// The position of the log that it waits for, if it does.
    fn awaited(&self) -> Option<Position> {
        None
    }
}

/// What a connection waits for.
#[derive(Debug)]
pub(crate) enum What {
    /// The end of CLIENT PAUSE; then the command is run that was held up.
    PauseEnd,
    /// What a command waits for.
    Command(Box<dyn BlockedCommand>),
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
    pub(crate) fn wait(&mut self, shared: &Shared, deadline: Option<Instant>, what: What) {
        if what.is_blocked() {
            shared.clients.blocked.fetch_add(1, Ordering::Relaxed);
            self.info.figures.set(Flag::Blocked, true);
        }
        if matches!(what, What::Command(_)) {
            self.info.figures.let_unblock();
        }
        self.waiting = Some(Box::new(Waiting {
            deadline,
            is_muted: false,
            what,
        }));
    }

    /// Whether it waits for anything.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// When its wait ends by itself.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.as_ref()?.deadline
    }

    /// The reply that it waits for, if it does, is sent or not.
    pub(crate) fn mute_wait(&mut self, is_muted: bool) {
        if let Some(waiting) = &mut self.waiting {
            waiting.is_muted = is_muted;
        }
    }

    /// Whether it waits for the end of a pause.
    pub(crate) fn is_paused(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| matches!(waiting.what, What::PauseEnd))
    }

    /// The position of the log that must be on disk before it goes on: that of its
    /// replies, or the one that WAITAOF waits for.
    #[inline]
    pub(crate) fn awaited(&self) -> Option<Position> {
        let Some(waiting) = &self.waiting else {
            return self.writes.unsynced();
        };
        match &waiting.what {
            What::Command(command) => self.writes.unsynced().max(command.awaited()),
            _ => self.writes.unsynced(),
        }
    }

    /// Looks whether the wait is over; if so writes its reply. Whether the
    /// connection may go on.
    pub(crate) fn resume(&mut self, shared: &Shared, out: &mut Vec<u8>, why: Why) -> bool {
        let Some(mut waiting) = self.waiting.take() else {
            return false;
        };
        if !matches!(waiting.what, What::PauseEnd) {
            self.renew_permit(shared);
            if self.is_closing() {
                self.abandon(shared, &waiting);
                return true;
            }
        }
        let start = out.len();
        let is_over = match &mut waiting.what {
            What::PauseEnd => true,
            What::Command(command) => {
                // What it reads is of now, and not of when the wait began.
                let is_proven = shared.node.get().is_some() || shared.lease.get().is_some();
                if command.is_read() && is_proven {
                    self.begin_read(shared, self.slot());
                }
                command.resume(shared, self, out, why)
            }
            What::Reply(parked) => self.take_parked(shared, parked, out),
        };
        if waiting.is_muted && is_over {
            self.end_stream(shared);
            out.truncate(start);
        }
        if is_over {
            self.end_waiting(shared, &waiting);
            if matches!(&waiting.what, What::Command(command) if command.is_read()) {
                self.answer_proven(shared, out, start, Beside::READ);
            }
            self.mute_wait(waiting.is_muted);
        } else {
            self.waiting = Some(waiting);
        }
        is_over
    }

    /// Ends a wait for samples with the line that leads to where they come; whether there was one.
    pub(crate) fn end_wait_for_samples(
        &mut self,
        shared: &Shared,
        out: &mut Vec<u8>,
        to: &Redirect,
    ) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.what);
        let awaits = matches!(waiting, Some(What::Command(command)) if command.is_read());
        // CLIENT UNBLOCK may have been first; its message is on the way.
        if !awaits || !self.info.figures.claim_unblock() {
            return false;
        }
        let is_muted = self
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.is_muted);
        self.stop_waiting(shared);
        if !is_muted {
            let line = to.line(self.slot());
            shared.observe.errors.note(&line, 1);
            Reply::new(out, self.protocol()).error(line);
        }
        true
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
            What::Command(command) => {
                command.forget(shared);
                self.give_back(shared, command.held_bytes());
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
