//! One connection: a socket, the bytes it has not worked off, its client.
//!
//! Invariants: `input` holds only bytes that were read and not run; a
//! connection without unfinished business holds no buffer at all, so that
//! thousands of idle ones cost little. Replies beyond the backlog limit stop
//! the reading (`clients::backlog`), so a peer that never reads holds one backlog
//! and one reply.

mod disk_wait;

use super::pipeline::{Client, Executor};
use crate::client::Session;
use crate::clients::Flag;
use crate::messaging::{BufferLimit, Publication, Socket, Why};
use crate::observe::Limit;
use crate::state::Shared;
use disk_wait::DiskWait;
use latewood_engine::{Stage, Timer};
use latewood_model::limits::COMMAND_BYTES_MAX;
use latewood_tls::HANDSHAKE_MAX;
use latewood_wire::resp::Reply;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes read from one connection in one round.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Time a peer has to finish a command that it began, to take some of a long
/// reply, or the last replies of a connection that closes.
const UNFINISHED_MAX: Duration = Duration::from_secs(60);
/// A buffer larger than this is given back once it is empty.
const KEPT_BYTES: usize = 4 * 1024;

/// A connection of one event loop.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// Is in the list of connections to serve.
    pub(super) is_queued: bool,
    client: Client,
    input: Vec<u8>,
    /// Bytes of its replies that count in the backlog of all.
    backlog_noted: usize,
    /// Bytes of its unfinished command that count among those of all.
    unfinished_noted: usize,
    is_readable: bool,
    /// The peer sends no more: read up to the end of its bytes.
    is_read_closed: bool,
    is_broken: bool,
    /// Keys are not yet agreed on.
    is_handshaking: bool,
    /// Since when a command is unfinished, or the last replies wait.
    pub(super) unfinished_since: Option<Instant>,
    /// The timer that its loop has set for it.
    pub(super) timer: Option<Instant>,
    /// What its loop has asked the disk for, while it is in the loop's list of disk waits.
    disk_wait: Option<DiskWait>,
    /// Since when it is owed more than the soft limit of subscribers.
    unread_since: Option<Instant>,
    /// Since when nothing is read of a long reply, which keeps what it shows: samples of before,
    /// and files.
    pub(super) stalled_since: Option<Instant>,
}

/// What an event loop lends to the connection it serves.
pub(super) struct Workspace {
    /// Runs commands.
    pub(super) executor: Executor,
    /// Read buffer of [`READ_BYTES`] that is lent for one read.
    pub(super) spare: Vec<u8>,
    /// Empty buffers for replies.
    pub(super) pool: Vec<Vec<u8>>,
}

/// Buffers an event loop keeps for replies.
const POOL_BUFFERS_MAX: usize = 64;
/// A reply buffer larger than this is given back to the system.
const POOL_BUFFER_BYTES_MAX: usize = 256 * 1024;

impl Connection {
    pub(super) fn new(socket: Socket, session: Session) -> Self {
        let is_handshaking = socket.is_handshaking();
        Self {
            is_handshaking,
            socket,
            is_queued: false,
            client: Client::new(session),
            input: Vec::new(),
            backlog_noted: 0,
            unfinished_noted: 0,
            is_readable: false,
            is_read_closed: false,
            is_broken: false,
            unfinished_since: is_handshaking.then(Instant::now),
            timer: None,
            disk_wait: None,
            unread_since: None,
            stalled_since: None,
        }
    }

    /// The number of the client.
    pub(super) fn id(&self) -> u64 {
        self.client.session.info.id
    }

    /// Notes that there is something to read.
    pub(super) fn note_readable(&mut self, is_read_closed: bool) {
        self.is_readable = true;
        self.is_read_closed |= is_read_closed;
    }

