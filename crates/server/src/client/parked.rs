//! A parked reply: one that another thread makes, or waits for. Its connection holds
//! its place in the order of replies: its next commands wait, unread.
//!
//! The reply is put down here and the event loop is told with a message that the wait
//! may be over. A connection that ends meanwhile, or whose user is removed, drops the
//! reply and cancels the work. A read that is done may need a proof (`leased.rs`), and SAVE
//! waits for its checkpoint: neither takes a reader thread meanwhile.

use super::leased::{Proof, Reading, later};
use super::session::Session;
use super::stream::{LongReply, Part};
use super::waiting::What;
use crate::clients::ClientInfo;
use crate::messaging::{Channels, Message, Why};
use crate::state::Shared;
use crate::state::readers::{Ticket, Work};
use futures_util::future::BoxFuture;
use latewood_engine::io::waiting::together;
use latewood_wire::resp::{Protocol, Reply};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// How soon a wait ends whose client is gone.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What a client is told whose read panicked.
const PANICKED: &str = "ERR internal server error";
/// What a client is told that sends no more while it waits: it may be gone.
const LEFT: &str = "ERR the read was ended because the client closed its sending side";

/// What a reader thread makes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// The client has got some of the reply.
    pub(crate) is_begun: bool,
    /// It does not wait for long ones.
    pub(crate) is_brief: bool,
    /// It changes data: it goes on though its client sends no more.
    pub(crate) is_write: bool,
    /// It reads data: the reply may need a proof.
    pub(crate) is_read: bool,
    /// There is no reply: the command is run from its beginning then.
    pub(crate) is_before: bool,
}

impl Beside {
    /// A read.
    pub(crate) const READ: Self = Self {
        is_begun: false,
        is_brief: false,
        is_write: false,
        is_read: true,
        is_before: false,
    };
    /// What a command needs before it is run.
    pub(crate) const BEFORE: Self = Self {
        is_begun: false,
        is_brief: true,
        is_write: false,
        is_read: false,
        is_before: true,
    };
    /// The rest of a reply.
    pub(crate) const BEGUN: Self = Self {
        is_begun: true,
        ..Self::READ
    };
}

/// A reply on its way to its connection.
#[derive(Debug)]
pub(crate) struct Parked {
    arrived: Mutex<Option<Arrived>>,
    /// Nobody waits for it any more.
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) beside: Beside,
    /// What [`Session::hold`] granted for the command.
    pub(super) held_bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// The reply, or the next part of it.
    pub(crate) bytes: Vec<u8>,
    /// The rest of it.
    pub(crate) rest: LongReply,
    /// The rest cannot be made: the connection must end.
    pub(crate) is_broken: bool,
    /// It may not be answered: the line of the error that takes its place.
    pub(crate) refused: Option<String>,
}

impl Parked {
    fn new(beside: Beside, held_bytes: usize) -> Self {
        Self {
            arrived: Mutex::default(),
            cancelled: Arc::default(),
            beside,
            held_bytes,
        }
    }

    /// Puts the reply down for `client` once `proof` is there, or that there is none. Then a reply
    /// of which the client has a part is broken, and so is one to a transaction that changed data,
    /// which the client would send again.
    fn arrive_proven(
        self: Arc<Self>,
        shared: &Shared,
        (proof, reading): (Proof, Reading),
        client: Arc<ClientInfo>,
        arrived: Arrived,
    ) {
        let events = Arc::clone(&shared.events);
        let reply = (arrived.bytes.len(), reading.slot);
        proof.settle(shared, reply, move |proven| {
            if self.cancelled.load(Ordering::Relaxed) {
                return;
            }
            let arrived = match proven {
                Ok(()) => arrived,
                Err(line) => Arrived {
                    is_broken: self.beside.is_begun || self.beside.is_write,
                    refused: Some(line),
                    ..Arrived::default()
                },
            };
            self.arrive(&events.channels, &client, arrived);
        });
    }

    /// Puts the reply down for `client`.
    pub(crate) fn arrive(&self, channels: &Channels, client: &ClientInfo, arrived: Arrived) {
        *self.arrived.lock() = Some(arrived);
        let message = Message::Resume(client.id, Why::News);
        channels.mailboxes().send(client.event_loop, message);
    }
}

impl Session {
    /// Has `work` make the reply, or the rest of one that is begun, on a reader thread;
    /// its flag says that nobody wants it any more. At the end of the wait `held_bytes`
    /// are given back.
    pub(crate) fn read_beside(
        &mut self,
        shared: &Shared,
        beside: Beside,
        held_bytes: usize,
        work: impl FnOnce(&Shared, &AtomicBool) -> Arrived + Send + 'static,
    ) {
        let (ticket, work) = self.park(shared, beside, held_bytes, work);
        shared.readers.queue(ticket, work);
    }

