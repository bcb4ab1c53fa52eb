//! Sockets: from bytes that arrive to bytes that leave.
//!
//! An acceptor thread hands new sockets to the event loops, one per core or fewer. A
//! loop owns its connections and works in rounds: read what has arrived, run
//! every whole command of it, then send each connection its replies with one
//! call. Samples are gathered on the way (`group.rs`) and given to the engine
//! many at a time. Replies that promise the disk are kept until it is told that it
//! has what they promise, while everyone else is served.
//!
//! Everything a connection may hold is bounded: bytes of an unfinished
//! command and its age, bytes of replies nobody reads, idle time where asked.

mod acceptor;
mod connection;
mod event_loop;
mod fast;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod group;
mod listener;
mod pipeline;
#[cfg(test)]
mod tests;

pub(crate) use acceptor::Acceptor;
pub(crate) use event_loop::EventLoop;
pub(crate) use listener::{Listener, bind};
