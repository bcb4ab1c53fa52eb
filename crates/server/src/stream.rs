//! Replies too long to be built at once.
//!
//! A command that has one leaves it in [`crate::session::Session::stream`]. The
//! executor asks for the next part whenever the connection's unsent replies are
//! below the backlog limit, and runs the connection's next command after the
//! last part. So a long reply costs a backlog of memory and not its own length.

use crate::command::Call;
use crate::shared::Shared;
use latewood_wire::resp::Protocol;
use std::fmt;

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

impl fmt::Debug for dyn Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}
