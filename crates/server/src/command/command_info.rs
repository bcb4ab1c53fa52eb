//! `COMMAND` and its subcommands COUNT, LIST, INFO, DOCS, GETKEYS, HELP: the
//! registry, as clients read it.

use super::fault::SYNTAX;
use super::registry::{self, Action, Keys, Spec};
use super::{Args, Call, Fault, Outcome, docs};
use crate::glob;
use latewood_wire::resp::Reply;

const SUB: Spec = Spec {
    name: "",
    arity: 2,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    syntax: "",
    summary: "",
    action: Action::Apply(help),
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "command",
    arity: -1,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    syntax: "[subcommand [argument ...]]",
    summary: "Describes the commands.",
    action: Action::Either(
        all,
        &[
            Spec {
                name: "count",
                summary: "Says how many commands there are.",
                action: Action::Apply(count),
                ..SUB
            },
            Spec {
                name: "list",
                arity: -2,
                syntax: "[FILTERBY MODULE|ACLCAT|PATTERN text]",
                summary: "Lists the names of the commands.",
                action: Action::Apply(list),
                ..SUB
            },
            Spec {
                name: "info",
                arity: -2,
                syntax: "[name ...]",
                summary: "Describes commands: arity, flags and keys.",
                action: Action::Apply(info),
                ..SUB
            },
            Spec {
                name: "docs",
                arity: -2,
                syntax: "[name ...]",
                summary: "Describes commands for people.",
                action: Action::Apply(documentation),
                ..SUB
            },
            Spec {
                name: "getkeys",
                arity: -3,
                syntax: "command [argument ...]",
                summary: "Gives the keys of a whole command.",
                action: Action::Apply(get_keys),
                ..SUB
            },
            Spec {
                name: "help",
                summary: "Lists these subcommands.",
                ..SUB
            },
        ],
    ),
}];

/// COMMAND without a subcommand: every command.
fn all(call: &mut Call<'_>) -> Outcome {
    let mut reply = call.reply();
    reply.array(registry::all().count());
    for spec in registry::all() {
        describe(&mut reply, spec, spec.name);
    }
    Ok(())
}

fn count(call: &mut Call<'_>) -> Outcome {
    let commands = registry::all().count();
    call.reply()
        .integer(i64::try_from(commands).unwrap_or(i64::MAX));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_wanted: Box<dyn Fn(&Spec) -> bool + '_> = match args.len() {
        2 => Box::new(|_| true),
        5 if args.is(2, "FILTERBY") => {
            let text = args.word(4);
            if args.is(3, "MODULE") {
                let is_ours = text.eq_ignore_ascii_case(b"timeseries");
                Box::new(move |spec| is_ours && spec.group == "timeseries")
            } else if args.is(3, "ACLCAT") {
                Box::new(move |spec| {
                    let mut categories = categories(spec).into_iter();
                    categories.any(|category| category.as_bytes().strip_prefix(b"@") == Some(text))
                })
            } else if args.is(3, "PATTERN") {
                Box::new(move |spec| glob::matches_ignoring_case(text, spec.name.as_bytes()))
            } else {
                return Err(SYNTAX);
            }
        }
        _ => return Err(SYNTAX),
    };
    let names: Vec<&str> = registry::all()
        .filter(|spec| is_wanted(spec))
        .map(|spec| spec.name)
        .collect();
    let mut reply = call.reply();
    reply.array(names.len());
    for name in names {
        reply.bulk(name);
    }
    Ok(())
}

fn info(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() == 2 {
        return all(call);
    }
    let mut reply = call.reply();
    reply.array(args.len() - 2);
    for name in args.from(2) {
        match find_full(name) {
            Some((spec, name)) => describe(&mut reply, spec, &name),
            None => reply.null(),
        }
    }
    Ok(())
}

/// Finds `command` or `command|subcommand`.
fn find_full(name: &[u8]) -> Option<(&'static Spec, String)> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let spec = registry::find(parts.next()?)?;
    match parts.next() {
        None => Some((spec, spec.name.to_owned())),
        Some(sub) => {
            let sub = registry::find_in(spec.subcommands(), sub)?;
            Some((sub, format!("{}|{}", spec.name, sub.name)))
        }
    }
}

