//! `MULTI`, `EXEC`, `DISCARD`, `WATCH key...`, `UNWATCH`.
//!
//! After MULTI commands are checked, answered with QUEUED and kept as bytes;
//! EXEC parses and runs them one after the other, with no command of another
//! connection between them (`state/exec_lock.rs`); its replies together are no longer than
//! one may be. Where a check failed EXEC runs none,
//! and neither where a watched key has changed or expired. A command that fails while
//! EXEC runs has an error in its place and the others run all the same.

use super::args::Args;
use super::call::{Call, Outcome};
use super::dispatch::execute;
use super::fault::Fault;
use super::reply_limit::ReplyLimit;
use super::spec::{Keys, Spec, Table, find_in};
use super::{monitor, roles};
use crate::client::{Bounds, Session};
use crate::state::Shared;
use latewood_model::limits::COMMAND_BYTES_MAX;
use latewood_wire::resp::{Limits, Parsed, Parser};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const UNWATCH: Spec = Spec::of_group(
    "transactions",
    &["noscript", "loading", "stale", "fast", "allow_busy"],
)
.named("unwatch", unwatch)
.about("Clears the watched keys.");

pub(crate) const SPECS: &[Spec] = &[
    UNWATCH
        .named("multi", multi)
        .about("Starts a transaction: the following commands are queued."),
    UNWATCH
        .flags(&["noscript", "loading", "stale", "skip_slowlog"])
        .named("exec", exec)
        .about("Runs the queued commands without commands of other clients in between."),
    UNWATCH
        .named("discard", discard)
        .about("Discards the queued commands."),
    UNWATCH
        .named("watch", watch)
        .words(-2, "key [key ...]")
        .keys(Keys::ALL)
        .about("Makes the next EXEC run only if none of the keys has changed."),
    UNWATCH,
];

/// Queues a checked command, if it is one to queue; whether it was.
///
/// # Errors
/// Where it cannot be queued; the transaction has failed then.
pub(crate) fn queue(call: &mut Call<'_>, spec: &Spec) -> Result<bool, Fault> {
    if !call.session.in_multi() {
        return Ok(false);
    }
    if ["multi", "exec", "discard", "watch", "quit", "reset"].contains(&spec.name) {
        return Ok(false);
    }
    let words: Vec<&[u8]> = call.args.from(0).collect();
    let queued = if spec.flags.contains(&"no_multi") {
        Fault::refuse("ERR Command not allowed inside a transaction")
    } else {
        let node = call.shared.node.get();
        let aim = node.map(|_| roles::aim_of(call, spec)).unwrap_or_default();
        let writes = spec.is_write();
        let queued = call.session.queue(call.shared, &words, writes, aim);
        queued.map_err(Fault::from)
    };
    queued.inspect_err(|_| call.session.fail_transaction())?;
    call.reply().simple("QUEUED");
    Ok(true)
}

/// Whether EXEC is held back for rows of parked series that the queued commands name. Asked before
/// the exec lock is taken.
pub(super) fn awaits_rows(commands: &Table, shared: &Shared, session: &mut Session) -> bool {
    let parked = shared.db.opened().map_or(0, |db| db.parked_len());
    if parked == 0 || !session.may_hold_back() {
        return session.hold_back(shared, Vec::new());
    }
    // Whether one of those that are watched has expired is looked at first.
    let mut away = shared.db.rows_away(session.watched());
    let (mut bytes, mut parser) = (session.queued(), Parser::new());
    while let Ok(Parsed::Command { consumed }) = parser.parse(bytes, &LIMITS) {
        let args = Args::new(parser.command(), bytes);
        let keys = commands.find(args.word(0)).and_then(|spec| {
            let sub = find_in(spec.subcommands(), args.get(1).unwrap_or_default());
            let spec = sub.unwrap_or(spec);
            spec.keys.places(args, 0, spec.flags)
        });
        let keys = keys.unwrap_or_default();
        away.append(
            &mut shared
                .db
                .rows_away(keys.iter().map(|(at, _)| args.word(*at))),
        );
        bytes = &bytes[consumed..];
    }
    session.hold_back(shared, away)
}

/// The error text for a command with a wrong number of words: a wrong EXEC ends
/// its transaction.
pub(crate) fn refused(call: &mut Call<'_>, spec: &Spec, text: String) -> String {
    if spec.name != "exec" {
        return text;
    }
    call.session.end_transaction(call.shared);
    call.session.unwatch(call.shared);
    let reason = text.strip_prefix("ERR ").unwrap_or(&text);
    format!("EXECABORT Transaction discarded because of: {reason}")
}

fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.in_multi() {
        return Fault::refuse("ERR MULTI calls can not be nested");
    }
    call.session.begin_transaction();
    call.ok()
}

fn discard(call: &mut Call<'_>) -> Outcome {
    if !call.session.in_multi() {
        return Fault::refuse("ERR DISCARD without MULTI");
    }
    call.session.end_transaction(call.shared);
    call.session.unwatch(call.shared);
    call.ok()
}

fn watch(call: &mut Call<'_>) -> Outcome {
    if call.session.in_multi() {
        return Fault::refuse("ERR WATCH inside MULTI is not allowed");
    }
    for key in call.args.from(1) {
        call.session.watch(call.shared, key)?;
    }
    call.ok()
}

fn unwatch(call: &mut Call<'_>) -> Outcome {
    call.session.unwatch(call.shared);
    call.ok()
}

fn exec(call: &mut Call<'_>) -> Outcome {
    let Some(transaction) = call.session.end_transaction(call.shared) else {
        return Fault::refuse("ERR EXEC without MULTI");
    };
    call.session.expire_watched(call.shared);
    let has_changed = call.session.unwatch(call.shared);
    if transaction.has_failed() {
        return Fault::refuse("EXECABORT Transaction discarded because of previous errors.");
    }
    if has_changed {
        call.reply().null_array();
        return Ok(());
    }
    call.session.set_exec(Some(Bounds {
        end: call.out.len() + ReplyLimit::of(call.shared).bytes,
        until: Instant::now() + READS_TIME_MAX,
    }));
    call.reply().array(transaction.commands());
    let outcome = run(call, transaction.bytes());
    call.session.set_exec(None);
    monitor::tell_of_exec(call);
    outcome
}

/// Refuses a command that only reads, COPY and RESTORE once EXEC has run longer than
/// others should wait. Other commands that write are run: a transaction is not half
/// done, and none of them takes long.
///
/// # Errors
/// Says so.
pub(crate) fn in_time(call: &Call<'_>, spec: &Spec) -> Outcome {
    let is_long = spec.flags.contains(&"readonly") || ["copy", "restore"].contains(&spec.name);
    let bounds = call.session.exec_bounds().filter(|_| is_long);
    if bounds.is_some_and(|bounds| Instant::now() > bounds.until) {
        Fault::refuse(
            "ERR EXEC has run for more than 1 second: commands that read, COPY and RESTORE are refused",
        )
    } else {
        Ok(())
    }
}

/// Where EXEC runs, writes the whole reply of a command that reads: it has to
/// fit to those before it. That of one that writes is short, and says what was done.
///
/// # Errors
/// The limit of a reply.
pub(crate) fn fit(call: &mut Call<'_>, spec: &Spec) -> Outcome {
    let reads = spec.flags.contains(&"readonly");
    let Some(Bounds { end, .. }) = call.session.exec_bounds().filter(|_| reads) else {
        return Ok(());
    };
    while call.out.len() <= end && call.session.continue_stream(call.shared, call.out) {}
    if call.out.len() > end {
        Err(ReplyLimit::of(call.shared).fault_of_exec())
    } else {
        Ok(())
    }
}

/// How long EXEC may have run when it begins a command that reads.
const READS_TIME_MAX: Duration = Duration::from_secs(1);

/// What was parsed and encoded again fits these.
pub(super) const LIMITS: Limits = Limits {
    arguments_max: usize::MAX,
    argument_bytes_max: COMMAND_BYTES_MAX,
    command_bytes_max: usize::MAX,
    // Long counts and lengths are lines, too.
    inline_bytes_max: usize::MAX,
    authenticated: true,
};

fn run(call: &mut Call<'_>, mut bytes: &[u8]) -> Outcome {
    let mut parser = Parser::new();
    let counter = &call.shared.counters.commands;
    while !bytes.is_empty() {
        // Each is a batch of its own.
        call.session.timing.begin(call.shared.db.stages().due());
        let Ok(Parsed::Command { consumed }) = parser.parse(bytes, &LIMITS) else {
            return Fault::refuse("ERR a queued command cannot be read again");
        };
        execute(&mut Call {
            commands: call.commands,
            args: Args::new(parser.command(), bytes),
            out: call.out,
            session: call.session,
            shared: call.shared,
            cancelled: None,
            rest: None,
        });
        while call.session.continue_stream(call.shared, call.out) {}
        call.session.timing.end();
        counter.fetch_add(1, Ordering::Relaxed);
        bytes = &bytes[consumed..];
    }
    Ok(())
}
