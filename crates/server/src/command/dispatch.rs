//! From a parsed command to its reply: [`execute`] looks the command up, checks
//! what all commands have in common and calls it.
//!
//! A command that fails leaves no part of a reply behind: what it had written
//! is taken back and the error stands in its place. A command that only reads may leave
//! the rest of its work to a reader thread ([`Call::finish`]), and all of it if it meets a block
//! that is not on this machine.

use super::admit::admit;
use super::args::Args;
use super::call::{Call, Outcome, Rest};
use super::fault::{Fault, REPEATED_BYTES_MAX, UNKNOWN};
use super::spec::{Action, Apply, Spec, find_in};
use super::words::shown_words;
use super::{permission, roles, transaction, work};
use crate::base::redis_commands;
use crate::client::{Arrived, Beside, Need, Streamed};
use crate::observe::Ran;
use crate::state::Shared;
use latewood_engine::io::waiting::{PATIENCE, leave_rows, until};
use latewood_wire::resp::{Parsed, Parser, encode_command};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Executes one command; its reply goes to the end of `call.out`.
pub(crate) fn execute(call: &mut Call<'_>) {
    let start = call.out.len();
    let before = call.session.replies;
    let is_muted = call.session.replies.begin();
    if let Err(text) = dispatch(call) {
        fail(call, start, text);
    }
    if call.session.is_held_back() {
        // It will be run again.
        call.session.replies = before;
        return;
    }
    call.session.mute_wait(is_muted);
    if call.session.replies.drop_last(is_muted) {
        call.session.end_stream(call.shared);
        call.out.truncate(start);
    }
}

/// Puts an error in the place of what the command wrote from `start` on.
fn fail(call: &mut Call<'_>, start: usize, text: String) {
    call.out.truncate(start);
    call.session.end_stream(call.shared);
    call.shared.observe.errors.note(&text, 1);
    call.reply().error(text);
}

/// Finds and runs the command; `Err` holds the text of its error reply.
fn dispatch(call: &mut Call<'_>) -> Result<(), String> {
    let args = call.args;
    let Some(spec) = call.commands.find(args.word(0)) else {
        call.session.fail_transaction();
        return Err(unknown_command(args));
    };
    let info = &call.session.info;
    match spec.action {
        Action::Apply(apply) => {
            info.set_command(spec.name, None);
            run(call, spec, spec.name, apply)
        }
        Action::Either(apply, _) if args.len() == 1 => {
            info.set_command(spec.name, None);
            run(call, spec, spec.name, apply)
        }
        Action::Container(subcommands) | Action::Either(_, subcommands) => {
            let Some(name) = args.get(1) else {
                call.shared.observe.rejected(spec.id());
                call.session.fail_transaction();
                return Err(Fault::Arity.text(spec.name).into_owned());
            };
            let sub = find_in(subcommands, name);
            let found = sub.and_then(|sub| match sub.action {
                Action::Apply(apply) => Some((sub, apply)),
                _ => None,
            });
            let Some((sub, apply)) = found else {
                call.session.fail_transaction();
                return Err(unknown_subcommand(spec, name));
            };
            info.set_command(spec.name, Some(sub.name));
            let full_name = format!("{}|{}", spec.name, sub.name);
            run(call, sub, &full_name, apply)
        }
    }
}

fn run(call: &mut Call<'_>, spec: &'static Spec, name: &str, apply: Apply) -> Result<(), String> {
    let admitted = admit(call, spec, name);
    if admitted.is_err() {
        call.shared.observe.rejected(spec.id());
    }
    if !admitted? {
        return Ok(());
    }
    let (start, beside) = (call.out.len(), proven_as(call, spec));
    let outcome = perform(call, spec, name, Duration::ZERO, |call| {
        transaction::in_time(call, spec)?;
        apply_or_leave(call, spec, apply)?;
        transaction::fit(call, spec)
    });
    // What the command changed of its own user holds from the next one on.
    call.session.renew_permit(call.shared);
    let has_failed = outcome.is_err();
    if let Err(text) = outcome {
        fail(call, start, text);
    }
    // A transaction that was refused changed nothing, and its reply says so.
    let is_refused = |beside: &Beside| beside.is_write && has_failed;
    if let Some(beside) = beside.filter(|beside| !is_refused(beside)) {
        let (session, out) = (&mut *call.session, &mut *call.out);
        session.answer_proven(call.shared, out, start, beside);
    }
    Ok(())
}