/// The ten fields of COMMAND INFO.
fn describe(reply: &mut Reply<'_>, spec: &Spec, name: &str) {
    reply.array(10);
    reply.bulk(name);
    reply.integer(spec.arity);
    simple_set(reply, spec.flags);
    reply.integer(i64::try_from(spec.keys.first).unwrap_or(0));
    reply.integer(spec.keys.last);
    reply.integer(i64::try_from(spec.keys.step).unwrap_or(0));
    simple_set(reply, &categories(spec));
    reply.set(0);
    if spec.keys == Keys::NONE {
        reply.set(0);
    } else {
        reply.set(1);
        describe_keys(reply, spec);
    }
    reply.set(spec.subcommands().len());
    for sub in spec.subcommands() {
        describe(reply, sub, &format!("{}|{}", spec.name, sub.name));
    }
}

fn describe_keys(reply: &mut Reply<'_>, spec: &Spec) {
    reply.map(3);
    reply.bulk("flags");
    let is_write = spec.flags.contains(&"write");
    simple_set(
        reply,
        if is_write {
            &["RW", "access", "update"]
        } else {
            &["RO", "access"]
        },
    );
    reply.bulk("begin_search");
    reply.map(2);
    reply.bulk("type");
    reply.bulk("index");
    reply.bulk("spec");
    reply.map(1);
    reply.bulk("index");
    reply.integer(i64::try_from(spec.keys.first).unwrap_or(0));
    reply.bulk("find_keys");
    reply.map(2);
    reply.bulk("type");
    reply.bulk("range");
    reply.bulk("spec");
    reply.map(3);
    reply.bulk("lastkey");
    // Counted from the first key, unless from the end.
    reply.integer(spec.keys.last.min(0));
    reply.bulk("keystep");
    reply.integer(i64::try_from(spec.keys.step).unwrap_or(0));
    reply.bulk("limit");
    reply.integer(0);
}

/// The ACL categories, from the group and the flags.
fn categories(spec: &Spec) -> Vec<&'static str> {
    let has = |flag| spec.flags.contains(&flag);
    let mut categories = Vec::new();
    match spec.group {
        "timeseries" => categories.push("@timeseries"),
        "keyspace" => categories.push("@keyspace"),
        "connection" => categories.push("@connection"),
        _ => {}
    }
    if has("write") {
        categories.push("@write");
    }
    if has("readonly") {
        categories.push("@read");
    }
    if has("admin") {
        categories.extend(["@admin", "@dangerous"]);
    }
    categories.push(if has("fast") { "@fast" } else { "@slow" });
    categories
}

fn simple_set(reply: &mut Reply<'_>, words: &[&str]) {
    reply.set(words.len());
    for word in words {
        reply.simple(word);
    }
}

fn documentation(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let wanted: Vec<(&Spec, String)> = if args.len() == 2 {
        registry::all()
            .map(|spec| (spec, spec.name.to_owned()))
            .collect()
    } else {
        args.from(2).filter_map(find_full).collect()
    };
    let mut reply = call.reply();
    reply.map(wanted.len());
    for (spec, name) in wanted {
        docs::reply_documentation(&mut reply, spec, &name);
    }
    Ok(())
}

fn get_keys(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let spec = registry::find(args.word(2)).ok_or(Fault::line("ERR Invalid command specified"))?;
    if spec.keys == Keys::NONE {
        return Err(Fault::line("ERR The command has no key arguments"));
    }
    let words = args.len() - 2;
    if !spec.takes(words) {
        return Err(Fault::line(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let keys = key_places(spec, args);
    let mut reply = call.reply();
    reply.array(keys.len());
    for at in keys {
        reply.bulk(args.word(at));
    }
    Ok(())
}

/// Where the keys of the command that begins at word 2 stand.
fn key_places(spec: &Spec, args: Args<'_>) -> Vec<usize> {
    let last = match usize::try_from(spec.keys.last) {
        Ok(last) => (2 + last).min(args.len() - 1),
        Err(_) => args.len() - 1,
    };
    (2 + spec.keys.first..=last)
        .step_by(spec.keys.step.max(1))
        .collect()
}

fn help(call: &mut Call<'_>) -> Outcome {
    docs::reply_help(call, "command");
    Ok(())
}