    /// Whether there is more to do without waiting for the peer.
    pub(super) fn wants_service(&self) -> bool {
        let is_reading = self.is_readable && !self.client.session.is_closing();
        // Behind replies that wait for the disk all others would wait as well.
        let is_waiting = self.client.session.is_waiting() || self.holds_replies();
        (is_reading || self.client.has_more) && !is_waiting && !self.client.is_full()
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_finished(&self) -> bool {
        // Nobody is there to read what a waiting command would answer.
        let session = &self.client.session;
        let has_left = self.is_read_closed
            && session.is_waiting()
            && !session.awaits_write()
            && session.awaited().is_none();
        self.is_broken
            || has_left
            || (self.client.session.is_closing()
                && !self.client.has_more
                && self.unsent() == 0
                && !self.socket.has_unsent())
    }

    /// Ends the connection without sending what waits.
    fn abort(&mut self) {
        self.is_broken = true;
    }

    fn unsent(&self) -> usize {
        self.client.backlog() + self.client.deferred.len()
    }

    /// Notes what it leaves unread, and sees how much it may.
    pub(super) fn note_backlog(&mut self, shared: &Shared) {
        let unread = self.client.backlog();
        let held = unread + self.client.deferred.len();
        shared.clients.backlog.note(&mut self.backlog_noted, held);
        let share = || shared.db.reply_bytes_max();
        self.client.backlog_max = shared.clients.backlog.allowed(unread, share);
    }

    /// When its wait ends by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.client.session.deadline()
    }

    /// Whether it waits for the end of a pause.
    pub(super) fn is_paused(&self) -> bool {
        self.client.session.is_paused()
    }

    /// Looks whether its wait is over; then its next commands are run.
    pub(super) fn resume(&mut self, shared: &Shared, why: Why) {
        let _shared_lock = shared.exec_lock.share(self.client.session.info.event_loop);
        self.client.resume(shared, why);
    }

    /// Appends a message to its replies, if it still subscribes. Closes it instead where it
    /// and others have left too much unread.
    pub(super) fn deliver(&mut self, shared: &Shared, publication: &Publication) {
        let backlog = &shared.clients.backlog;
        let held = self.unsent() + publication.len_bytes();
        if backlog.has_room(self.backlog_noted, held, || shared.db.reply_bytes_max()) {
            self.client.deliver(publication)
        } else {
            shared.channels().cut_off(&self.client.session.info)
        }
        let unsent = self.unsent();
        backlog.note(&mut self.backlog_noted, unsent);
        let figures = &self.client.session.info.figures;
        figures.unsent_bytes.store(unsent, Ordering::Relaxed);
        figures.received(publication.len_bytes());
    }

    /// Closes it if its user is gone: one that only listens or waits sends no
    /// command that would show it. What it leaves unread keeps neither its wait nor,
    /// for long, the connection. Nobody waits for samples here whom this node would not answer.
    pub(super) fn check_standing(&mut self, shared: &Shared) {
        let of_followers = self.client.session.accepts_followers();
        if let Err(to) = shared.takes_reads(of_followers) {
            self.client.end_wait_for_samples(shared, &to);
        }
        self.client.session.renew_permit(shared);
        if self.client.session.is_closing() {
            self.client.session.stop_waiting(shared);
            self.watch(false);
        }
    }

    /// Closes it if it has been owed more than the soft limit for too long.
    pub(super) fn check_unread(&mut self, shared: &Shared, limit: &BufferLimit) {
        let session = &self.client.session;
        let is_receiver = session.is_subscriber() || session.is_monitor();
        if !is_receiver || limit.soft_bytes == 0 || self.unsent() <= limit.soft_bytes {
            self.unread_since = None;
            return;
        }
        let since = *self.unread_since.get_or_insert_with(Instant::now);
        if since.elapsed() > Duration::from_secs(limit.soft_s) {
            shared.channels().cut_off(&self.client.session.info);
        }
    }

