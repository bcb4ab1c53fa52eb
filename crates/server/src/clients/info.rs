//! What other connections see of a connection: CLIENT LIST, CLIENT KILL and
//! publishers use it.
//!
//! Names change rarely and are locked; figures are atomics that the
//! connection's own loop sets once per round, so that describing 10,000
//! clients disturbs none of them.

use super::figures::{Figures, Flag};
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What CLIENT LIST and CLIENT INFO show of a connection.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    /// Unique while the process lives, ascending.
    pub(crate) id: u64,
    /// The number of its event loop.
    pub(crate) event_loop: usize,
    /// The peer's address, or the path of the unix socket.
    pub(crate) peer: String,
    /// Our own address.
    pub(crate) local: String,
    /// The file descriptor; -1 if there is none.
    pub(crate) descriptor: i32,
    /// It came to a port of `--read-listen`.
    pub(crate) is_reader: bool,
    /// What changes with every command.
    pub(crate) figures: Figures,
    connected: Instant,
    /// Milliseconds from `connected` to the last command.
    active_ms: AtomicU64,
    names: Mutex<Names>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    name: String,
    user: String,
    library: String,
    library_version: String,
    command: CommandName,
}

/// The name of a command, and of the subcommand.
type CommandName = (&'static str, Option<&'static str>);

impl ClientInfo {
    /// A connection from `peer` to `local`, beginning now.
    pub(crate) fn new(id: u64, peer: String, local: String) -> Self {
        Self {
            id,
            event_loop: 0,
            peer,
            local,
            descriptor: -1,
            is_reader: false,
            figures: Figures::default(),
            connected: Instant::now(),
            active_ms: AtomicU64::new(0),
            names: Mutex::default(),
        }
    }

    /// The peer's address without its port, or the path of the unix socket.
    pub(crate) fn address(&self) -> &str {
        let ends = self.peer.rsplit_once(':');
        let address = ends.filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let address = address.map_or(&*self.peer, |(address, _)| address);
        address.trim_start_matches('[').trim_end_matches(']')
    }

    /// Notes the number of its event loop, its socket's descriptor and whether
    /// that is a unix socket.
    pub(crate) fn served_by(mut self, event_loop: usize, descriptor: i32, is_unix: bool) -> Self {
        self.event_loop = event_loop;
        self.descriptor = descriptor;
        self.figures.set(Flag::Unix, is_unix);
        self
    }

    /// Notes whether it came to a port where READONLY is implied.
    pub(crate) fn at_reader_port(mut self, is_reader: bool) -> Self {
        self.is_reader = is_reader;
        self.figures.set(Flag::ReadOnly, is_reader);
        self
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

    /// Whole seconds since it connected.
    pub(crate) fn age_s(&self) -> u64 {
        self.connected.elapsed().as_secs()
    }

    /// The name that CLIENT SETNAME gave; empty without one.
    pub(crate) fn name(&self) -> String {
        self.names.lock().name.clone()
    }

    /// Sets the name; empty takes it away.
    pub(crate) fn set_name(&self, name: String) {
        self.names.lock().name = name;
    }

    pub(crate) fn user(&self) -> String {
        self.names.lock().user.clone()
    }

    /// Sets the user it is authenticated as.
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

    /// Notes which command it ran last.
    pub(crate) fn set_command(&self, command: &'static str, subcommand: Option<&'static str>) {
        self.names.lock().command = (command, subcommand);
        self.figures.set_fast_command(None);
    }

    /// Appends the line of CLIENT LIST, with its line break.
    pub(crate) fn describe(&self, text: &mut String) {
        let names = self.names.lock().clone();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} ",
            self.id,
            self.peer,
            self.local,
            self.descriptor,
            names.name,
            self.age_s(),
            self.idle_s(),
        );
        self.figures.describe(text);
        let command = match (self.figures.fast_command(), names.command) {
            (Some(command), _) => command.to_owned(),
            (None, ("", _)) => "NULL".to_owned(),
            (None, (command, None)) => command.to_owned(),
            (None, (command, Some(subcommand))) => format!("{command}|{subcommand}"),
        };
        let _ = writeln!(
            text,
            "cmd={command} user={} redir=-1 resp={} lib-name={} lib-ver={}",
            names.user,
            if self.figures.has(Flag::Resp3) { 3 } else { 2 },
            names.library,
            names.library_version,
        );
    }
}
