//! What the server remembers of one connection between its commands.
//!
//! A session belongs to one event loop and is never shared; the few facts that
//! other connections may ask for live in [`ClientInfo`]. What belongs together is a struct with
//! invariants of its own, in the modules beside this one.

use super::leased::Reading;
use super::replies::Replies;
use super::stream::{LongReply, Part, Streamed};
use super::subscriptions::Subscriptions;
use super::timing::Timing;
use super::transaction::{Aim, Bounds, Multi, Transaction};
use super::waiting::Waiting;
use super::watches::Watches;
use super::writes::Writes;
use crate::acl::{DEFAULT, Permit, Refreshed, User, Users};
use crate::clients::{ClientInfo, Flag, Over};
use crate::observe::{Ran, Sender};
use crate::state::Shared;
use latewood_engine::{Durability, Position};
use latewood_model::Compatibility;
use latewood_wire::resp::Protocol;
use std::sync::Arc;

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// What others may see.
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) replies: Replies,
    pub(crate) writes: Writes,
    pub(crate) timing: Timing,
    /// The version of RedisTimeSeries that it chose; without one it is the server's.
    pub(crate) compatibility: Option<Compatibility>,
    /// The part of the last reply that is not written yet.
    pub(crate) long_reply: LongReply,
    login: Login,
    /// RESP2 or RESP3, as `info` shows it.
    protocol: Protocol,
    /// The connection closes once its replies are sent. Never taken back.
    is_closing: bool,
    /// Work of the reads of this round, in samples (`command/work.rs`).
    round_samples: u64,
    held: Held,
    multi: Multi,
    /// How often the next command was held back for rows.
    pub(super) rounds: u8,
    /// As what the last command began that may read.
    pub(super) reading: Reading,
    /// What WATCH named.
    pub(super) watches: Option<Box<Watches>>,
    /// What it subscribes to.
    pub(super) subscriptions: Option<Box<Subscriptions>>,
    /// What it waits for; its next commands wait with it.
    pub(super) waiting: Option<Box<Waiting>>,
}

/// Who it is.
#[derive(Clone, Debug)]
struct Login {
    /// Whether commands other than AUTH and HELLO are served.
    is_authenticated: bool,
    /// What that allows.
    permit: Permit,
}

/// What was granted for what it makes the server hold, and not given back.
#[derive(Debug, Default)]
struct Held {
    /// Bytes between its commands.
    bytes: usize,
    /// What its patterns take of the time of those who publish.
    pattern_bytes: usize,
}

impl Session {
    /// The state a connection begins with.
    pub(crate) fn new(info: Arc<ClientInfo>, users: &Users, durability: Durability) -> Self {
        info.set_user(DEFAULT);
        let login = Login {
            is_authenticated: users.is_open(),
            permit: Permit::new(users.default_user(), users),
        };
        Self::begin(info, login, durability)
    }

    /// What a command of this session sees that runs on a reader thread.
    pub(crate) fn of_reader(&self) -> Self {
        let (info, login) = (Arc::clone(&self.info), self.login.clone());
        Self {
            protocol: self.protocol,
            compatibility: self.compatibility,
            ..Self::begin(info, login, self.writes.durability())
        }
    }

    fn begin(info: Arc<ClientInfo>, login: Login, durability: Durability) -> Self {
        Self {
            info,
            replies: Replies::default(),
            writes: Writes::new(durability),
            timing: Timing::default(),
            compatibility: None,
            long_reply: LongReply::default(),
            login,
            protocol: Protocol::Resp2,
            is_closing: false,
            round_samples: 0,
            held: Held::default(),
            multi: Multi::default(),
            rounds: 0,
            reading: Reading::default(),
            watches: None,
            subscriptions: None,
            waiting: None,
        }
    }

    /// RESP2 or RESP3.
    #[inline]
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Who it is.
    #[inline]
    pub(crate) fn user(&self) -> &User {
        self.login.permit.user()
    }

    /// Whether commands other than AUTH and HELLO are served.
    #[inline]
    pub(crate) fn is_authenticated(&self) -> bool {
        self.login.is_authenticated
    }

