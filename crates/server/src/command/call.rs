//! One command on its way through the server.

use super::args::Args;
use super::fault::Fault;
use super::spec::Table;
use crate::client::{Session, Stream};
use crate::state::Shared;
use latewood_wire::resp::Reply;

/// What a command ends with.
pub(crate) type Outcome = Result<(), Fault>;

/// One command on its way through the server.
pub(crate) struct Call<'a> {
    /// Every command.
    pub(crate) commands: &'static Table,
    /// Its words, the name first.
    pub(crate) args: Args<'a>,
    /// Where the reply goes.
    pub(crate) out: &'a mut Vec<u8>,
    /// The connection it came from.
    pub(crate) session: &'a mut Session,
    /// The server.
    pub(crate) shared: &'a Shared,
}

impl Call<'_> {
    /// Writes to the reply in the connection's protocol.
    pub(crate) fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.session.protocol)
    }

    /// Begins the reply `stream`; what does not fit its first part follows when
    /// the connection has room.
    pub(crate) fn begin_stream(&mut self, mut stream: impl Stream + 'static) {
        if stream.more(self.shared, self.session.protocol, self.out) {
            self.session.stream = Some(Box::new(stream));
        }
    }
}
