//! Making clients wait and letting them go on: `CLIENT PAUSE milliseconds
//! [WRITE|ALL]`, `CLIENT UNPAUSE`, `CLIENT UNBLOCK id [TIMEOUT|ERROR]`.
//!
//! A paused command waits where it is and is run when the pause ends; a client
//! that waits for samples, followers or the disk can be let go with UNBLOCK.

use crate::base::clock::now_ms;
use crate::command::call::{Call, Outcome};
use crate::command::fault::{Fault, NOT_AN_INTEGER};
use crate::messaging::{Message, Why};
use latewood_wire::resp::number::parse_i64;
use std::time::{Duration, Instant};

pub(super) fn pause(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let all = match args.len() {
        3 => true,
        4 if args.is(3, "ALL") => true,
        4 if args.is(3, "WRITE") => false,
        4 => return Fault::refuse("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => return Err(Fault::Arity),
    };
    let pause_ms = parse_i64(args.word(2))
        .ok_or(Fault::line("ERR timeout is not an integer or out of range"))?;
    let pause_ms = u64::try_from(pause_ms).map_err(|_| Fault::line("ERR timeout is negative"))?;
    let end_ms = i64::try_from(pause_ms)
        .ok()
        .and_then(|pause_ms| now_ms().checked_add(pause_ms));
    let until = Instant::now().checked_add(Duration::from_millis(pause_ms));
    let until = until
        .filter(|_| end_ms.is_some())
        .ok_or(Fault::line("ERR timeout is out of range"))?;
    call.shared.pause.begin(until, all);
    call.ok()
}

pub(super) fn unpause(call: &mut Call<'_>) -> Outcome {
    call.shared.pause.end();
    for mailbox in call.shared.channels().mailboxes().mailboxes() {
        mailbox.put(Message::EndPause);
    }
    call.ok()
}

pub(super) fn unblock(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let why = match args.len() {
        3 => Why::Unblocked,
        4 if args.is(3, "TIMEOUT") => Why::Unblocked,
        4 if args.is(3, "ERROR") => Why::Refused,
        4 => {
            return Fault::refuse("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        }
        _ => return Err(Fault::Arity),
    };
    let id = parse_i64(args.word(2)).ok_or(NOT_AN_INTEGER)?;
    let client = u64::try_from(id)
        .ok()
        .and_then(|id| call.shared.clients.get(id));
    let claimed = client.filter(|client| client.figures.claim_unblock());
    if let Some(client) = &claimed {
        let mail = Message::Resume(client.id, why);
        call.shared
            .channels()
            .mailboxes()
            .send(client.event_loop, mail);
    }
    call.integer(i64::from(claimed.is_some()))
}
