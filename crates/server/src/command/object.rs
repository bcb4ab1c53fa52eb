//! `OBJECT ENCODING|REFCOUNT|FREQ|IDLETIME key`, `OBJECT HELP`: how Redis keeps
//! a value. A missing key answers null.
//!
//! FREQ and IDLETIME are refused: nothing counts or times the reads of a
//! series.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Keys, Run};
use super::spec::{Apply, Spec};

const HELP: Spec = Spec::of_group("keyspace", &["loading", "stale"]).help();

pub(crate) const SPECS: &[Spec] = &[HELP.flags(&[]).container(
    "object",
    "Describes the value of a key.",
    &[
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
    ],
)];

const LOOKED_AT: Keys = Keys(&[Run::at(2, Access::Look)]);

const fn about(name: &'static str, summary: &'static str, apply: Apply) -> Spec {
    HELP.flags(&["readonly"])
        .named(name, apply)
        .words(3, "key")
        .keys(LOOKED_AT)
        .about(summary)
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
