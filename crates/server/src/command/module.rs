//! `MODULE LIST`, `MODULE HELP`: the one module that clients look for, which
//! is built in. LOAD, LOADEX and UNLOAD are refused.

use super::auth::MODULE_VERSION;
use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Action, Keys, Spec};
use latewood_wire::resp::Reply;

const SUB: Spec = Spec {
    name: "",
    arity: 2,
    flags: &["admin", "noscript"],
    keys: Keys::NONE,
    group: "server",
    syntax: "",
    summary: "",
    action: Action::Apply(help),
};

const REFUSED: Spec = Spec {
    arity: -3,
    syntax: "name [argument ...]",
    summary: "Not supported: modules cannot be loaded.",
    action: Action::Apply(refuse),
    ..SUB
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "module",
    arity: -2,
    flags: &[],
    keys: Keys::NONE,
    group: "server",
    syntax: "subcommand [argument ...]",
    summary: "Lists the built-in module.",
    action: Action::Container(&[
        Spec {
            name: "list",
            summary: "Returns the modules: timeseries.",
            action: Action::Apply(list),
            ..SUB
        },
        Spec {
            name: "load",
            ..REFUSED
        },
        Spec {
            name: "loadex",
            ..REFUSED
        },
        Spec {
            name: "unload",
            arity: 3,
            syntax: "name",
            ..REFUSED
        },
        Spec {
            name: "help",
            flags: &["loading", "stale"],
            summary: "Lists the subcommands.",
            ..SUB
        },
    ]),
}];

/// The modules, as HELLO and MODULE LIST show them.
pub(crate) fn reply_modules(reply: &mut Reply<'_>) {
    reply.array(1);
    reply.map(4);
    reply.bulk("name");
    reply.bulk("timeseries");
    reply.bulk("ver");
    reply.integer(MODULE_VERSION);
    reply.bulk("path");
    reply.bulk("latewood");
    reply.bulk("args");
    reply.array(0);
}

fn list(call: &mut Call<'_>) -> Outcome {
    reply_modules(&mut call.reply());
    Ok(())
}

fn refuse(_: &mut Call<'_>) -> Outcome {
    Err(Fault::line(
        "ERR loading modules is not supported; the timeseries commands are built in",
    ))
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "module");
    Ok(())
}
