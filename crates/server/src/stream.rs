//! Replies too long to be built at once.
//!
//! A command that has one leaves it in [`crate::session::Session::stream`]. The
//! executor asks for the next part whenever the connection's unsent replies are
//! below the backlog limit, and runs the connection's next command after the
//! last part. So a long reply costs a backlog of memory and not its own length.

use crate::command::{Call, Spec};
use crate::session::Session;
use crate::shared::Shared;
use latewood_wire::resp::Protocol;
use std::fmt;
use std::time::{Duration, Instant};

/// The part of a reply that is not written yet.
pub(crate) trait Stream: Send {
    /// Appends the next part to `out`; whether more is to come. A part is
    /// some ten kilobytes, so that the limit means something.
    fn more(&mut self, shared: &Shared, protocol: Protocol, out: &mut Vec<u8>) -> bool;
}

/// Begins the reply `stream` to a command; what does not fit its first part
/// follows when the connection has room.
pub(crate) fn begin(call: &mut Call<'_>, mut stream: impl Stream + 'static) {
    if stream.more(call.shared, call.session.protocol, call.out) {
        call.session.stream = Some(Box::new(stream));
    }
}

/// A command whose reply is being written, for the figures of commands.
#[derive(Debug)]
pub(crate) struct Streamed {
    spec: &'static Spec,
    /// Its words as the slow log shows them.
    words: Vec<Vec<u8>>,
    /// The time it has taken so far, that of waiting for the peer left out.
    took: Duration,
}

impl Streamed {
    /// A command whose first part took so long.
    pub(crate) fn new(spec: &'static Spec, words: Vec<Vec<u8>>, took: Duration) -> Self {
        Self { spec, words, took }
    }
}

impl Session {
    /// Writes the next part of the long reply, if there is one; whether more
    /// is to come.
    pub(crate) fn continue_stream(&mut self, shared: &Shared, out: &mut Vec<u8>) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let begun = Instant::now();
        let has_more = stream.more(shared, self.protocol, out);
        if let Some(streamed) = &mut self.streamed {
            streamed.took += begun.elapsed();
        }
        if !has_more {
            self.end_stream(shared);
        }
        has_more
    }

    /// Ends the long reply, if there is one, and notes the time it took.
    pub(crate) fn end_stream(&mut self, shared: &Shared) {
        self.stream = None;
        if let Some(streamed) = self.streamed.take() {
            let Streamed { spec, words, took } = *streamed;
            let observe = &shared.observe;
            observe.ran(spec, || words, &self.info, (took, false));
        }
    }
}

impl fmt::Debug for dyn Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}
