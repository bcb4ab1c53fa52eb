//! What the server remembers of one connection between its commands.
//!
//! A session belongs to one event loop and is never shared; the few facts that
//! other connections may ask for live in [`ClientInfo`].

use super::stream::{Part, Stream, Streamed};
use super::subscriptions::Subscriptions;
use super::transaction::{Bounds, Transaction};
use super::waiting::Waiting;
use super::watches::Watches;
use crate::acl::{DEFAULT, Permit, Refreshed, User, Users};
use crate::clients::{ClientInfo, Flag, Over};
use crate::observe::{Ran, Sender};
use crate::state::Shared;
use latewood_engine::{Durability, Position, Stage, Timer};
use latewood_wire::resp::Protocol;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Whether replies are sent, as CLIENT REPLY set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// Every command is answered.
    On,
    /// No command is answered.
    Off,
    /// The next command is not answered, then all are again.
    SkipNext,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// RESP2 or RESP3.
    pub(crate) protocol: Protocol,
    /// Whether commands other than AUTH and HELLO are served.
    pub(crate) authenticated: bool,
    /// Who it is and what that allows.
    pub(crate) permit: Permit,
    /// Whether replies are sent.
    pub(crate) reply_mode: ReplyMode,
    /// CLIENT REPLY ON was the last command: its own reply goes out.
    pub(crate) reply_turned_on: bool,
    /// What a reply to a write promises.
    pub(crate) durability: Durability,
    /// The newest write of this connection.
    pub(crate) written: Position,
    /// The newest write whose reply waits for the disk.
    pub(crate) unsynced: Option<Position>,
    /// The part of the last reply that is not written yet.
    pub(crate) stream: Option<Box<dyn Stream>>,
    /// Between MULTI and EXEC: what was queued.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// EXEC runs, within these bounds.
    pub(crate) exec: Option<Bounds>,
    /// What WATCH named.
    pub(crate) watches: Option<Box<Watches>>,
    /// What it subscribes to.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// What it waits for; its next commands wait with it.
    pub(crate) waiting: Option<Box<Waiting>>,
    /// Close the connection once its replies are sent.
    pub(crate) closing: bool,
    /// The command whose reply `stream` is.
    pub(crate) streamed: Option<Box<Streamed>>,
    /// Times the command under way, if it writes samples.
    pub(crate) timer: Timer,
    /// That of the command under way, which wrote samples, and the number of its replies that
    /// are not counted yet.
    pub(crate) reply_timer: (Timer, usize),
    /// Work of the reads of this round, in samples (`command/work.rs`).
    pub(crate) round_samples: u64,
    /// Bytes granted for what it makes the server hold between its commands.
    held_bytes: usize,
    /// What its patterns take of the time of those who publish.
    pattern_bytes: usize,
    /// What others may see.
    pub(crate) info: Arc<ClientInfo>,
}

impl Session {
    /// The state a connection begins with.
    pub(crate) fn new(info: Arc<ClientInfo>, users: &Users, durability: Durability) -> Self {
        info.set_user(DEFAULT);
        let permit = Permit::new(users.default_user(), users);
        Self::begin(info, permit, users.is_open(), durability)
    }

    /// What a command of this session sees that runs on a reader thread.
    pub(crate) fn of_reader(&self) -> Self {
        let (info, permit) = (Arc::clone(&self.info), self.permit.clone());
        Self {
            protocol: self.protocol,
            ..Self::begin(info, permit, self.authenticated, self.durability)
        }
    }

    fn begin(
        info: Arc<ClientInfo>,
        permit: Permit,
        authenticated: bool,
        durability: Durability,
    ) -> Self {
        Self {
            protocol: Protocol::Resp2,
            authenticated,
            permit,
            reply_mode: ReplyMode::On,
            reply_turned_on: false,
            durability,
            written: Position::default(),
            unsynced: None,
            stream: None,
            transaction: None,
            exec: None,
            watches: None,
            subscriptions: None,
            waiting: None,
            closing: false,
            streamed: None,
            timer: Timer::default(),
            reply_timer: Default::default(),
            round_samples: 0,
            held_bytes: 0,
            pattern_bytes: 0,
            info,
        }
    }