    /// The same once `wait` is over, which takes no reader thread.
    pub(crate) fn read_beside_after(
        &mut self,
        shared: &Shared,
        mut wait: BoxFuture<'static, ()>,
        beside: Beside,
        held_bytes: usize,
        work: impl FnOnce(&Shared, &AtomicBool) -> Arrived + Send + 'static,
    ) {
        let (ticket, work) = self.park(shared, beside, held_bytes, work);
        let readers = Arc::clone(&shared.readers);
        later(async move {
            loop {
                let is_over = timeout(LOOK_EVERY, &mut wait).await.is_ok();
                if ticket.cancelled.load(Ordering::Relaxed) {
                    return;
                }
                if is_over {
                    return readers.queue(ticket, work);
                }
            }
        });
    }

    fn park(
        &mut self,
        shared: &Shared,
        beside: Beside,
        held_bytes: usize,
        work: impl FnOnce(&Shared, &AtomicBool) -> Arrived + Send + 'static,
    ) -> (Ticket, Work) {
        let parked = Arc::new(Parked::new(beside, held_bytes));
        let (info, protocol) = (Arc::clone(&self.info), self.protocol());
        let (user, reading) = (self.user().identity, self.reading);
        let cancelled = Arc::clone(&parked.cancelled);
        self.wait(shared, None, What::Reply(Arc::clone(&parked)));
        let run = move |shared: &Shared| {
            let _task = together();
            let made = catch_unwind(AssertUnwindSafe(|| work(shared, &parked.cancelled)));
            let arrived = made.unwrap_or_else(|_| panicked(shared, protocol, &parked));
            // What was cancelled may be half a reply.
            if parked.cancelled.load(Ordering::Relaxed) {
                return;
            }
            if beside.is_read {
                let proof = Proof::now(shared, reading);
                parked.arrive_proven(shared, (proof, reading), info, arrived);
            } else {
                parked.arrive(shared.channels(), &info, arrived);
            }
        };
        let ticket = Ticket {
            user,
            is_brief: beside.is_brief,
            cancelled,
        };
        (ticket, Box::new(run))
    }

    /// Has the next part of the long reply made on a reader thread.
    pub(crate) fn continue_beside(&mut self, shared: &Shared) {
        let (mut rest, protocol) = (std::mem::take(&mut self.long_reply), self.protocol());
        self.read_beside(shared, Beside::BEGUN, 0, move |shared, cancelled| {
            let mut bytes = Vec::new();
            rest.more(Part::new(shared, protocol, Some(cancelled)), &mut bytes);
            Arrived {
                bytes,
                rest,
                ..Arrived::default()
            }
        });
    }

    /// Parks what a read wrote to `out` from `start` on, with the rest of its reply, unless it may
    /// go out as it is.
    pub(crate) fn answer_proven(
        &mut self,
        shared: &Shared,
        out: &mut Vec<u8>,
        start: usize,
        beside: Beside,
    ) {
        let is_elsewhere =
            self.waiting.is_some() || out.len() == start && !self.long_reply.has_more();
        if is_elsewhere {
            return;
        }
        let proof = Proof::now(shared, self.reading);
        if proof.is_given() {
            return;
        }
        let arrived = Arrived {
            bytes: out.split_off(start),
            rest: std::mem::take(&mut self.long_reply),
            ..Arrived::default()
        };
        let parked = Arc::new(Parked::new(beside, 0));
        self.wait(shared, None, What::Reply(Arc::clone(&parked)));
        let client = Arc::clone(&self.info);
        parked.arrive_proven(shared, (proof, self.reading), client, arrived);
    }

    /// Writes what has arrived; whether it was there.
    pub(super) fn take_parked(
        &mut self,
        shared: &Shared,
        parked: &Parked,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(mut arrived) = parked.arrived.lock().take() else {
            return false;
        };
        if let Some(text) = arrived.refused.filter(|_| !arrived.is_broken) {
            shared.observe.errors.note(&text, 1);
            Reply::new(&mut arrived.bytes, self.protocol()).error(text);
        }
        if out.is_empty() {
            *out = arrived.bytes;
        } else {
            out.append(&mut arrived.bytes);
        }
        if arrived.is_broken {
            self.close();
        }
        self.long_reply = arrived.rest;
        if !self.long_reply.has_more() {
            self.end_stream(shared);
        }
        true
    }

