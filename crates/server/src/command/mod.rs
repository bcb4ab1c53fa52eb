//! From a parsed command to its reply.
//!
//! One file per command or close family: its grammar in the doc comment, then
//! parse, apply, reply. `registry.rs` holds the commands as data; [`execute`]
//! looks one up, checks what all commands have in common and calls it.
//!
//! A command that fails leaves no part of a reply behind: what it had written
//! is taken back and the error stands in its place.

pub(crate) mod absent;
mod acl;
mod add;
mod admit;
mod alter;
mod arguments;
mod auth;
mod client;
mod cluster;
mod command_info;
mod compact;
mod config;
mod connection;
mod copy;
mod create;
mod database;
mod delete;
mod docs;
mod dump;
mod exact;
mod expire;
mod facts;
mod fault;
mod filter;
mod get;
mod increment;
mod info;
mod keys;
mod keyspace;
mod label_options;
mod latency;
mod latewood;
mod madd;
mod memory;
mod mget;
mod module;
mod monitor;
mod mrange;
mod nrange;
mod object;
pub(crate) mod permission;
mod persistence;
mod pubsub;
mod query_index;
mod query_labels;
mod range;
mod range_options;
mod read;
pub(crate) mod registry;
mod rename;
mod reply_limit;
mod rows;
mod rules;
mod scan;
mod series_info;
mod series_options;
mod slowlog;
mod time;
mod transaction;

pub(crate) use add::{EVENT as ADD_EVENT, sample};
pub(crate) use admit::is_write;
pub(crate) use fault::{Fault, engine_text, refusal_text};
pub(crate) use info::process::{cpu, resident};
pub(crate) use read::SampleReader;
pub(crate) use transaction::Transaction;

use crate::observe::shown_words;
use crate::session::{ReplyMode, Session};
use crate::shared::Shared;
use crate::stream::Streamed;
use admit::admit;
use latewood_wire::resp::{Command, Reply};
pub(crate) use registry::Spec;
use registry::{Action, Keys};
use std::time::Instant;

/// What a command ends with.
pub(crate) type Outcome = Result<(), Fault>;

/// One command on its way through the server.
pub(crate) struct Call<'a> {
    /// Its words, the name first.
    pub(crate) args: Args<'a>,
    /// Where the reply goes.
    pub(crate) out: &'a mut Vec<u8>,
    /// The connection it came from.
    pub(crate) session: &'a mut Session,
    /// The server.
    pub(crate) shared: &'a Shared,
}

/// The words of a command.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    command: &'a Command,
    buffer: &'a [u8],
    /// Words of the command that stand before these.
    skipped: usize,
    len: usize,
}

impl<'a> Args<'a> {
    /// The words of `command`, which was parsed from the start of `buffer`.
    pub(crate) fn new(command: &'a Command, buffer: &'a [u8]) -> Self {
        Self {
            command,
            buffer,
            skipped: 0,
            len: command.len(),
        }
    }

    /// How many words there are, the name included.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first `len` words, of which there must be as many.
    pub(crate) fn first(self, len: usize) -> Self {
        Self { len, ..self }
    }

    /// Those of a subcommand: without the container's name. There must be two.
    pub(crate) fn of_subcommand(self) -> Self {
        Self {
            skipped: self.skipped + 1,
            len: self.len - 1,
            ..self
        }
    }

    /// Word `i`, which must exist.
    pub(crate) fn word(&self, i: usize) -> &'a [u8] {
        self.command.arg(self.buffer, self.skipped + i)
    }

    /// Word `i`, if there are as many.
    pub(crate) fn get(&self, i: usize) -> Option<&'a [u8]> {
        (i < self.len()).then(|| self.word(i))
    }

    /// Word `i` is `word`, in any case.
    pub(crate) fn is(&self, i: usize, word: &str) -> bool {
        self.get(i)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The words from `from` on.
    pub(crate) fn from(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        let args = *self;
        (from..self.len()).map(move |i| args.word(i))
    }

    /// The first place at or after `from` that is `word`, in any case.
    pub(crate) fn find(&self, word: &str, from: usize) -> Option<usize> {
        (from..self.len()).find(|&i| self.is(i, word))
    }
}

impl Call<'_> {
    /// Writes to the reply in the connection's protocol.
    pub(crate) fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.session.protocol)
    }
}

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
    let Some(spec) = registry::find(args.word(0)) else {
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
                call.shared.observe.rejected(spec);
                call.session.fail_transaction();
                return Err(Fault::Arity.text(spec.name).into_owned());
            };
            let sub = registry::find_in(subcommands, name);
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

fn run(
    call: &mut Call<'_>,
    spec: &'static Spec,
    name: &str,
    apply: registry::Apply,
) -> Result<(), String> {
    let admitted = admit(call, spec, name);
    if admitted.is_err() {
        call.shared.observe.rejected(spec);
    }
    if !admitted? {
        return Ok(());
    }
    let begun = Instant::now();
    let outcome = apply(call).and_then(|()| transaction::fit(call, spec));
    let outcome = outcome.map_err(|fault| {
        let refused = &call.shared.observe.refused;
        fault.limit().inspect(|&limit| refused.note(limit));
        fault.text(name).into_owned()
    });
    let (took, failed) = (begun.elapsed(), outcome.is_err());
    let words = || shown_words(name, call.args);
    if call.session.stream.is_some() && !failed {
        // Its reply is part of its work: it is noted at the end of that.
        call.session.streamed = Some(Box::new(Streamed::new(spec, words(), took)));
    } else {
        let observe = &call.shared.observe;
        observe.ran(spec, words, &call.session.info, (took, failed));
    }
    // What the command changed of its own user holds from the next one on.
    call.session.renew_permit(call.shared);
    outcome
}

/// Bytes of a name or of all arguments that an error repeats.
const REPEATED_BYTES_MAX: usize = 128;

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
    let why = if absent::is_known(args.word(0)) {
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
