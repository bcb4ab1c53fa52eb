//! Between connections: mailboxes of the event loops, channels and their
//! subscribers, events of keys and their listeners.
//!
//! Order inside: socket, kind; publication; mailbox; channels; events. Tested by
//! `tests/resp/pubsub.rs` and `tests/resp/events.rs`.

mod channels;
mod class;
mod events;
mod kind;
mod limit;
mod listeners;
mod mailbox;
mod publication;
mod socket;
mod subscription;

pub(crate) use channels::Channels;
pub(crate) use class::{ADD_EVENT, Class, Notify};
pub(crate) use events::Events;
pub(crate) use kind::Kind;
pub(crate) use limit::BufferLimit;
pub(crate) use listeners::Listener;
pub(crate) use mailbox::{Mailbox, Mailboxes, Message, Why};
pub(crate) use publication::Publication;
pub(crate) use socket::Socket;
pub(crate) use subscription::Subscription;
