//! `OBJECT ENCODING|REFCOUNT|FREQ|IDLETIME key`, `OBJECT HELP`: how Redis keeps
//! a value. A missing key answers null.
//!
//! FREQ and IDLETIME are refused: nothing counts or times the reads of a
//! series.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Keys, Run};
use super::spec::{Action, Apply, Spec};

const HELP: Spec = Spec {
    name: "help",
    arity: 2,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "keyspace",
    syntax: "",
    summary: "Lists the subcommands.",
    action: Action::Apply(help),
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "object",
    arity: -2,
    flags: &[],
    syntax: "subcommand [argument ...]",
    summary: "Describes the value of a key.",
    action: Action::Container(&[
        about(
            "encoding",
            "Returns raw, as for every module type.",
            encoding,
        ),
        about(
            "freq",
            "Not supported: reads of a series are not counted.",
            |call| refused(call, FREQUENCY),
        ),
        about(
            "idletime",
            "Not supported: reads of a series are not timed.",
            |call| refused(call, IDLE_TIME),
        ),
        about("refcount", "Returns 1: values are not shared.", references),
        HELP,
    ]),
    ..HELP
}];

const LOOKED_AT: Keys = Keys(&[Run::at(2, Access::Look)]);

const fn about(name: &'static str, summary: &'static str, apply: Apply) -> Spec {
    Spec {
        name,
        arity: 3,
        flags: &["readonly"],
        keys: LOOKED_AT,
        syntax: "key",
        summary,
        action: Action::Apply(apply),
        ..HELP
    }
}

const FREQUENCY: Fault = Fault::line(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const IDLE_TIME: Fault =
    Fault::line("ERR the time of the last access to a series is not tracked by Latewood");

fn is_there(call: &Call<'_>) -> bool {
    call.shared.db.contains(call.args.word(2))
}

fn encoding(call: &mut Call<'_>) -> Outcome {
    if is_there(call) {
        call.reply().bulk("raw")
    } else {
        call.reply().null()
    }
    Ok(())
}

fn references(call: &mut Call<'_>) -> Outcome {
    if is_there(call) {
        call.reply().integer(1)
    } else {
        call.reply().null()
    }
    Ok(())
}

fn refused(call: &mut Call<'_>, fault: Fault) -> Outcome {
    if is_there(call) {
        return Err(fault);
    }
    call.reply().null();
    Ok(())
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "object");
    Ok(())
}
