//! Replies too long to be built at once.
//!
//! A command that has one leaves it in its session ([`LongReply`]). The
//! executor asks for the next part whenever the connection's unsent replies are
//! below the backlog limit, and runs the connection's next command after the
//! last part. So a long reply costs a backlog of memory and not its own length. A part
//! that takes long to make is made on a reader thread (`parked.rs`).

use crate::observe::CommandId;
use crate::state::Shared;
use latewood_engine::Cancelled;
use latewood_wire::resp::Protocol;
use std::fmt;
use std::time::{Duration, Instant};

/// What writing a part of a reply takes.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) shared: &'a Shared,
    /// What the connection speaks.
    pub(crate) protocol: Protocol,
    /// On a reader thread: whether nobody wants the reply any more.
    pub(crate) cancelled: Cancelled<'a>,
}

impl<'a> Part<'a> {
    /// A part of a reply in this protocol.
    pub(crate) fn new(shared: &'a Shared, protocol: Protocol, cancelled: Cancelled<'a>) -> Self {
        Self {
            shared,
            protocol,
            cancelled,
        }
    }
}

/// The part of a reply that is not written yet.
pub(crate) trait Stream: Send {
    /// Appends the next part to `out`; whether more is to come. A part is
    /// some ten kilobytes, so that the limit means something. A part that is
    /// `cancelled` is not looked at.
    fn more(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> bool;

    /// Whether the next part would keep an event loop too long: it is made on a
    /// reader thread.
    fn is_long(&self) -> bool {
        false
    }
}

/// A command whose reply is being written, for the figures of commands.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(super) command: CommandId,
    /// Its words as the slow log shows them.
    pub(super) words: Vec<Vec<u8>>,
    /// The time it has taken so far, that of waiting for the peer left out.
    pub(super) took: Duration,
}

impl Streamed {
    /// A command whose first part took `took`.
    pub(crate) fn new(command: CommandId, words: Vec<Vec<u8>>, took: Duration) -> Self {
        Self {
            command,
            words,
            took,
        }
    }
}

/// The rest of the last reply, and its command, whose work is noted at the end of it.
#[derive(Debug, Default)]
pub(crate) struct LongReply {
    stream: Option<Box<dyn Stream>>,
    command: Option<Box<Streamed>>,
}

impl LongReply {
    /// The reply has begun; this is the rest of it.
    pub(crate) fn begin(&mut self, stream: impl Stream + 'static) {
        self.stream = Some(Box::new(stream));
    }

    /// Whether more is to come.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether the next part is to be made on a reader thread.
    pub(crate) fn is_long(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_long())
    }

    /// The reply is a part of the work of this command.
    pub(crate) fn is_of(&mut self, command: Streamed) {
        self.command = Some(Box::new(command));
    }

    /// Writes the next part, if there is one. Returns whether more is to come.
    pub(super) fn more(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> bool {
        let begun = Instant::now();
        let Some(stream) = &mut self.stream else {
            return false;
        };
        if !stream.more(part, out) {
            self.stream = None;
        }
        if let Some(command) = &mut self.command {
            command.took += begun.elapsed();
        }
        self.stream.is_some()
    }

    /// Ends the reply. Returns its command, if its work is not noted yet.
    pub(super) fn end(&mut self) -> Option<Box<Streamed>> {
        std::mem::take(self).command
    }
}

impl fmt::Debug for dyn Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}