    /// Closes it if nothing was read of a long reply for too long.
    pub(super) fn check_stalled(&mut self, shared: &Shared) {
        if !self.client.session.is_amid_reply() || self.unsent() == 0 {
            self.stalled_since = None;
            return;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        if since.elapsed() > UNFINISHED_MAX {
            let peer = &self.client.session.info.peer;
            tracing::warn!(peer, "closed a connection that does not read a long reply");
            shared.counters.timeouts.fetch_add(1, Ordering::Relaxed);
            self.abort();
        }
    }

    /// Shows its buffers to CLIENT LIST.
    pub(super) fn show_figures(&self) {
        let (client, figures) = (&self.client, &self.client.session.info.figures);
        let buffers = [&self.input, &client.output, &client.deferred];
        let memory = size_of::<Self>() + buffers.iter().map(|each| each.capacity()).sum::<usize>();
        figures
            .input_bytes
            .store(self.input.len(), Ordering::Relaxed);
        figures.unsent_bytes.store(self.unsent(), Ordering::Relaxed);
        figures.memory_bytes.store(memory, Ordering::Relaxed);
        figures.set(Flag::Closing, client.session.is_closing());
    }

    /// Takes it out of all that others hold of it.
    pub(super) fn leave(&mut self, shared: &Shared) {
        if self.is_handshaking {
            shared.tls.failed.fetch_add(1, Ordering::Relaxed);
        }
        shared.clients.backlog.note(&mut self.backlog_noted, 0);
        let unfinished = &shared.clients.unfinished;
        unfinished.note(&mut self.unfinished_noted, 0);
        self.client.session.leave(shared);
    }

    /// Reads once and runs what has arrived; replies stay in the buffer.
    pub(super) fn serve(&mut self, shared: &Shared, workspace: &mut Workspace) -> u64 {
        self.end_parked(shared);
        if !self.wants_service() || self.is_broken {
            return 0;
        }
        if self.client.output.capacity() == 0 {
            self.client.output = workspace.pool.pop().unwrap_or_default();
        }
        let (read, used) = if self.client.has_more {
            let input = std::mem::take(&mut self.input);
            let used = workspace.executor.run(shared, &mut self.client, &input);
            self.keep(&input[used..]);
            (0, used)
        } else {
            self.read_and_run(shared, workspace)
        };
        let unfinished = &shared.clients.unfinished;
        unfinished.note(&mut self.unfinished_noted, self.input.len());
        self.client.session.info.touch();
        self.watch(used > 0);
        self.end_parked(shared);
        read as u64
    }

    /// Ends a long read of a peer that sends no more, and goes on with what it sent.
    fn end_parked(&mut self, shared: &Shared) {
        let client = &mut self.client;
        if self.is_read_closed && client.session.end_parked(shared, &mut client.output) {
            client.has_more = true;
        }
    }

    /// Notes since when the command at the end of the input is unfinished.
    /// Its clock begins anew after every command that was finished, because a
    /// busy pipeline may be cut within a command at every read.
    fn watch(&mut self, has_progressed: bool) {
        let is_unfinished = self.client.missing_bytes > 0
            || self.client.session.is_closing()
            || self.is_handshaking;
        if !is_unfinished {
            self.unfinished_since = None;
        } else if has_progressed || self.unfinished_since.is_none() {
            self.unfinished_since = Some(Instant::now());
        }
    }

    /// The bytes that were read, and those that commands were made of.
    fn read_and_run(&mut self, shared: &Shared, workspace: &mut Workspace) -> (usize, usize) {
        let held = self.input.len();
        // A long command gathers in a buffer of its own, others share one.
        let is_long = held.saturating_add(self.client.missing_bytes) > READ_BYTES / 2;
        if is_long && !self.has_room_for_command(shared, held + READ_BYTES) {
            return (0, 0);
        }
        let mut buffer = if is_long {
            let mut own = std::mem::take(&mut self.input);
            own.resize(held + READ_BYTES, 0);
            own
        } else {
            let mut spare = std::mem::take(&mut workspace.spare);
            spare.resize(READ_BYTES, 0);
            spare[..held].copy_from_slice(&self.input);
            spare
        };
        let mut timer = shared.db.stages().due();
        let read = self.read(shared, &mut buffer[held..]);
        if read > 0 {
            timer.end_for(Stage::Receive, 1);
        }
        let filled = held + read;
        // Until the missing bytes are there, a look would find nothing new.
        let used = if read >= self.client.missing_bytes.max(1) {
            let executor = &mut workspace.executor;
            let figures = &self.client.session.info.figures;
            figures.input_bytes.store(filled, Ordering::Relaxed);
            executor.run(shared, &mut self.client, &buffer[..filled])
        } else {
            self.client.missing_bytes -= read;
            0
        };
        if is_long {
            buffer.truncate(filled);
            buffer.drain(..used);
            self.input = buffer;
            if self.input.is_empty() {
                self.input = Vec::new();
            }
        } else {
            self.keep(&buffer[used..filled]);
            workspace.spare = buffer;
        }
        (read, used)
    }

    /// Whether a command may gather `bytes` beside those of other connections. If not, refuses
    /// it and ends the connection.
    fn has_room_for_command(&mut self, shared: &Shared, bytes: usize) -> bool {
        // One command always has room.
        let bytes_max = shared.db.reply_bytes_max().max(COMMAND_BYTES_MAX);
        let unfinished = &shared.clients.unfinished;
        let has_room = unfinished.has_room(self.unfinished_noted, bytes, || bytes_max);
        if !has_room {
            let text = format!(
                "ERR unfinished commands of all clients must take at most {bytes_max} bytes"
            );
            shared.observe.errors.note(&text, 1);
            shared.observe.refused.note(Limit::Clients);
            let client = &mut self.client;
            Reply::new(&mut client.output, client.session.protocol()).error(text);
            client.session.close();
            self.input = Vec::new();
            unfinished.note(&mut self.unfinished_noted, 0);
        }
        has_room
    }

    /// Keeps bytes for the next round.
    fn keep(&mut self, rest: &[u8]) {
        self.input.clear();
        if rest.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = Vec::new();
        }
        self.input.extend_from_slice(rest);
    }

