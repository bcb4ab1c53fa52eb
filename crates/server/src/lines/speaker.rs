//! What one protocol of lines does with the bytes of a connection, and what all
//! of them do alike.

use crate::acl::User;
use crate::intake::{EngineIntake, InPause, Report};
use crate::observe::{Protocol, Route};
use crate::state::Shared;
use latewood_wire::intake::{Intake, Reason};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of one line, its ending included.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Connections of one address at a time, where `--maxclients` does not say less.
pub(super) const CONNECTIONS_MAX: usize = 1024;

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
    /// It is closed.
    Close,
}

/// An intake for what comes with the rights that `user` has now; during CLIENT
/// PAUSE it waits.
pub(super) fn intake_of(
    shared: &Arc<Shared>,
    (protocol, route): (Protocol, Route),
    user: Arc<User>,
) -> EngineIntake {
    let (shared, name) = (Arc::clone(shared), protocol.name());
    EngineIntake::new(shared, (protocol, route), name, Some(user), InPause::Wait)
}

/// The same for a connection from `address`.
pub(super) fn intake_from(
    shared: &Arc<Shared>,
    protocol: Protocol,
    user: Arc<User>,
    address: IpAddr,
) -> EngineIntake {
    let route = match protocol {
        Protocol::OpenTsdb => Route::OpenTsdbTcp,
        Protocol::Akumuli => Route::Akumuli,
        _ => Route::InfluxTcp,
    };
    let mut intake = intake_of(shared, (protocol, route), Arc::clone(&user));
    intake.sent_by(address, &user.name);
    intake
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

/// Whether protected mode keeps a peer out.
pub(super) fn is_barred(shared: &Shared, peer: SocketAddr) -> bool {
    let is_far = !peer.ip().to_canonical().is_loopback();
    is_far && shared.runtime.protected_mode.load(Ordering::Relaxed)
}