    /// Ends the wait for a reply that has not begun, of a client that sends no more: an
    /// error takes its place, so that later commands still run. Returns whether there
    /// was such a wait.
    pub(crate) fn end_parked(&mut self, shared: &Shared, out: &mut Vec<u8>) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.what);
        let awaits_reply = matches!(waiting, Some(What::Reply(parked)) if {
            let Beside { is_begun, is_write, is_before, .. } = parked.beside;
            !is_begun && !is_write && !is_before
        });
        if !awaits_reply {
            return false;
        }
        if self.resume(shared, out, Why::News) {
            return true;
        }
        let is_muted = self
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.is_muted);
        self.stop_waiting(shared);
        if !is_muted {
            shared.observe.errors.note(LEFT, 1);
            Reply::new(out, self.protocol()).error(LEFT);
        }
        true
    }

    /// Whether a command that changes data is under way on a reader thread, or is run in a moment.
    pub(crate) fn awaits_write(&self) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.what);
        matches!(waiting, Some(What::Reply(parked)) if parked.beside.is_write || parked.beside.is_before)
    }

    /// Whether the client has a part of a reply, and waits for the rest.
    pub(crate) fn is_amid_reply(&self) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.what);
        let is_parked = matches!(waiting, Some(What::Reply(parked)) if parked.beside.is_begun);
        self.long_reply.has_more() || is_parked
    }
}

/// What arrives in the place of a reply whose making panicked. Of a reply that has
/// begun nothing valid can follow, and a command that was not run would have two.
#[cold]
fn panicked(shared: &Shared, protocol: Protocol, parked: &Parked) -> Arrived {
    tracing::error!("a long read panicked");
    let mut arrived = Arrived {
        is_broken: parked.beside.is_begun || parked.beside.is_before,
        ..Arrived::default()
    };
    if !arrived.is_broken {
        shared.observe.errors.note(PANICKED, 1);
        Reply::new(&mut arrived.bytes, protocol).error(PANICKED);
    }
    arrived
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientInfo;
    use crate::options::testing;
    use latewood_engine::Durability;

    /// What becomes of a session's reply whose making panics.
    fn after_a_panic(is_begun: bool) -> (Session, String) {
        let shared = testing::shared();
        let info = Arc::new(ClientInfo::new(1, String::new(), String::new()));
        let mut session = Session::new(info, &shared.runtime.users, Durability::Interval);
        let beside = Beside {
            is_begun,
            ..Beside::default()
        };
        session.read_beside(&shared, beside, 0, |_, _| panic!("as a bug would"));
        let mut out = Vec::new();
        assert!(
            !session.resume(&shared, &mut out, Why::News),
            "not there yet"
        );
        std::thread::scope(|threads| {
            let reader = threads.spawn(|| shared.readers.run(&shared));
            while !session.resume(&shared, &mut out, Why::News) {
                std::thread::yield_now();
            }
            shared.readers.stop();
            reader.join().unwrap();
        });
        (session, String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_waits_for_something_else_takes_no_reader_thread_before() {
        let shared = testing::shared();
        let info = Arc::new(ClientInfo::new(1, String::new(), String::new()));
        let mut session = Session::new(info, &shared.runtime.users, Durability::Interval);
        let (come, comes) = tokio::sync::oneshot::channel::<()>();
        let wait = Box::pin(async { comes.await.unwrap() });
        let beside = Beside::default();
        session.read_beside_after(&shared, wait, beside, 0, |_, _| Arrived {
            bytes: b"+OK\r\n".to_vec(),
            ..Arrived::default()
        });
        let mut out = Vec::new();
        std::thread::scope(|threads| {
            let reader = threads.spawn(|| shared.readers.run(&shared));
            assert_eq!(shared.readers.counts(), (0, 0));
            assert!(!session.resume(&shared, &mut out, Why::News));
            come.send(()).unwrap();
            while !session.resume(&shared, &mut out, Why::News) {
                std::thread::yield_now();
            }
            shared.readers.stop();
            reader.join().unwrap();
        });
        assert_eq!(out, b"+OK\r\n");
    }

    #[test]
    fn a_panic_becomes_an_error_or_ends_a_reply_that_has_begun() {
        let (session, reply) = after_a_panic(false);
        assert_eq!(reply, "-ERR internal server error\r\n");
        assert!(!session.is_closing() && !session.is_waiting());
        let (session, reply) = after_a_panic(true);
        assert_eq!(reply, "");
        assert!(session.is_closing());
    }
}