/// How the reply of a command waits for a proof, if it needs one. That of EXEC does as a whole;
/// where it is refused, nobody knows what a transaction that writes did.
fn proven_as(call: &Call<'_>, spec: &Spec) -> Option<Beside> {
    // Most servers have none.
    let needs_proof = call.shared.lease.get().is_some() || call.shared.node.get().is_some();
    let is_exec = spec.name == "exec";
    let is_idle = call.shared.node.get().is_some()
        && is_exec
        && call.session.transaction_aim().need == Need::Nothing;
    let is_read = is_exec && !is_idle || spec.flags.contains(&"readonly");
    (needs_proof && is_read && !call.session.in_exec()).then(|| Beside {
        is_write: is_exec && call.session.transaction_writes(),
        ..Beside::READ
    })
}

/// Runs a command. One that only reads, and meets a block that is not on this machine or a row of a
/// parked series that is not at hand, is run once more on a reader thread, which waits for the block
/// and reads the row.
fn apply_or_leave(call: &mut Call<'_>, spec: &Spec, apply: Apply) -> Outcome {
    let begun = call.out.len();
    let only_reads = spec.flags.contains(&"readonly") && !spec.flags.contains(&"blocking");
    let leaves = only_reads && call.leaves(work::UNKNOWN);
    let leaves_rows = leaves.then(leave_rows);
    let outcome = apply(call);
    drop(leaves_rows);
    let fault = match outcome {
        Err(fault) if fault.is_away() => fault,
        done => return done,
    };
    if !leaves || call.session.long_reply.has_more() {
        return Err(fault);
    }
    call.out.truncate(begun);
    call.finish(work::UNKNOWN, apply)
}

