//! `MODULE LIST`, `MODULE HELP`: the one module that clients look for, which
//! is built in. LOAD, LOADEX and UNLOAD are refused.

use super::auth::module_version;
use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use latewood_model::Compatibility;
use latewood_wire::resp::Reply;

const SUB: Spec = Spec::of_group("server", &["admin", "noscript"]).arity(2);

const REFUSED: Spec = SUB
    .by(refuse)
    .words(-3, "name [argument ...]")
    .about("Not supported: modules cannot be loaded.");

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &[]).container(
    "module",
    "Lists the built-in module.",
    &[
        SUB.named("list", list)
            .about("Returns the modules: timeseries."),
        REFUSED.called("load"),
        REFUSED.called("loadex"),
        REFUSED.called("unload").words(3, "name"),
        SUB.flags(&["loading", "stale"]).help(),
    ],
)];

/// The modules, as HELLO and MODULE LIST show them.
pub(crate) fn reply_modules(reply: &mut Reply<'_>, compatibility: Compatibility) {
    reply.array(1);
    reply.map(4);
    reply.key("name").bulk("timeseries");
    reply.key("ver").integer(module_version(compatibility));
    reply.key("path").bulk("latewood");
    reply.key("args").array(0);
}

fn list(call: &mut Call<'_>) -> Outcome {
    let compatibility = call.compatibility();
    reply_modules(&mut call.reply(), compatibility);
    Ok(())
}

fn refuse(_: &mut Call<'_>) -> Outcome {
    Fault::refuse("ERR loading modules is not supported; the timeseries commands are built in")
}
