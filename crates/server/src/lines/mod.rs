//! Protocols of one line after the other on a plain TCP connection: OpenTSDB's
//! telnet and Akumuli's own. Off until an address is given.
//!
//! A connection has a thread: applying a batch may block, so that an event
//! loop must not do it, and a blocked thread does not read, which makes the
//! sender wait. What has arrived is one batch; its errors are answered before
//! more is read. These protocols know no password. So in protected mode only
//! peers on this machine are served, and all write with the rights of the
//! user `default`.
//!
//! Tested by `tests/lines/`.

mod akumuli;
mod connection;
mod listener;
mod opentsdb;

pub(crate) use listener::{Bound, Serving, bind};

use crate::intake::{EngineIntake, Report};
use crate::shared::Shared;

/// Bytes of one line, its ending included.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Connections of one address at a time.
pub(crate) const CONNECTIONS_MAX: usize = 1024;

/// What one protocol does with the lines of a connection.
trait Speaker: Send {
    /// Takes a line without its ending. Answers that do not depend on a batch
    /// go to `out` at once; whether the connection goes on.
    fn line(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut EngineIntake,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Next;

    /// Takes notice of a line of more than [`LINE_BYTES_MAX`] bytes.
    fn too_long(&mut self, number: u32, intake: &mut EngineIntake);

    /// Answers what became of the lines since the last time.
    fn answer(&mut self, report: &Report, out: &mut Vec<u8>);
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    Close,
}

/// How many refusals of a batch were counted and not kept in words.
fn unspoken(report: &Report) -> u64 {
    report.refused().saturating_sub(report.lines.len() as u64)
}
