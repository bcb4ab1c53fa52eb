//! The stages of the command under way that writes samples, timed.
//!
//! Invariant: the writing of a reply is timed once, for as many replies as it has.

use latewood_engine::{Stage, Timer};

/// The timer of a command, and that of its reply.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    command: Timer,
    reply: Timer,
    /// Replies that are not counted yet.
    replies: usize,
}

impl Timing {
    /// The next command is timed with this.
    #[inline]
    pub(crate) fn begin(&mut self, timer: Timer) {
        self.command = timer;
    }

    /// The timer of the command under way, for whoever writes its samples.
    #[inline]
    pub(crate) fn take(&mut self) -> Timer {
        std::mem::take(&mut self.command)
    }

    /// Samples are written, and this many replies of theirs are to be counted.
    #[inline]
    pub(crate) fn note_replies(&mut self, timer: Timer, replies: usize) {
        (self.reply, self.replies) = (timer, replies);
    }

    /// The command under way has ended.
    #[inline]
    pub(crate) fn end(&mut self) {
        let Self {
            mut reply, replies, ..
        } = std::mem::take(self);
        reply.end_for(Stage::Reply, replies);
    }
}
