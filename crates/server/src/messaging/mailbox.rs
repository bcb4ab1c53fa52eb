//! Mailboxes of the event loops. The state of a connection is touched by its own
//! loop only; other threads leave messages for that loop.
//!
//! Senders bound a mailbox: a reader is woken once until it looks, and a
//! subscriber is owed no more bytes than its limit (`channels.rs`).

use super::publication::Publication;
use super::socket::Socket;
use crate::clients::ClientInfo;
use mio::Waker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One message to an event loop. Clients are named by their ids; a client that
/// is gone is ignored.
pub(crate) enum Message {
    Connection(Socket, Arc<ClientInfo>),
    /// A publication for these subscribers.
    Publish(Arc<Publication>, Vec<u64>),
    /// A waiting client may go on.
    Resume(u64, Why),
    /// Every paused client may go on.
    EndPause,
    /// A client is to be closed.
    Close(u64),
    /// More of the log is on disk, or it failed.
    Durable,
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

/// The messages of one event loop.
pub(crate) struct Mailbox {
    waker: Waker,
    /// Some of the loop's clients wait for the disk.
    awaits_durable: AtomicBool,
    messages: Mutex<Vec<Message>>,
}

/// The mailboxes of all event loops, by number.
#[derive(Default)]
pub(crate) struct Mailboxes {
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Mailbox {
    /// An empty mailbox of the loop that `waker` wakes.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            awaits_durable: AtomicBool::new(false),
            messages: Mutex::default(),
        }
    }

    /// Leaves a message. The first one wakes the loop, which takes all.
    pub(crate) fn put(&self, message: Message) {
        let mut messages = self.messages.lock();
        messages.push(message);
        if messages.len() == 1 {
            self.wake();
        }
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }

    /// Has the loop told, once, that more of the log is on disk. What is on disk when
    /// this returns may have been told before: the caller looks.
    pub(crate) fn await_durable(&self) {
        // Two swaps meet in one order: either the other one finds this, or this one
        // acquires what was on disk before the other.
        self.awaits_durable.swap(true, Ordering::AcqRel);
    }

    /// Tells the loop that more of the log is on disk, if it waits for that.
    fn tell_durable(&self) {
        if self.awaits_durable.swap(false, Ordering::AcqRel) {
            self.put(Message::Durable);
        }
    }

    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake an event loop");
        }
    }
}

impl Mailboxes {
    /// The mailboxes of these loops, by number.
    pub(crate) fn new(mailboxes: Vec<Arc<Mailbox>>) -> Self {
        Self { mailboxes }
    }

    /// Every mailbox, by the number of its loop.
    pub(crate) fn mailboxes(&self) -> &[Arc<Mailbox>] {
        &self.mailboxes
    }

    /// Tells the loops that wait for it that more of the log is on disk, or that it
    /// failed.
    pub(crate) fn tell_durable(&self) {
        self.mailboxes
            .iter()
            .for_each(|mailbox| mailbox.tell_durable());
    }

    /// Sends to event loop number `event_loop`.
    pub(crate) fn send(&self, event_loop: usize, message: Message) {
        if let Some(mailbox) = self.mailboxes.get(event_loop) {
            mailbox.put(message);
        }
    }
}
