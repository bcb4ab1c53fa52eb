//! What threads leave for an event loop: a connection's state is touched by its
//! own loop only, so whoever wants something of it writes to that loop.
//!
//! Mail is bounded by its senders: a reader is woken once until it looks, and
//! a subscriber is owed no more bytes than its limit (`channels.rs`).

use super::publication::Message;
use super::socket::Socket;
use crate::clients::ClientInfo;
use mio::Waker;
use parking_lot::Mutex;
use std::sync::Arc;

/// One letter to an event loop. Clients are named by their numbers; one that
/// is gone is passed over.
pub(crate) enum Mail {
    /// A new connection.
    Connection(Socket, Arc<ClientInfo>),
    /// A message for these subscribers.
    Message(Arc<Message>, Vec<u64>),
    /// A waiting client may go on.
    Resume(u64, Why),
    /// Every paused client may go on.
    EndPause,
    /// A client is to be closed.
    Close(u64),
}

/// Why a wait may be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Something has changed.
    News,
    /// The deadline has passed.
    TimeUp,
    /// CLIENT UNBLOCK, which has claimed the wait: as if the time were up.
    Unblocked,
    /// CLIENT UNBLOCK ERROR, which has claimed the wait.
    Refused,
}

/// The letters of one event loop.
pub(crate) struct Inbox {
    waker: Waker,
    letters: Mutex<Vec<Mail>>,
}

/// The inboxes of all event loops.
#[derive(Default)]
pub(crate) struct Office {
    inboxes: Vec<Arc<Inbox>>,
}

impl Inbox {
    /// An empty inbox of the loop that `waker` wakes.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            letters: Mutex::default(),
        }
    }

    /// Leaves a letter. The first one wakes the loop, which takes all.
    pub(crate) fn put(&self, mail: Mail) {
        let mut letters = self.letters.lock();
        letters.push(mail);
        if letters.len() == 1 {
            self.wake();
        }
    }

    /// Takes all letters.
    pub(crate) fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut *self.letters.lock())
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake an event loop");
        }
    }
}

impl Office {
    /// The office of these loops, by their numbers.
    pub(crate) fn new(inboxes: Vec<Arc<Inbox>>) -> Self {
        Self { inboxes }
    }

    /// Every inbox, by the number of its loop.
    pub(crate) fn inboxes(&self) -> &[Arc<Inbox>] {
        &self.inboxes
    }

    /// Writes to event loop number `event_loop`.
    pub(crate) fn send(&self, event_loop: usize, mail: Mail) {
        if let Some(inbox) = self.inboxes.get(event_loop) {
            inbox.put(mail);
        }
    }
}