    /// Reads what fits; 0 when there is nothing or never will be.
    fn read(&mut self, shared: &Shared, buffer: &mut [u8]) -> usize {
        let read = self.socket.read(buffer);
        if self.is_handshaking {
            self.note_handshake(shared, read.as_ref().err());
        }
        match read {
            Ok(0) => {
                // Replies to what came before are still sent.
                self.is_readable = false;
                self.client.session.close();
                0
            }
            Ok(read) => {
                // A short read has emptied the socket: what comes later is a
                // new event. A peer that closed sends no further event.
                self.is_readable =
                    read == buffer.len() || self.is_read_closed || self.socket.has_ended();
                read
            }
            Err(error) => {
                match error.kind() {
                    ErrorKind::WouldBlock => self.is_readable = false,
                    ErrorKind::Interrupted => {}
                    _ => self.is_broken = true,
                }
                0
            }
        }
    }

    /// Looks whether keys are agreed on. Then the user is whom the certificate
    /// names, before the first command is run.
    fn note_handshake(&mut self, shared: &Shared, error: Option<&io::Error>) {
        self.is_handshaking = self.socket.is_handshaking();
        if !self.is_handshaking {
            self.unfinished_since = None;
            let name = self.socket.user_name();
            if let Some(user) = name.and_then(|name| shared.user_of(&name)) {
                let users = &shared.runtime.users;
                self.client.session.log_in(user, users);
            }
        } else if let Some(error) = error
            && error.kind() == ErrorKind::InvalidData
        {
            let peer = &self.client.session.info.peer;
            shared.tell_handshake(peer, error);
        }
    }

    /// Sends what the socket takes; the bytes.
    pub(super) fn send(&mut self, shared: &Shared, workspace: &mut Workspace) -> u64 {
        let mut bytes_out = 0;
        let has_unsent = self.client.sent < self.client.output.len();
        let mut timer = if has_unsent {
            shared.db.stages().due()
        } else {
            Timer::default()
        };
        while self.client.sent < self.client.output.len() && !self.is_broken {
            match self.socket.write(&self.client.output[self.client.sent..]) {
                Ok(0) => self.is_broken = true,
                Ok(written) => {
                    self.client.sent += written;
                    bytes_out += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_broken = true,
            }
        }
        if self.socket.has_unsent() && !self.is_broken {
            // It was taken and counted; there may be no room for it yet.
            let flushed = self.socket.flush();
            self.is_broken = flushed.is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        }
        timer.end_for(Stage::Send, 1);
        if bytes_out > 0 {
            self.stalled_since = None;
        }
        let output = &mut self.client.output;
        if self.client.sent == output.len() {
            output.clear();
            self.client.sent = 0;
            let buffer = std::mem::take(output);
            if workspace.pool.len() < POOL_BUFFERS_MAX && buffer.capacity() <= POOL_BUFFER_BYTES_MAX
            {
                workspace.pool.push(buffer);
            }
        } else if self.client.sent > output.len() / 2 {
            output.drain(..self.client.sent);
            self.client.sent = 0;
        }
        bytes_out
    }

    /// Whether the peer has used up its time.
    pub(super) fn is_overdue(&self, idle_timeout_s: u64) -> bool {
        let time_max = if self.is_handshaking {
            HANDSHAKE_MAX
        } else {
            UNFINISHED_MAX
        };
        let is_stuck = self
            .unfinished_since
            .is_some_and(|since| since.elapsed() > time_max);
        // Who waits for samples or messages is silent by right.
        let session = &self.client.session;
        let may_idle = session.is_waiting()
            || self.holds_replies()
            || session.is_subscriber()
            || session.is_monitor();
        is_stuck
            || (idle_timeout_s > 0
                && !may_idle
                && self.client.session.info.idle_s() >= idle_timeout_s)
    }
}
