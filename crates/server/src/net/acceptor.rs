//! The thread that accepts connections and hands them to the event loops.
//!
//! It also turns away what must not be served: more connections than
//! `maxclients` or than leave the database its descriptors, and in protected mode peers on other machines.

use crate::base::clock::now_ms;
use crate::clients::ClientInfo;
use crate::messaging::{Mailbox, Message};
use crate::net::listener::{Accepted, Listener};
use crate::state::{Runtime, Shared};
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const WAKE: Token = Token(usize::MAX);
/// Pause after the system refused a connection, for want of descriptors say.
const PAUSE: Duration = Duration::from_millis(100);

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
const DENIED: &[u8] = b"-DENIED Latewood is in protected mode: it has no password, so it serves \
only clients on its own machine. Set one with --requirepass, or, if the network is trusted, \
start it with --protected-mode off.\r\n";

/// Accepts connections until the server stops.
pub(crate) struct Acceptor {
    poll: Poll,
    waker: Arc<Waker>,
    listeners: Vec<Listener>,
    mailboxes: Vec<Arc<Mailbox>>,
    next: usize,
}

impl Acceptor {
    /// Accepts on `listeners` for the loops of `mailboxes`, of which there is at
    /// least one.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(
        mut listeners: Vec<Listener>,
        mailboxes: Vec<Arc<Mailbox>>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        for (number, listener) in listeners.iter_mut().enumerate() {
            let token = Token(number);
            poll.registry()
                .register(listener.source(), token, Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            waker,
            listeners,
            mailboxes,
            next: 0,
        })
    }

    /// Wakes the thread, so that it sees that the server stops.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Accepts until the server stops.
    ///
    /// # Errors
    /// Those of waiting for events.
    pub(crate) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        let mut paused = false;
        while !shared.lifetime.stopping.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, paused.then_some(PAUSE)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            paused = false;
            // Events come once per edge, so every listener is emptied each
            // time; one that was refused something is tried again.
            for number in 0..self.listeners.len() {
                paused |= !self.accept_all(number, shared);
            }
        }
        Ok(())
    }

    /// Accepts all that wait; whether the system gave them all.
    fn accept_all(&mut self, number: usize, shared: &Shared) -> bool {
        loop {
            match self.listeners[number].accept() {
                Ok(accepted) => self.hand_over(accepted, shared),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted
                            | ErrorKind::ConnectionAborted
                            | ErrorKind::NotConnected
                            | ErrorKind::InvalidInput
                    ) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    return false;
                }
            }
        }
    }

    fn hand_over(&mut self, mut accepted: Accepted, shared: &Shared) {
        let counters = &shared.counters;
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let runtime = &shared.runtime;
        let is_full = runtime.is_full(shared.clients.count(), &accepted.socket);
        if let Some(text) = refusal(runtime, is_full, accepted.is_local) {
            counters.connections_rejected.note(now_ms());
            tracing::debug!(peer = accepted.peer, "refused a connection");
            if !accepted.is_tls {
                // The peer may be gone already; there is nobody else to tell.
                let _ = accepted.socket.write(text);
            }
            return;
        }
        if accepted.is_tls {
            let tls = shared.tls.in_force();
            let encrypted = tls.map(|tls| accepted.socket.encrypted(tls));
            match encrypted {
                Some(Ok(socket)) => accepted.socket = socket,
                // A start without a certificate ends before it listens.
                other => {
                    tracing::error!(?other, "cannot begin a connection with TLS");
                    return;
                }
            }
        }
        let info = shared.clients.register(|id| {
            let info = ClientInfo::new(id, accepted.peer, accepted.local);
            let socket = &accepted.socket;
            info.served_by(self.next, socket.as_raw_fd(), socket.is_unix())
                .at_reader_port(accepted.is_reader)
        });
        self.mailboxes[self.next].put(Message::Connection(accepted.socket, info));
        self.next = (self.next + 1) % self.mailboxes.len();
    }
}

/// The reply to a connection that is refused.
fn refusal(runtime: &Runtime, is_full: bool, is_local: bool) -> Option<&'static [u8]> {
    let is_open = is_local || !runtime.users.is_open();
    if is_full {
        Some(TOO_MANY)
    } else if !is_open && runtime.protected_mode.load(Ordering::Relaxed) {
        Some(DENIED)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Settings;

    #[test]
    fn protected_mode_serves_this_machine_only_until_there_is_a_password() {
        let settings = Settings {
            connections_max: 10,
            protected_mode: true,
            ..Settings::default()
        };
        let runtime = Runtime::new(&settings, crate::options::testing::users());
        assert_eq!(refusal(&runtime, false, true), None);
        assert_eq!(refusal(&runtime, false, false), Some(DENIED));
        runtime.set_password("sesame");
        assert_eq!(refusal(&runtime, false, false), None);
        runtime.set_password("");
        runtime.protected_mode.store(false, Ordering::Relaxed);
        assert_eq!(refusal(&runtime, false, false), None);
        assert_eq!(refusal(&runtime, true, true), Some(TOO_MANY));
    }
}