    /// Who sends the samples of its commands.
    pub(crate) fn sender(&self) -> Sender<'_> {
        Sender {
            client: &self.info,
            user: &self.permit.user().name,
        }
    }

    /// Notes a write at `position`; under `sync` its reply waits for the disk.
    #[inline]
    pub(crate) fn wrote(&mut self, position: Position) {
        self.written = self.written.max(position);
        if self.durability == Durability::Sync {
            self.unsynced = Some(self.written);
        }
    }

    /// Ends the timing of the command that was under way.
    #[inline]
    pub(crate) fn end_timing(&mut self) {
        self.timer = Timer::default();
        let (mut timer, replies) = std::mem::take(&mut self.reply_timer);
        timer.end_for(Stage::Reply, replies);
    }

    /// Whether EXEC runs.
    pub(crate) fn in_exec(&self) -> bool {
        self.exec.is_some()
    }

    /// Speaks `protocol` from the next reply on.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        let is_resp3 = protocol == Protocol::Resp3;
        self.info.figures.set(Flag::Resp3, is_resp3);
    }

    /// Takes over what changed of its user; ends when the user is gone, or may
    /// no longer listen to what the session subscribes to.
    #[inline]
    pub(crate) fn renew_permit(&mut self, shared: &Shared) {
        match self.permit.refresh(&shared.runtime.users) {
            Refreshed::Same => {}
            Refreshed::Changed => self.closing |= !self.may_keep_subscriptions(),
            Refreshed::Gone => self.closing = true,
        }
    }

    /// Goes on as `user`, who gave the right password.
    pub(crate) fn log_in(&mut self, user: Arc<User>, users: &Users) {
        self.info.set_user(&user.name);
        self.permit = Permit::new(user, users);
        self.authenticated = true;
    }

    /// Back to the state a connection begins with, but for its identity.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        self.leave(shared);
        let users = &shared.runtime.users;
        self.set_protocol(Protocol::Resp2);
        self.log_in(users.default_user(), users);
        self.authenticated = users.is_open();
        self.reply_mode = ReplyMode::On;
        self.durability = shared.settings.durability;
        self.info.set_name(String::new());
        self.info.figures.set(Flag::NoEvict, false);
        self.info.figures.set(Flag::NoTouch, false);
    }

    /// Takes it out of all that others hold of it: channels, watched keys,
    /// waits.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.end_transaction(shared);
        self.unwatch(shared);
        self.unsubscribe_all(shared);
        self.stop_waiting(shared);
        self.end_stream(shared);
    }

    /// Takes memory for what the server is to hold for it.
    ///
    /// # Errors
    /// [`Over`]: the connection, or all of them, hold too much.
    pub(crate) fn hold(&mut self, shared: &Shared, bytes: usize) -> Result<(), Over> {
        let share_bytes = shared.db.reply_bytes_max();
        let held = &shared.clients.held;
        held.grant(&mut self.held_bytes, bytes, share_bytes)
    }

    /// Takes a share of the publishers' time, for a pattern of `bytes` bytes.
    ///
    /// # Errors
    /// [`Over`]: the connection, or all of them, have too many patterns.
    pub(crate) fn hold_pattern(&mut self, shared: &Shared, bytes: usize) -> Result<(), Over> {
        let held = &shared.clients.patterns;
        held.grant(&mut self.pattern_bytes, bytes, usize::MAX)
    }

    /// Gives back what [`Session::hold_pattern`] granted.
    pub(crate) fn give_back_pattern(&mut self, shared: &Shared, bytes: usize) {
        let held = &shared.clients.patterns;
        held.give_back(&mut self.pattern_bytes, bytes);
    }

    /// Gives back some of what [`Session::hold`] granted.
    pub(crate) fn give_back(&mut self, shared: &Shared, bytes: usize) {
        shared.clients.held.give_back(&mut self.held_bytes, bytes);
    }

    pub(crate) fn begin_transaction(&mut self) {
        self.transaction = Some(Box::default());
        self.show_transaction();
    }

    pub(crate) fn end_transaction(&mut self, shared: &Shared) -> Option<Box<Transaction>> {
        let transaction = self.transaction.take();
        if let Some(transaction) = &transaction {
            self.give_back(shared, transaction.held_bytes);
        }
        self.show_transaction();
        transaction
    }

    /// Makes EXEC refuse the transaction, if there is one.
    pub(crate) fn fail_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.has_failed = true;
        }
    }

    pub(crate) fn transaction_writes(&self) -> bool {
        let transaction = self.transaction.as_ref();
        transaction.is_some_and(|transaction| transaction.has_write)
    }

    /// Shows CLIENT LIST what is queued.
    pub(crate) fn show_transaction(&self) {
        let (figures, transaction) = (&self.info.figures, self.transaction.as_ref());
        let queued =
            transaction.map_or(-1, |each| i64::try_from(each.commands).unwrap_or(i64::MAX));
        figures.queued.store(queued, Ordering::Relaxed);
        let bytes = transaction.map_or(0, |transaction| transaction.bytes.capacity());
        figures.queued_bytes.store(bytes, Ordering::Relaxed);
        figures.set(Flag::Transaction, transaction.is_some());
    }

    /// Writes the next part of the long reply, if there is one; whether more
    /// is to come.
    pub(crate) fn continue_stream(&mut self, shared: &Shared, out: &mut Vec<u8>) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let begun = Instant::now();
        let part = Part::new(shared, self.protocol, None);
        let has_more = stream.more(part, out);
        if let Some(streamed) = &mut self.streamed {
            streamed.took += begun.elapsed();
        }
        if !has_more {
            self.end_stream(shared);
        }
        has_more
    }

    /// Ends the long reply, if there is one, and notes the time it took.
    pub(crate) fn end_stream(&mut self, shared: &Shared) {
        self.stream = None;
        if let Some(streamed) = self.streamed.take() {
            let Streamed {
                command,
                words,
                took,
            } = *streamed;
            let observe = &shared.observe;
            let ran = Ran {
                took,
                failed: false,
            };
            observe.ran(command, || words, &self.info, ran);
        }
    }
}
