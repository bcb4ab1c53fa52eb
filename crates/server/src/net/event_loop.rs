//! One thread's rounds over its connections.
//!
//! A round: wait for events, let every ready connection read once and run its
//! commands, then send. A loop never waits for the disk, until it stops: connections
//! whose replies promise it keep them until it is told (`disk_waits.rs`). Nor does it wait for
//! blocks that are not on this machine.

mod disk_waits;
mod receive;

use super::connection::{Connection, READ_BYTES, Workspace};
use super::pipeline::Executor;
use crate::client::Session;
use crate::clients::ClientInfo;
use crate::messaging::{Mailbox, Socket};
use crate::state::Shared;
use latewood_engine::io::waiting::no_wait;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const WAKE: Token = Token(usize::MAX);
/// How often overdue connections are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// Events taken from the kernel at a time.
const EVENTS: usize = 1024;

/// One event loop and its connections.
pub(crate) struct EventLoop {
    poll: Poll,
    mailbox: Arc<Mailbox>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Connections to serve in the next round.
    ready: Vec<usize>,
    /// Where the connection of each client is.
    slots: HashMap<u64, usize>,
    /// When which client has waited long enough.
    timers: BTreeSet<(Instant, u64)>,
    /// Where connections are that wait for the disk, or were when they were noted.
    disk_waits: Vec<usize>,
    workspace: Workspace,
}

impl EventLoop {
    /// Loop number `number`, without connections.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(number: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        Ok(Self {
            poll,
            mailbox: Arc::new(Mailbox::new(waker)),
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            slots: HashMap::new(),
            timers: BTreeSet::new(),
            disk_waits: Vec::new(),
            workspace: Workspace {
                executor: Executor::new(number),
                spare: Vec::with_capacity(READ_BYTES),
                pool: Vec::new(),
            },
        })
    }

    /// Where new connections go.
    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Serves until the server stops.
    ///
    /// # Errors
    /// Those of waiting for events.
    pub(crate) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let _no_wait = no_wait();
        let mut events = Events::with_capacity(EVENTS);
        let mut round = Vec::new();
        let mut next_sweep = Instant::now() + SWEEP;
        while !shared.lifetime.stopping.load(Ordering::Acquire) {
            let wait = if self.ready.is_empty() {
                let next_timer = self.timers.first().map_or(next_sweep, |timer| timer.0);
                let next = next_sweep.min(next_timer);
                next.saturating_duration_since(Instant::now())
            } else {
                Duration::ZERO
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    WAKE => self.receive(shared),
                    Token(slot) => {
                        let is_readable = event.is_readable() || event.is_error();
                        self.note(slot, is_readable, event.is_read_closed());
                    }
                }
            }
            if !self.timers.is_empty() {
                self.end_waits(shared);
            }
            std::mem::swap(&mut round, &mut self.ready);
            self.serve(shared, &round);
            self.send(shared, &round);
            round.clear();
            let now = Instant::now();
            if now >= next_sweep {
                self.sweep(shared);
                shared.observe.rates.tick(now, || shared.counters.reading());
                next_sweep = now + SWEEP;
            }
        }
        self.finish_disk_waits(shared);
        Ok(())
    }

    /// Takes over a new connection.
    fn adopt(&mut self, shared: &Shared, mut socket: Socket, info: Arc<ClientInfo>) {
        let slot = self.free.pop().unwrap_or(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut socket, Token(slot), interest) {
            tracing::warn!(%error, "cannot watch a new connection");
            shared.clients.unregister(info.id);
            self.free.push(slot);
            return;
        }
        self.slots.insert(info.id, slot);
        let users = &shared.runtime.users;
        let session = Session::new(info, users, shared.settings.durability);
        let connection = Connection::new(socket, session);
        connection.show_figures();
        let connection = Some(Box::new(connection));
        match self.connections.get_mut(slot) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
    }

    fn note(&mut self, slot: usize, is_readable: bool, is_read_closed: bool) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else {
            return;
        };
        if is_readable || is_read_closed {
            connection.note_readable(is_read_closed);
        }
        self.queue(slot);
    }

    /// Has a connection served in the next round.
    fn queue(&mut self, slot: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(slot)
            && !connection.is_queued
        {
            connection.is_queued = true;
            self.ready.push(slot);
        }
    }

    fn serve(&mut self, shared: &Shared, round: &[usize]) {
        let mut bytes_in = 0;
        for &slot in round {
            if let Some(Some(connection)) = self.connections.get_mut(slot) {
                connection.is_queued = false;
                bytes_in += connection.serve(shared, &mut self.workspace);
            }
        }
        let counter = &shared.counters.bytes_in;
        counter.fetch_add(bytes_in, Ordering::Relaxed);
    }

    fn send(&mut self, shared: &Shared, round: &[usize]) {
        let mut bytes_out = 0;
        let mut wanted = None;
        for &slot in round {
            let Some(Some(connection)) = self.connections.get_mut(slot) else {
                continue;
            };
            if !connection.holds_replies() {
                bytes_out += connection.send(shared, &mut self.workspace);
            }
            if let Some(position) = connection.awaited() {
                wanted = wanted.max(self.note_disk_wait(shared, slot, position));
            }
        }
        let counter = &shared.counters.bytes_out;
        counter.fetch_add(bytes_out, Ordering::Relaxed);
        if let Some(position) = wanted {
            self.want_disk(shared, position);
        }
        for &slot in round {
            self.after_round(shared, slot);
        }
    }

    /// Closes a connection that is done, queues one that is not.
    fn after_round(&mut self, shared: &Shared, slot: usize) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else {
            return;
        };
        connection.show_figures();
        connection.note_backlog(shared);
        if connection.is_finished() {
            self.close(shared, slot);
            return;
        }
        if connection.wants_service() {
            self.queue(slot);
        }
        self.set_timer(slot);
    }

    fn sweep(&mut self, shared: &Shared) {
        let idle_timeout_s = shared.runtime.idle_timeout_s.load(Ordering::Relaxed);
        let limit = *shared.channels().limit.read();
        for slot in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[slot] else {
                continue;
            };
            connection.check_unread(shared, &limit);
            connection.check_stalled(shared);
            connection.check_standing(shared);
            if connection.is_finished() {
                self.close(shared, slot);
                continue;
            }
            if connection.is_overdue(idle_timeout_s) {
                shared.counters.timeouts.fetch_add(1, Ordering::Relaxed);
                self.close(shared, slot);
                continue;
            }
            // Others may have left it room.
            connection.note_backlog(shared);
            if connection.wants_service() {
                self.queue(slot);
            }
        }
    }

    fn close(&mut self, shared: &Shared, slot: usize) {
        let Some(mut connection) = self.connections[slot].take() else {
            return;
        };
        // The socket is closed in a moment, which takes it out as well.
        let _ = self.poll.registry().deregister(&mut connection.socket);
        connection.leave(shared);
        if let Some(deadline) = connection.timer {
            self.timers.remove(&(deadline, connection.id()));
        }
        self.slots.remove(&connection.id());
        shared.clients.unregister(connection.id());
        self.free.push(slot);
    }
}
