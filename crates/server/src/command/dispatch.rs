//! From a parsed command to its reply: [`execute`] looks the command up, checks
//! what all commands have in common and calls it.
//!
//! A command that fails leaves no part of a reply behind: what it had written
//! is taken back and the error stands in its place.

use super::admit::admit;
use super::args::Args;
use super::call::Call;
use super::fault::{Fault, REPEATED_BYTES_MAX};
use super::spec::{Action, Apply, Spec, find_in};
use super::transaction;
use super::words::shown_words;
use crate::base::redis_commands;
use crate::client::{ReplyMode, Streamed};
use std::time::Instant;

/// Executes one command; its reply goes to the end of `call.out`.
pub(crate) fn execute(call: &mut Call<'_>) {
    let start = call.out.len();
    let reply_mode = call.session.reply_mode;
    let muted = match reply_mode {
        ReplyMode::On => false,
        ReplyMode::Off => true,
        ReplyMode::SkipNext => {
            call.session.reply_mode = ReplyMode::On;
            true
        }
    };
    call.session.reply_turned_on = false;
    if let Err(text) = dispatch(call) {
        call.out.truncate(start);
        call.session.end_stream(call.shared);
        call.shared.observe.errors.note(&text, 1);
        call.reply().error(text);
    }
    if call.session.is_paused() {
        // It will be run again.
        call.session.reply_mode = reply_mode;
        return;
    }
    if let Some(waiting) = &mut call.session.waiting {
        waiting.is_muted = muted;
    }
    if (muted && !call.session.reply_turned_on) || call.session.reply_mode != ReplyMode::On {
        call.session.end_stream(call.shared);
        call.out.truncate(start);
    }
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
    let begun = Instant::now();
    let outcome = transaction::in_time(call, spec).and_then(|()| apply(call));
    let outcome = outcome.and_then(|()| transaction::fit(call, spec));
    let outcome = outcome.map_err(|fault| {
        let refused = &call.shared.observe.refused;
        fault.limit().inspect(|&limit| refused.note(limit));
        fault.text(name).into_owned()
    });
    let (took, failed) = (begun.elapsed(), outcome.is_err());
    let words = || shown_words(name, call.args);
    if call.session.stream.is_some() && !failed {
        // Its reply is part of its work: it is noted at the end of that.
        call.session.streamed = Some(Box::new(Streamed::new(spec.id(), words(), took)));
    } else {
        let observe = &call.shared.observe;
        observe.ran(spec.id(), words, &call.session.info, (took, failed));
    }
    // What the command changed of its own user holds from the next one on.
    call.session.renew_permit(call.shared);
    outcome
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
        "(Latewood keeps time series only)"
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
