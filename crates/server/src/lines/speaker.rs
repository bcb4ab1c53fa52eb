//! What one protocol of lines does with the bytes of a connection, and what all
//! of them do alike.

use super::akumuli::Akumuli;
use super::by_line::ByLine;
use super::influx::Influx;
use super::opentsdb::Telnet;
use crate::acl::User;
use crate::intake::{EngineIntake, InPause, Report, Way};
use crate::state::{LinePort, LineProtocol, Redirect, Shared};
use latewood_wire::intake::{Intake, Reason};
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::{JoinError, spawn_blocking};

/// Bytes of one line, its ending included.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// What one protocol does with the bytes of a connection.
pub(super) trait Speaker: Send {
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
pub(super) enum Next {
    /// It does.
    Line,
    Close,
}

/// The speaker for a connection to `port`.
pub(super) fn speaker(port: &LinePort, shared: &Arc<Shared>) -> Box<dyn Speaker> {
    match port.protocol {
        LineProtocol::OpenTsdb => Box::new(ByLine::new(Telnet::default())),
        LineProtocol::Akumuli => Box::new(ByLine::new(Akumuli::new(shared))),
        LineProtocol::InfluxTcp | LineProtocol::InfluxUdp => Box::new(Influx::new(port.precision)),
    }
}

/// An intake for what comes with the rights that `user` has now; during CLIENT
/// PAUSE it waits.
pub(super) fn intake_for(
    shared: &Arc<Shared>,
    protocol: LineProtocol,
    user: &Arc<User>,
) -> EngineIntake {
    let (shared, user) = (Arc::clone(shared), Some(Arc::clone(user)));
    let way = Way::new(protocol.counted_as(), protocol.route());
    EngineIntake::new(shared, way, way.protocol.name(), user, InPause::Wait)
}

/// The user called `name`, else `default`, if it is on.
///
/// # Errors
/// A sentence with the name.
pub(super) fn user_for(shared: &Shared, name: Option<&str>) -> Result<Arc<User>, String> {
    match name {
        None => Ok(shared.runtime.users.default_user()),
        Some(name) => shared
            .user_of(name)
            .ok_or_else(|| format!("there is no user {name:?} who is on")),
    }
}

/// Runs `work`, which may block, on a thread for that. Its panic goes on here.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    ended(spawn_blocking(work).await)
}

/// What a task returned. Its panic goes on here.
pub(super) fn ended<T>(joined: Result<T, JoinError>) -> T {
    // No task is aborted, and the runtime lives as long as the process.
    joined.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// Refuses line `number`, of which only `rest` has come: the end of a value or
/// of a time may be missing.
pub(super) fn refuse_rest(rest: &[u8], number: u32, intake: &mut EngineIntake) {
    if !rest.trim_ascii().is_empty() {
        let text = format_args!("the connection ended inside a line");
        intake.refuse(number, Reason::Syntax, text);
    }
}

/// How many refusals of a batch were counted and not kept in words.
pub(super) fn unspoken(report: &Report) -> u64 {
    report.refused().saturating_sub(report.lines.len() as u64)
}

/// What a sender is told at a node that does not own the log.
pub(super) fn takes_none(to: &Redirect) -> String {
    format!("this node takes no lines; {to}")
}

/// Whether protected mode keeps a peer out.
pub(super) fn is_barred(shared: &Shared, peer: SocketAddr) -> bool {
    let is_far = !peer.ip().to_canonical().is_loopback();
    is_far && shared.runtime.protected_mode.load(Ordering::Relaxed)
}