/// Does the work of a command that has taken `before` until now, or a part of it, and
/// leaves the rest to a reader thread.
fn perform(
    call: &mut Call<'_>,
    spec: &'static Spec,
    name: &str,
    before: Duration,
    work: impl FnOnce(&mut Call<'_>) -> Outcome,
) -> Result<(), String> {
    let (begun, written) = (Instant::now(), call.session.writes.newest());
    let outcome = work(call);
    let is_of_one_key = spec.keys.first_last_step() == (1, 1, 1);
    let outcome = outcome.map_err(|fault| {
        if let Fault::Engine(error) = &fault {
            let session = &call.session;
            let has_written = session.writes.newest() > written;
            if has_written && error.is_away() {
                // To be sent again is what TRYAGAIN asks for.
                return format!("{UNKNOWN}: {error}");
            }
            let is_begun = session.in_exec() || has_written;
            if let Some(line) = roles::lost(call.shared, error, session.slot(), is_begun) {
                return line;
            }
        }
        let fault = match fault {
            Fault::Engine(error) if error.is_away() && is_of_one_key => {
                Fault::about(error, call.args.word(1))
            }
            fault => fault,
        };
        let refused = &call.shared.observe.refused;
        fault.limit().inspect(|&limit| refused.note(limit));
        fault.text(name).into_owned()
    });
    let (took, failed) = (before + begun.elapsed(), outcome.is_err());
    if let Some(rest) = call.rest.take() {
        return leave(call, spec, name, took, rest);
    }
    let words = || shown_words(name, call.args);
    if call.session.long_reply.has_more() && !failed {
        // Its reply is part of its work: it is noted at the end of that.
        let command = Streamed::new(spec.id(), words(), took);
        call.session.long_reply.is_of(command);
    } else {
        let observe = &call.shared.observe;
        let ran = Ran { took, failed };
        observe.ran(spec.id(), words, &call.session.info, ran);
    }
    outcome
}

/// What a value of a list in a FILTER takes beside its text.
const LISTED_BYTES: usize = 48;

/// Leaves the rest of a command to a reader thread. Until that ends the command counts
/// in what its connection holds.
fn leave(
    call: &mut Call<'_>,
    spec: &'static Spec,
    name: &str,
    took: Duration,
    rest: Rest,
) -> Result<(), String> {
    let Rest {
        samples,
        wait,
        work,
    } = rest;
    let (mut words, commands, name) = (Vec::new(), call.commands, name.to_owned());
    encode_command(&mut words, &call.args.from(0).collect::<Vec<_>>());
    let listed = words.iter().filter(|byte| **byte == b',').count();
    // As words, and as what they were parsed to.
    let held_bytes = 2 * words.len() + LISTED_BYTES * listed;
    if let Err(over) = call.session.hold(call.shared, held_bytes) {
        let fault = Fault::from(over);
        let observe = &call.shared.observe;
        fault.limit().inspect(|&limit| observe.refused.note(limit));
        let shown = || shown_words(&name, call.args);
        let ran = Ran { took, failed: true };
        observe.ran(spec.id(), shown, &call.session.info, ran);
        return Err(fault.text(&name).into_owned());
    }
    let mut session = call.session.of_reader();
    let made = move |shared: &Shared, cancelled: &AtomicBool| {
        let _until = until(Instant::now() + PATIENCE);
        let (mut parser, mut bytes) = (Parser::new(), Vec::new());
        let parsed = parser.parse(&words, &transaction::LIMITS);
        let mut call = Call {
            commands,
            args: Args::new(parser.command(), &words),
            out: &mut bytes,
            session: &mut session,
            shared,
            cancelled: Some(cancelled),
            rest: None,
        };
        let outcome = match parsed {
            Ok(Parsed::Command { .. }) => resume(&mut call, spec, &name, took, work),
            _ => Err("ERR a command cannot be read again".to_owned()),
        };
        if let Err(text) = outcome {
            fail(&mut call, 0, text);
        }
        Arrived {
            bytes,
            rest: session.long_reply,
            ..Arrived::default()
        }
    };
    let is_write = spec.flags.contains(&"write");
    let kind = Beside {
        is_begun: false,
        is_before: false,
        // A write may wait for the end of a pause.
        is_brief: !is_write && work::is_brief(samples),
        is_write,
        is_read: spec.flags.contains(&"readonly"),
    };
    let (session, shared) = (&mut *call.session, call.shared);
    match wait {
        Some(wait) => session.read_beside_after(shared, wait, kind, held_bytes, made),
        None => session.read_beside(shared, kind, held_bytes, made),
    }
    Ok(())
}

/// Does the rest of a command, if its user may still run it.
fn resume(
    call: &mut Call<'_>,
    spec: &'static Spec,
    name: &str,
    took: Duration,
    work: impl FnOnce(&mut Call<'_>) -> Outcome,
) -> Result<(), String> {
    call.session.renew_permit(call.shared);
    // Of a user who is gone the event loop closes the connection.
    if call.session.is_closing() {
        return Ok(());
    }
    let allowed = permission::require(call, spec, name);
    allowed.inspect_err(|_| call.shared.observe.rejected(spec.id()))?;
    perform(call, spec, name, took, work)
}

#[cold]
fn unknown_command(args: Args<'_>) -> String {
    let mut shown = String::new();
    for arg in args.from(1) {
        if shown.len() >= REPEATED_BYTES_MAX {
            break;
        }
        let room = REPEATED_BYTES_MAX - shown.len();
        shown.push('\'');
        shown.push_str(&beginning(arg, room));
        shown.push_str("' ");
    }
    let name = beginning(args.word(0), REPEATED_BYTES_MAX);
    let why = if redis_commands::is_known(args.word(0)) {
        "(Latewood keeps time series only: docs/compatibility.md)"
    } else {
        ""
    };
    format!("ERR unknown command '{name}', with args beginning with: {shown}{why}")
}

#[cold]
fn unknown_subcommand(spec: &Spec, name: &[u8]) -> String {
    let name = beginning(name, REPEATED_BYTES_MAX);
    let container = spec.name.to_ascii_uppercase();
    format!("ERR unknown subcommand '{name}'. Try {container} HELP.")
}

/// The first `bytes_max` bytes, readable.
fn beginning(word: &[u8], bytes_max: usize) -> String {
    String::from_utf8_lossy(&word[..word.len().min(bytes_max)]).into_owned()
}
