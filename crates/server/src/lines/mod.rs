//! Protocols of one line after the other on plain sockets: OpenTSDB's telnet
//! and Akumuli's own on TCP, InfluxDB's on TCP and UDP. Off until an address is
//! given.
//!
//! A connection has a thread: applying a batch may block, so that an event
//! loop must not do it, and a blocked thread does not read, which makes the
//! sender wait. What has arrived is one batch; its errors are answered before
//! more is read. These protocols know no password. So in protected mode only
//! peers on this machine are served, and all write with the rights of the
//! user `default`. InfluxDB's senders hear nothing: what is refused is counted
//! and told to the log.
//!
//! Tested by `tests/lines/`.

mod akumuli;
mod by_line;
mod connection;
mod datagrams;
mod figures;
mod influx;
mod listener;
mod opentsdb;

pub(crate) use figures::Listeners;
pub(crate) use listener::{Bound, Serving, bind};

use crate::intake::{EngineIntake, InPause, Protocol, Report};
use crate::shared::Shared;
use latewood_wire::intake::{Intake, Reason};
use std::sync::Arc;

/// Bytes of one line, its ending included.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Connections of one address at a time, where `--maxclients` does not say less.
pub(crate) const CONNECTIONS_MAX: usize = 1024;

/// What one protocol does with the bytes of a connection.
trait Speaker: Send {
    /// Takes what is whole of `arrived`; how many bytes that are, and whether
    /// the connection goes on. The others are brought again with more behind
    /// them: at most [`LINE_BYTES_MAX`] may be left. What is answered meanwhile
    /// goes to `out`.
    fn read(
        &mut self,
        arrived: &[u8],
        intake: &mut EngineIntake,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> (usize, Next);

    /// Takes notice that nothing follows on `rest`, which was left over.
    fn end(&mut self, rest: &[u8], intake: &mut EngineIntake);

    /// Answers what became of all since the last time.
    fn answer(&mut self, report: &Report, out: &mut Vec<u8>);
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    Close,
}

/// An intake for what comes without a login, with the rights that `default` has
/// now; during CLIENT PAUSE it waits.
fn intake_of(shared: &Arc<Shared>, protocol: Protocol) -> EngineIntake {
    let user = Some(shared.runtime.users.default_user());
    let shared = Arc::clone(shared);
    EngineIntake::new(shared, protocol, protocol.name(), user, InPause::Wait)
}

/// Refuses line `number`, of which only `rest` has come: the end of a value or
/// of a time may be missing.
fn refuse_rest(rest: &[u8], number: u32, intake: &mut EngineIntake) {
    if !rest.trim_ascii().is_empty() {
        let text = format_args!("the connection ended before the line did");
        intake.refuse(number, Reason::Syntax, text);
    }
}

/// How many refusals of a batch were counted and not kept in words.
fn unspoken(report: &Report) -> u64 {
    report.refused().saturating_sub(report.lines.len() as u64)
}
