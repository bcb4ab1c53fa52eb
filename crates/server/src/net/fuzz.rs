//! The Redis port without its sockets, for the fuzz target: bytes in, replies out.

use super::event_loop::EventLoop;
use super::pipeline::{Client, Executor};
use crate::acl::Users;
use crate::client::Session;
use crate::clients::ClientInfo;
use crate::command::{CATALOGUE, all_commands};
use crate::messaging::{Mailboxes, Message, Why};
use crate::observe::Observe;
use crate::options::testing::{open_on, shared_for};
use crate::state::Shared;
use latewood_engine::Durability;
use latewood_engine::io::sim::SimDisk;
use std::sync::Arc;

/// A server over an empty simulated disk, with one event loop that is turned by hand.
pub struct Redis {
    shared: Arc<Shared>,
    event_loop: EventLoop,
    executor: Executor,
    clients: Vec<(Client, Vec<u8>)>,
}

impl Default for Redis {
    fn default() -> Self {
        let event_loop = EventLoop::new(0).expect("the system has descriptors left");
        let users = Users::new(&CATALOGUE);
        let mailboxes = Mailboxes::new(vec![event_loop.mailbox()]);
        let observe = Observe::new(all_commands());
        Self {
            shared: shared_for(users, observe, open_on(&SimDisk::new(), false), mailboxes),
            event_loop,
            executor: Executor::default(),
            clients: Vec::new(),
        }
    }
}

impl Redis {
    /// Connects a client; its number for [`Redis::send`].
    pub fn connect(&mut self) -> usize {
        let clients = &self.shared.clients;
        let info = clients.register(|id| ClientInfo::new(id, "fuzz:1".to_owned(), String::new()));
        let session = Session::new(info, &self.shared.runtime.users, Durability::Interval);
        self.clients.push((Client::new(session), Vec::new()));
        self.clients.len() - 1
    }

    /// Runs the commands in `bytes`, behind what this client sent before; the replies and
    /// messages that it gets. A wait ends at once, as by CLIENT UNBLOCK, and so does a pause.
    /// What is left to a reader thread is done here.
    pub fn send(&mut self, client: usize, bytes: &[u8]) -> Vec<u8> {
        self.deliver();
        let shared = &*self.shared;
        let (client, input) = &mut self.clients[client];
        input.extend_from_slice(bytes);
        let mut replies = Vec::new();
        loop {
            let used = self.executor.run(shared, client, input);
            input.drain(..used);
            replies.append(&mut client.output);
            let has_waited = client.session.is_waiting();
            if has_waited {
                shared.pause.end();
                shared.readers.run_queued(shared);
                let session = &mut client.session;
                session.resume(shared, &mut replies, Why::Unblocked);
            }
            if !has_waited && !client.has_more {
                return replies;
            }
        }
    }

    /// Whether the server has ended the connection of this client.
    pub fn is_closed(&self, client: usize) -> bool {
        self.clients[client].0.session.is_closing()
    }

    /// Brings what others sent to clients.
    fn deliver(&mut self) {
        for message in self.event_loop.mailbox().take() {
            for (client, _) in &mut self.clients {
                let id = client.session.info.id;
                match &message {
                    Message::Publish(publication, ids) if ids.contains(&id) => {
                        client.deliver(publication);
                    }
                    Message::Close(closed) if *closed == id => client.session.close(),
                    _ => {}
                }
            }
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        for (client, _) in &mut self.clients {
            client.session.leave(&self.shared);
            self.shared.clients.unregister(client.session.info.id);
        }
    }
}
