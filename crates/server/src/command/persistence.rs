//! What is on disk, and the end: `SAVE`, `BGSAVE [SCHEDULE]`, `LASTSAVE`,
//! `WAITAOF numlocal numreplicas timeout`, `WAIT numreplicas timeout`,
//! `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] | ABORT`.
//!
//! SAVE and BGSAVE write what is in memory into blocks; SHUTDOWN does so too
//! unless asked not to. There are no replicas: WAIT and WAITAOF answer at once
//! with the truth instead of waiting for replicas that will not come.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::fault::{NOT_AN_INTEGER, SYNTAX};
use super::spec::{Action, Keys, Spec};
use crate::state::{Shared, Stop};
use latewood_engine::Stats;
use latewood_wire::resp::number::parse_i64;
use std::sync::atomic::Ordering;

/// A stop that leaves what is in memory to the log.
pub(crate) const SHUTDOWN_NOSAVE: &str = "SHUTDOWN NOSAVE";

const SAVE: Spec = Spec {
    name: "save",
    arity: 1,
    flags: &["admin", "noscript", "no_multi"],
    keys: Keys::NONE,
    group: "server",
    syntax: "",
    summary: "Flushes everything in memory into blocks and returns when it is on disk.",
    action: Action::Apply(save),
};

pub(crate) const SPECS: &[Spec] = &[
    SAVE,
    Spec {
        name: "bgsave",
        flags: &["admin", "noscript"],
        arity: -1,
        syntax: "[SCHEDULE]",
        summary: "The same as SAVE, in the background.",
        action: Action::Apply(background_save),
        ..SAVE
    },
    Spec {
        name: "lastsave",
        flags: &["loading", "stale", "fast"],
        summary: "Returns the time of the last completed SAVE or BGSAVE, or of the start.",
        action: Action::Apply(last_save),
        ..SAVE
    },
    Spec {
        name: "wait",
        arity: 3,
        flags: &["blocking"],
        syntax: "numreplicas timeout",
        summary: "Returns 0: there are no replicas.",
        action: Action::Apply(wait),
        ..SAVE
    },
    Spec {
        name: "waitaof",
        arity: 4,
        flags: &["blocking"],
        syntax: "numlocal numreplicas timeout",
        summary: "Waits until the writes of this connection are on disk.",
        action: Action::Apply(wait_for_log),
        ..SAVE
    },
    Spec {
        name: "shutdown",
        arity: -1,
        flags: &["admin", "noscript", "loading", "stale", "no_multi"],
        syntax: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
        summary: "Stops the server; acknowledged writes are kept.",
        action: Action::Apply(shutdown),
        ..SAVE
    },
];

fn save(call: &mut Call<'_>) -> Outcome {
    call.shared.db.flush()?;
    call.shared.db.sync()?;
    call.reply().ok();
    Ok(())
}

fn background_save(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 2 || (args.len() == 2 && !args.is(1, "SCHEDULE")) {
        return Err(SYNTAX);
    }
    call.shared.db.flush_soon();
    call.reply().simple("Background saving started");
    Ok(())
}

fn last_save(call: &mut Call<'_>) -> Outcome {
    let saved_s = last_save_s(call.shared, &call.shared.db.stats());
    call.reply().integer(saved_s);
    Ok(())
}

/// Seconds since the epoch of the last SAVE or BGSAVE that is done, or of the
/// start.
pub(super) fn last_save_s(shared: &Shared, stats: &Stats) -> i64 {
    let started_s = shared.jobs.last_save_s.load(Ordering::Relaxed);
    started_s.max(stats.flush.saved_at_ms / 1000)
}

fn timeout(word: &[u8]) -> Outcome {
    match parse_i64(word) {
        None => Err(Fault::line("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(Fault::line("ERR timeout is negative")),
        Some(_) => Ok(()),
    }
}

fn wait(call: &mut Call<'_>) -> Outcome {
    parse_i64(call.args.word(1)).ok_or(NOT_AN_INTEGER)?;
    timeout(call.args.word(2))?;
    call.reply().integer(0);
    Ok(())
}

fn wait_for_log(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let local = match parse_i64(args.word(1)) {
        Some(local @ (0 | 1)) => local,
        Some(_) => {
            return Err(Fault::line(
                "ERR value is out of range, value must between 0 and 1",
            ));
        }
        None => return Err(NOT_AN_INTEGER),
    };
    if parse_i64(args.word(2)).is_none_or(|replicas| replicas < 0) {
        return Err(Fault::line("ERR value is out of range, must be positive"));
    }
    timeout(args.word(3))?;
    if local == 1 && !call.shared.settings.wal {
        return Err(Fault::line(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    if local == 1 {
        call.shared.db.sync_to(call.session.written)?;
    }
    let is_on_disk =
        call.shared.settings.wal && call.shared.db.durable_position() >= call.session.written;
    let mut reply = call.reply();
    reply.array(2);
    reply.integer(i64::from(is_on_disk));
    reply.integer(0);
    Ok(())
}

fn shutdown(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut modes = 0;
    for at in 1..args.len() {
        if args.is(at, "ABORT") && args.len() == 2 {
            return Err(Fault::line("ERR No shutdown in progress."));
        }
        if args.is(at, "SAVE") || args.is(at, "NOSAVE") {
            modes += 1;
        } else if !args.is(at, "NOW") && !args.is(at, "FORCE") {
            return Err(SYNTAX);
        }
    }
    if modes > 1 {
        return Err(SYNTAX);
    }
    call.session.closing = true;
    let keeps_log_only = (1..args.len()).any(|at| args.is(at, "NOSAVE"));
    let by = ["SHUTDOWN", SHUTDOWN_NOSAVE][usize::from(keeps_log_only)];
    call.shared.lifetime.stop(Stop::Asked(by));
    Ok(())
}
