//! Admission of a command: the checks that all commands have in common, CLIENT
//! PAUSE, and queueing in a transaction.

use super::call::Call;
use super::fault::{Fault, engine_text};
use super::keys::Keys;
use super::spec::Spec;
use super::{monitor, permission, roles, transaction};
use crate::client::What;
use crate::state::database::LOADING;
use latewood_wire::resp::Protocol;

/// What RESP2 lets a subscriber send: its replies have no place among messages.
const OF_SUBSCRIBERS: &[&str] = &[
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "ping",
    "quit",
    "reset",
];

/// Checks a command called `name`. True: it is to be run now. False: it was
/// queued, or it is held back: by a pause, or until rows are there that it needs.
///
/// # Errors
/// The text of the error reply; the transaction, if there is one, has failed.
pub(super) fn admit(call: &mut Call<'_>, spec: &Spec, name: &str) -> Result<bool, String> {
    let admitted = check(call, spec, name);
    match &admitted {
        Ok(true) => monitor::tell(call, spec),
        Ok(false) => {}
        Err(_) => call.session.fail_transaction(),
    }
    admitted
}

fn check(call: &mut Call<'_>, spec: &Spec, name: &str) -> Result<bool, String> {
    if !spec.takes(call.args.len()) {
        let text = Fault::Arity.text(name).into_owned();
        return Err(transaction::refused(call, spec, text));
    }
    if !call.session.is_authenticated() && !spec.flags.contains(&"no_auth") {
        return Err("NOAUTH Authentication required.".to_owned());
    }
    permission::require(call, spec, name)?;
    if call.session.protocol() == Protocol::Resp2
        && call.session.is_subscriber()
        && !OF_SUBSCRIBERS.contains(&spec.name)
    {
        return Err(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        ));
    }
    if call.session.is_monitor() && spec.keys != Keys::NONE {
        return Err("ERR Replica can't interact with the keyspace".to_owned());
    }
    roles::require(call, spec)?;
    if call.shared.db.is_loading() && !spec.flags.contains(&"loading") {
        return Err(LOADING.to_owned());
    }
    let writes = spec.is_write() || (spec.name == "exec" && call.session.transaction_writes());
    if !call.session.in_exec()
        && let Some(until) = call.shared.pause.holds(writes)
    {
        call.session.wait(call.shared, Some(until), What::PauseEnd);
        return Ok(false);
    }
    if spec.flags.contains(&"denyoom") {
        let admitted = call.shared.db.check_memory();
        admitted.map_err(|error| engine_text(&error).into_owned())?;
    }
    if awaits_rows(call, spec) {
        return Ok(false);
    }
    let queued = transaction::queue(call, spec);
    queued
        .map(|queued| !queued)
        .map_err(|fault| fault.text(name).into_owned())
}

/// Whether a command is held back on an event loop for rows of parked series that it names.
fn awaits_rows(call: &mut Call<'_>, spec: &Spec) -> bool {
    let (args, session) = (call.args, &mut *call.session);
    let is_on_loop = call.cancelled.is_none() && !session.in_exec();
    // What is served before the database is open names no series.
    let parked = call.shared.db.opened().map_or(0, |db| db.parked_len());
    if parked == 0 || !is_on_loop || session.in_multi() {
        return false;
    }
    let places = spec.keys.places(args, 0, spec.flags).unwrap_or_default();
    session.await_rows(call.shared, places.iter().map(|(at, _)| args.word(*at)))
}
