//! `CONFIG GET pattern...`, `CONFIG SET {name value}...`, `CONFIG RESETSTAT`,
//! `CONFIG REWRITE`, `CONFIG HELP`.
//!
//! Each parameter is a row of one table: its name, how it is read, and how it
//! is set, if it can be. CONFIG SET checks all its pairs before it applies
//! the first, so that a wrong one changes nothing.

mod bounds;
mod observing;
mod parameters;
mod senders;

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Action, Keys, Spec};
use crate::base::glob;
use crate::state::database::LOADING;
pub(crate) use parameters::first_port;
use parameters::{PARAMETERS, Parameter, Set};
use std::sync::atomic::Ordering;

const SUB: Spec = Spec {
    name: "",
    arity: 2,
    flags: &["admin", "noscript", "loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    syntax: "",
    summary: "",
    action: Action::Apply(help),
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "config",
    arity: -2,
    flags: &[],
    keys: Keys::NONE,
    group: "server",
    syntax: "subcommand [argument ...]",
    summary: "Reads and changes the configuration.",
    action: Action::Container(&[
        Spec {
            name: "get",
            arity: -3,
            syntax: "pattern [pattern ...]",
            summary: "Gives the parameters that match glob patterns.",
            action: Action::Apply(get),
            ..SUB
        },
        Spec {
            name: "set",
            arity: -4,
            syntax: "name value [name value ...]",
            summary: "Sets parameters until the server stops.",
            action: Action::Apply(set),
            ..SUB
        },
        Spec {
            name: "resetstat",
            summary: "Sets the counters of INFO stats to zero.",
            action: Action::Apply(reset_statistics),
            ..SUB
        },
        Spec {
            name: "rewrite",
            summary: "Refused: the server does not write its configuration file.",
            action: Action::Apply(rewrite),
            ..SUB
        },
        Spec {
            name: "help",
            summary: "Lists these subcommands.",
            ..SUB
        },
    ]),
}];

fn get(call: &mut Call<'_>) -> Outcome {
    let (args, shared) = (call.args, call.shared);
    let is_wanted = |parameter: &&Parameter| {
        args.from(2)
            .any(|pattern| glob::matches_ignoring_case(pattern, parameter.name.as_bytes()))
    };
    let found: Vec<_> = parameters().filter(is_wanted).collect();
    let mut reply = call.reply();
    reply.map(found.len());
    for parameter in found {
        reply.bulk(parameter.name);
        reply.bulk((parameter.get)(shared));
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if call.shared.db.is_loading() {
        // What it sets may belong to the database that is being opened.
        return Err(Fault::line(LOADING));
    }
    if !args.len().is_multiple_of(2) {
        return Err(Fault::Arity);
    }
    let mut changes = Vec::new();
    for at in (2..args.len()).step_by(2) {
        let name = args.word(at);
        let parameter = parameters()
            .find(|parameter| name.eq_ignore_ascii_case(parameter.name.as_bytes()))
            .ok_or_else(|| unknown(name))?;
        let failed = |reason: &str| failed(parameter.name, reason);
        if changes
            .iter()
            .any(|(_, earlier)| *earlier == parameter.name)
        {
            return Err(failed("duplicate parameter"));
        }
        let value =
            std::str::from_utf8(args.word(at + 1)).map_err(|_| failed("argument is not UTF-8"))?;
        let Set::By(parse) = parameter.set else {
            return Err(failed("can't set immutable config"));
        };
        let change = parse(value).map_err(|reason| failed(&reason))?;
        changes.push((change, parameter.name));
    }
    for (change, name) in changes {
        change(call.shared).map_err(|fault| match fault {
            Fault::Engine(error) => failed(name, &error.to_string()),
            fault => fault,
        })?;
    }
    call.reply().ok();
    Ok(())
}

fn failed(name: &str, reason: &str) -> Fault {
    let line = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    Fault::Line(line.into())
}

/// Every parameter.
fn parameters() -> impl Iterator<Item = &'static Parameter> {
    let parts = [
        PARAMETERS,
        bounds::PARAMETERS,
        observing::PARAMETERS,
        senders::PARAMETERS,
    ];
    parts.into_iter().flatten()
}

fn unknown(name: &[u8]) -> Fault {
    let name = String::from_utf8_lossy(name);
    let line = format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
    Fault::Line(line.into())
}

fn reset_statistics(call: &mut Call<'_>) -> Outcome {
    call.shared.counters.reset();
    call.shared.observe.reset();
    call.shared.db.stages().reset();
    call.shared.runtime.users.log.reset_counts();
    let cut_off = &call.shared.channels().cut_off;
    cut_off.store(0, Ordering::Relaxed);
    call.reply().ok();
    Ok(())
}

fn rewrite(_: &mut Call<'_>) -> Outcome {
    Err(Fault::line(
        "ERR Latewood does not write its configuration file; change it by hand",
    ))
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "config");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::Cli;
    use clap::CommandFactory;

    /// What an operator gave at the start can be asked for while it runs.
    #[test]
    fn every_option_can_be_read_back() {
        let cli = Cli::command();
        let serve = cli.find_subcommand("serve").unwrap();
        let flags = serve.get_arguments().filter_map(|flag| flag.get_long());
        // Users hold passwords; the file is not kept; clap's own.
        let hidden = ["user", "config", "help", "version"];
        let mut asked = 0;
        for flag in flags.filter(|flag| !hidden.contains(flag)) {
            asked += 1;
            assert!(
                parameters().any(|parameter| parameter.name == flag),
                "CONFIG GET {flag} is empty"
            );
        }
        assert!(asked > 20, "{asked}");
    }

    #[test]
    fn no_parameter_stands_twice() {
        let mut names: Vec<_> = parameters().map(|parameter| parameter.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
