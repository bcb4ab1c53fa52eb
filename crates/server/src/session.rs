//! What the server remembers of one connection between its commands.
//!
//! A session belongs to one event loop and is never shared; the few facts that
//! other connections may ask for (CLIENT LIST) live in [`ClientInfo`].

use crate::acl::{DEFAULT, Permit, User, Users};
use crate::command::registry::Spec;
use crate::shared::Shared;
use crate::stream::Stream;
use latewood_engine::{Durability, Position};
use latewood_wire::resp::Protocol;
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Close the connection once its replies are sent.
    pub(crate) closing: bool,
    /// The last command that ran: the one whose reply `stream` is.
    pub(crate) streaming: Option<&'static Spec>,
    /// What others may see.
    pub(crate) info: Arc<ClientInfo>,
}

/// What CLIENT LIST and CLIENT INFO show of a connection.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    /// Unique while the process lives, ascending.
    pub(crate) id: u64,
    /// The peer's address, or the path of the unix socket.
    pub(crate) peer: String,
    /// Our own address.
    pub(crate) local: String,
    connected: Instant,
    /// Milliseconds from `connected` to the last command.
    active_ms: AtomicU64,
    names: Mutex<Names>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    name: String,
    library: String,
    library_version: String,
    user: String,
    resp3: bool,
}

impl Session {
    /// The state a connection begins with.
    pub(crate) fn new(info: Arc<ClientInfo>, users: &Users, durability: Durability) -> Self {
        info.set_user(DEFAULT);
        Self {
            protocol: Protocol::Resp2,
            authenticated: users.is_open(),
            permit: Permit::new(users.default_user(), users),
            reply_mode: ReplyMode::On,
            reply_turned_on: false,
            durability,
            written: Position::default(),
            unsynced: None,
            stream: None,
            closing: false,
            streaming: None,
            info,
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

    /// Speaks `protocol` from the next reply on.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.info.names.lock().resp3 = protocol == Protocol::Resp3;
    }

    /// Takes over what changed of its user; ends when the user is gone.
    #[inline]
    pub(crate) fn renew_permit(&mut self, shared: &Shared) {
        if !self.permit.refresh(&shared.runtime.users) {
            self.closing = true;
        }
    }

    /// Goes on as `user`, who gave the right password.
    pub(crate) fn log_in(&mut self, user: Arc<User>, users: &Users) {
        self.info.set_user(&user.name);
        self.permit = Permit::new(user, users);
        self.authenticated = true;
    }

    /// Back to the state a connection begins with, but for its identity.
    pub(crate) fn reset(&mut self, users: &Users, durability: Durability) {
        self.set_protocol(Protocol::Resp2);
        self.log_in(users.default_user(), users);
        self.authenticated = users.is_open();
        self.reply_mode = ReplyMode::On;
        self.durability = durability;
        self.info.set_name(String::new());
    }
}

impl ClientInfo {
    /// A connection from `peer` to `local`, beginning now.
    pub(crate) fn new(id: u64, peer: String, local: String) -> Self {
        Self {
            id,
            peer,
            local,
            connected: Instant::now(),
            active_ms: AtomicU64::new(0),
            names: Mutex::default(),
        }
    }

    /// Notes that a command came in just now.
    pub(crate) fn touch(&self) {
        let elapsed = self.connected.elapsed().as_millis();
        self.active_ms.store(
            u64::try_from(elapsed).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// Whole seconds since the last command.
    pub(crate) fn idle_s(&self) -> u64 {
        let elapsed = self.connected.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        elapsed.saturating_sub(self.active_ms.load(Ordering::Relaxed)) / 1000
    }

    /// The name that CLIENT SETNAME gave; empty without one.
    pub(crate) fn name(&self) -> String {
        self.names.lock().name.clone()
    }

    /// Sets the name; empty takes it away.
    pub(crate) fn set_name(&self, name: String) {
        self.names.lock().name = name;
    }

    /// Notes who it logged in as.
    pub(crate) fn set_user(&self, user: &[u8]) {
        self.names.lock().user = String::from_utf8_lossy(user).into_owned();
    }

    /// Sets the client library's name.
    pub(crate) fn set_library(&self, library: String) {
        self.names.lock().library = library;
    }

    /// Sets the client library's version.
    pub(crate) fn set_library_version(&self, version: String) {
        self.names.lock().library_version = version;
    }

    /// Appends the line of CLIENT LIST, with its line break.
    pub(crate) fn describe(&self, text: &mut String) {
        let names = self.names.lock().clone();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "id={} addr={} laddr={} name={} age={} idle={} flags=N db=0 sub=0 psub=0 ssub=0 \
             multi=-1 watch=0 user={} redir=-1 resp={} lib-name={} lib-ver={}",
            self.id,
            self.peer,
            self.local,
            names.name,
            self.connected.elapsed().as_secs(),
            self.idle_s(),
            names.user,
            if names.resp3 { 3 } else { 2 },
            names.library,
            names.library_version,
        );
    }
}
