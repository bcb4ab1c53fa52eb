//! What a loop does with its messages and with what is due.

use super::EventLoop;
use crate::messaging::{Message, Why};
use crate::net::connection::Connection;
use crate::state::Shared;
use std::time::Instant;

impl EventLoop {
    /// Handles the messages in the mailbox.
    pub(super) fn receive(&mut self, shared: &Shared) {
        for message in self.mailbox.take() {
            match message {
                Message::Connection(socket, info) => self.adopt(shared, socket, info),
                Message::Publish(publication, clients) => {
                    for client in clients {
                        self.with(client, |connection| {
                            connection.deliver(shared, &publication)
                        });
                    }
                }
                Message::Resume(client, why) => {
                    self.with(client, |connection| connection.resume(shared, why));
                }
                Message::Durable => self.end_disk_waits(shared),
                Message::EndPause => self.end_pause(shared),
                Message::Close(client) => {
                    if let Some(&slot) = self.slots.get(&client) {
                        self.close(shared, slot);
                    }
                }
            }
        }
    }

    /// Ends the waits whose time is up.
    pub(super) fn end_waits(&mut self, shared: &Shared) {
        let now = Instant::now();
        while let Some(&(deadline, client)) = self.timers.first() {
            if deadline > now {
                break;
            }
            self.timers.pop_first();
            self.with(client, |connection| {
                connection.timer = None;
                connection.resume(shared, Why::TimeUp);
            });
        }
    }

    /// Keeps the timer of a connection what its wait asks for.
    pub(super) fn set_timer(&mut self, slot: usize) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else {
            return;
        };
        let (deadline, client) = (connection.deadline(), connection.id());
        if connection.timer == deadline {
            return;
        }
        if let Some(earlier) = std::mem::replace(&mut connection.timer, deadline) {
            self.timers.remove(&(earlier, client));
        }
        if let Some(deadline) = deadline {
            self.timers.insert((deadline, client));
        }
    }

    fn end_pause(&mut self, shared: &Shared) {
        for slot in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[slot] else {
                continue;
            };
            if connection.is_paused() {
                connection.resume(shared, Why::News);
                self.queue(slot);
            }
        }
    }

    /// Does something with a client's connection, if it is still there, and
    /// serves it in the next round.
    fn with(&mut self, client: u64, act: impl FnOnce(&mut Connection)) {
        if let Some(&slot) = self.slots.get(&client)
            && let Some(Some(connection)) = self.connections.get_mut(slot)
        {
            act(connection);
            self.queue(slot);
        }
    }
}