    /// Whether the connection closes once its replies are sent.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Closes the connection once its replies are sent.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
    }

    /// A round of its commands begins.
    #[inline]
    pub(crate) fn begin_round(&mut self, shared: &Shared) {
        self.round_samples = 0;
        self.renew_permit(shared);
    }

    /// Notes the work of a read, in samples.
    pub(crate) fn note_work(&mut self, samples: u64) {
        self.round_samples = self.round_samples.saturating_add(samples);
    }

    /// Work of the reads of this round, in samples.
    #[inline]
    pub(crate) fn round_samples(&self) -> u64 {
        self.round_samples
    }

    /// Who sends the samples of its commands.
    pub(crate) fn sender(&self) -> Sender<'_> {
        Sender {
            client: &self.info,
            user: &self.user().name,
        }
    }

    /// Notes a write at `position`; under `sync` its reply waits for the disk.
    #[inline]
    pub(crate) fn wrote(&mut self, position: Position) {
        self.writes.note(position);
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
        let is_allowed = match self.login.permit.refresh(&shared.runtime.users) {
            Refreshed::Same => true,
            Refreshed::Changed => self.may_keep_subscriptions(),
            Refreshed::Gone => false,
        };
        if !is_allowed {
            self.close();
        }
    }

    /// Goes on as `user`, who gave the right password.
    pub(crate) fn log_in(&mut self, user: Arc<User>, users: &Users) {
        self.info.set_user(&user.name);
        self.login = Login {
            is_authenticated: true,
            permit: Permit::new(user, users),
        };
    }

    /// Back to the state a connection begins with, but for its identity.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        self.leave(shared);
        let users = &shared.runtime.users;
        self.set_protocol(Protocol::Resp2);
        self.log_in(users.default_user(), users);
        self.login.is_authenticated = users.is_open();
        self.replies = Replies::default();
        self.compatibility = None;
        self.writes.set_durability(shared.settings.durability);
        self.info.set_name(String::new());
        self.info.figures.set(Flag::NoEvict, false);
        self.info.figures.set(Flag::NoTouch, false);
        self.accept_followers(self.info.is_reader);
    }

    /// A command begins that may read, about a key of `slot`. Only where there are other nodes, or
    /// reads need a lease.
    pub(crate) fn begin_read(&mut self, shared: &Shared, slot: u16) {
        self.reading = Reading::new(shared, self.accepts_followers(), slot);
    }

    /// Of the first key of the command.
    pub(crate) fn slot(&self) -> u16 {
        self.reading.slot
    }

    /// Accepts answers of followers from the next command on, or those of the owner alone.
    pub(crate) fn accept_followers(&self, does_accept: bool) {
        self.info.figures.set(Flag::ReadOnly, does_accept);
    }

    /// Whether it accepts answers of followers.
    pub(crate) fn accepts_followers(&self) -> bool {
        self.info.figures.has(Flag::ReadOnly)
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
        held.grant(&mut self.held.bytes, bytes, share_bytes)
    }

    /// Takes a share of the publishers' time, for a pattern of `bytes` bytes.
    ///
    /// # Errors
    /// [`Over`]: the connection, or all of them, have too many patterns.
    pub(crate) fn hold_pattern(&mut self, shared: &Shared, bytes: usize) -> Result<(), Over> {
        let held = &shared.clients.patterns;
        held.grant(&mut self.held.pattern_bytes, bytes, usize::MAX)
    }

    /// Gives back what [`Session::hold_pattern`] granted.
    pub(crate) fn give_back_pattern(&mut self, shared: &Shared, bytes: usize) {
        let held = &shared.clients.patterns;
        held.give_back(&mut self.held.pattern_bytes, bytes);
    }

    /// Gives back some of what [`Session::hold`] granted.
    pub(crate) fn give_back(&mut self, shared: &Shared, bytes: usize) {
        shared.clients.held.give_back(&mut self.held.bytes, bytes);
    }

    /// Whether commands are queued.
    #[inline]
    pub(crate) fn in_multi(&self) -> bool {
        self.multi.is_open()
    }

    /// Whether EXEC runs.
    pub(crate) fn in_exec(&self) -> bool {
        self.multi.exec.is_some()
    }

    /// What bounds the EXEC that runs.
    pub(crate) fn exec_bounds(&self) -> Option<Bounds> {
        self.multi.exec
    }

    /// EXEC begins, within these bounds, or has ended.
    pub(crate) fn set_exec(&mut self, bounds: Option<Bounds>) {
        self.multi.exec = bounds;
    }

    pub(crate) fn begin_transaction(&mut self) {
        self.multi.begin(&self.info);
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Over`]: too much is held.
    pub(crate) fn queue(
        &mut self,
        shared: &Shared,
        words: &[&[u8]],
        is_write: bool,
        aim: Aim,
    ) -> Result<(), Over> {
        // Twice: the queue grows by doubling.
        let held_bytes = 2 * words.iter().map(|word| word.len() + 16).sum::<usize>();
        self.hold(shared, held_bytes)?;
        self.multi.add(&self.info, words, held_bytes, is_write, aim);
        Ok(())
    }

    pub(crate) fn end_transaction(&mut self, shared: &Shared) -> Option<Box<Transaction>> {
        let (transaction, held_bytes) = self.multi.end(&self.info)?;
        self.give_back(shared, held_bytes);
        Some(transaction)
    }

    /// Makes EXEC refuse the transaction, if there is one.
    pub(crate) fn fail_transaction(&mut self) {
        self.multi.fail();
    }

    /// What the queued commands need of this node.
    pub(crate) fn transaction_aim(&self) -> Aim {
        self.multi.aim()
    }

    /// The queued commands, encoded one behind the other; none where EXEC will run none.
    pub(crate) fn queued(&self) -> &[u8] {
        self.multi.queued()
    }

    pub(crate) fn transaction_writes(&self) -> bool {
        self.multi.writes()
    }

    /// Writes the next part of the long reply, if there is one; whether more
    /// is to come.
    pub(crate) fn continue_stream(&mut self, shared: &Shared, out: &mut Vec<u8>) -> bool {
        if !self.long_reply.has_more() {
            return false;
        }
        let part = Part::new(shared, self.protocol, None);
        let has_more = self.long_reply.more(part, out);
        if !has_more {
            self.end_stream(shared);
        }
        has_more
    }

    /// Ends the long reply, if there is one, and notes the time it took.
    pub(crate) fn end_stream(&mut self, shared: &Shared) {
        if let Some(streamed) = self.long_reply.end() {
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
