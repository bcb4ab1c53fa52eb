//! `OBJECT ENCODING|REFCOUNT|FREQ|IDLETIME key`, `OBJECT HELP`: how Redis keeps
//! a value. A missing key answers null.
//!
//! FREQ and IDLETIME are refused: nothing counts or times the reads of a
//! series.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Keys, Run};
use super::spec::Spec;

const HELP: Spec = Spec::of_group("keyspace", &["loading", "stale"]).help();

const ABOUT: Spec = HELP
    .flags(&["readonly"])
    .words(3, "key")
    .keys(Keys(&[Run::at(2, Access::Look)]));

pub(crate) const SPECS: &[Spec] = &[HELP.flags(&[]).container(
    "object",
    "Describes the value of a key.",
    &[
        ABOUT
            .named("encoding", encoding)
            .about("Returns raw, as for every module type."),
        ABOUT
            .named("freq", |call| refused(call, FREQUENCY))
            .about("Not supported: reads of a series are not counted."),
        ABOUT
            .named("idletime", |call| refused(call, IDLE_TIME))
            .about("Not supported: reads of a series are not timed."),
        ABOUT
            .named("refcount", references)
            .about("Returns 1: values are not shared."),
        HELP,
    ],
)];

const FREQUENCY: Fault = Fault::line(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const IDLE_TIME: Fault = Fault::line(
    "ERR the time of the last access to a series is not tracked by Latewood (docs/compatibility.md)",
);

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
