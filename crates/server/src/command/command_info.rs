//! `COMMAND` and its subcommands COUNT, LIST, INFO, DOCS, GETKEYS,
//! GETKEYSANDFLAGS, HELP: the registry, as clients read it.

use super::args::Args;
use super::call::{Call, Outcome};
use super::docs;
use super::fault::{Fault, SYNTAX};
use super::keys::{Access, Keys, Places, Run};
use super::spec::{Spec, Table, find_in};
use crate::acl::catalogue::Catalogue;
use crate::acl::category;
use crate::base::glob::Glob;
use latewood_wire::resp::Reply;

const SUB: Spec = Spec::of_group("server", &["loading", "stale"]).arity(2);

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &["loading", "stale"])
    .named("command", all)
    .words(-1, "[subcommand [argument ...]]")
    .about("Returns information about commands.")
    .or_one_of(&[
        SUB.named("count", count)
            .about("Returns the number of commands."),
        SUB.named("list", list)
            .words(-2, "[FILTERBY MODULE|ACLCAT|PATTERN text]")
            .about("Returns the names of the commands."),
        SUB.named("info", info)
            .words(-2, "[name ...]")
            .about("Returns arity, flags and keys of commands."),
        SUB.named("docs", documentation)
            .words(-2, "[name ...]")
            .about("Returns the documentation of commands."),
        SUB.named("getkeys", get_keys)
            .words(-3, "command [argument ...]")
            .about("Returns the keys of a full command."),
        SUB.named("getkeysandflags", get_keys_and_flags)
            .words(-3, "command [argument ...]")
            .about("Returns the keys of a full command and how it accesses them."),
        SUB.help(),
    ])];

/// COMMAND without a subcommand: every command.
fn all(call: &mut Call<'_>) -> Outcome {
    let (commands, catalogue) = (call.commands, call.shared.runtime.users.catalogue());
    let mut reply = call.reply();
    reply.array(commands.all().count());
    for spec in commands.all() {
        describe(&mut reply, catalogue, spec, spec.name);
    }
    Ok(())
}

fn count(call: &mut Call<'_>) -> Outcome {
    let commands = call.commands.all().count();
    call.count(commands)
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
                let wanted = category::find(text).unwrap_or(0);
                let catalogue = call.shared.runtime.users.catalogue();
                Box::new(move |spec| catalogue.categories(spec.name) & wanted != 0)
            } else if args.is(3, "PATTERN") {
                let glob = Glob::ignoring_case(text)?;
                Box::new(move |spec| glob.matches(spec.name.as_bytes()))
            } else {
                return Err(SYNTAX);
            }
        }
        _ => return Err(SYNTAX),
    };
    let names: Vec<&str> = call
        .commands
        .all()
        .filter(|spec| is_wanted(spec))
        .map(|spec| spec.name)
        .collect();
    let mut reply = call.reply();
    reply.bulks(names.into_iter());
    Ok(())
}

fn info(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() == 2 {
        return all(call);
    }
    let (commands, catalogue) = (call.commands, call.shared.runtime.users.catalogue());
    let mut reply = call.reply();
    reply.array(args.len() - 2);
    for name in args.from(2) {
        match find_full(commands, name) {
            Some((spec, name)) => describe(&mut reply, catalogue, spec, &name),
            None => reply.null(),
        }
    }
    Ok(())
}

/// A command or subcommand, and its full name.
type Named = (&'static Spec, String);

/// Finds `command` or `command|subcommand`.
fn find_full(commands: &Table, name: &[u8]) -> Option<Named> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let spec = commands.find(parts.next()?)?;
    match parts.next() {
        None => Some((spec, spec.name.to_owned())),
        Some(sub) => {
            let sub = find_in(spec.subcommands(), sub)?;
            Some((sub, format!("{}|{}", spec.name, sub.name)))
        }
    }
}

/// The ten fields of COMMAND INFO.
fn describe(reply: &mut Reply<'_>, catalogue: &Catalogue, spec: &Spec, name: &str) {
    reply.array(10);
    reply.bulk(name);
    reply.integer(spec.arity);
    let mut flags = spec.flags.to_vec();
    if spec.keys.are_movable() {
        flags.push("movablekeys");
    }
    simple_set(reply, &flags);
    let (first, last, step) = spec.keys.first_last_step();
    reply.integer(i64::try_from(first).unwrap_or(0));
    reply.integer(last);
    reply.integer(i64::try_from(step).unwrap_or(0));
    simple_set(reply, &categories(catalogue, name));
    reply.set(0);
    reply.set(spec.keys.0.len());
    for run in spec.keys.0 {
        describe_keys(reply, run, spec.flags);
    }
    reply.set(spec.subcommands().len());
    for sub in spec.subcommands() {
        describe(
            reply,
            catalogue,
            sub,
            &format!("{}|{}", spec.name, sub.name),
        );
    }
}

fn describe_keys(reply: &mut Reply<'_>, run: &Run, flags: &[&str]) {
    let int = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (first, find) = match run.places {
        // Counted from the first key, unless from the end.
        Places::Words { first, last, step } => {
            let last = if last < 0 { last } else { last - int(first) };
            let fields = [("lastkey", last), ("keystep", int(step)), ("limit", 0)];
            (first, ("range", fields))
        }
        Places::Counted { at } => {
            let fields = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
            (at, ("keynum", fields))
        }
    };
    reply.map(3);
    reply.bulk("flags");
    simple_set(reply, run.access.of(flags).words());
    reply.bulk("begin_search");
    describe_search(reply, "index", &[("index", int(first))]);
    reply.bulk("find_keys");
    describe_search(reply, find.0, &find.1);
}

fn describe_search(reply: &mut Reply<'_>, kind: &str, fields: &[(&str, i64)]) {
    reply.map(2);
    reply.key("type").bulk(kind);
    reply.key("spec").map(fields.len());
    for (name, number) in fields {
        reply.bulk(name);
        reply.integer(*number);
    }
}

/// The ACL categories as COMMAND INFO writes them.
fn categories(catalogue: &Catalogue, name: &str) -> Vec<String> {
    let names = category::names(catalogue.categories(name));
    names.map(|name| format!("@{name}")).collect()
}

fn simple_set<W: AsRef<str>>(reply: &mut Reply<'_>, words: &[W]) {
    reply.set(words.len());
    for word in words {
        reply.simple(word.as_ref());
    }
}

fn documentation(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let wanted: Vec<Named> = if args.len() == 2 {
        call.commands
            .all()
            .map(|spec| (spec, spec.name.to_owned()))
            .collect()
    } else {
        args.from(2)
            .filter_map(|name| find_full(call.commands, name))
            .collect()
    };
    let mut reply = call.reply();
    reply.map(wanted.len());
    for (spec, name) in wanted {
        docs::reply_documentation(&mut reply, spec, &name);
    }
    Ok(())
}

fn get_keys(call: &mut Call<'_>) -> Outcome {
    let keys = keys_of(call.commands, call.args)?;
    let args = call.args;
    let mut reply = call.reply();
    reply.array(keys.len());
    for (at, _) in keys {
        reply.bulk(args.word(at));
    }
    Ok(())
}

fn get_keys_and_flags(call: &mut Call<'_>) -> Outcome {
    let keys = keys_of(call.commands, call.args)?;
    let args = call.args;
    let mut reply = call.reply();
    reply.array(keys.len());
    for (at, access) in keys {
        reply.array(2);
        reply.bulk(args.word(at));
        simple_set(&mut reply, access.words());
    }
    Ok(())
}

/// The keys of the command that begins at word 2.
fn keys_of(commands: &Table, args: Args<'_>) -> Result<Vec<(usize, Access)>, Fault> {
    let invalid = || Fault::line("ERR Invalid command specified");
    let spec = commands.find(args.word(2)).ok_or_else(invalid)?;
    let spec = match (args.get(3), spec.subcommands()) {
        (None, _) | (_, []) => spec,
        (Some(sub), subcommands) => find_in(subcommands, sub).ok_or_else(invalid)?,
    };
    if spec.keys == Keys::NONE {
        return Fault::refuse("ERR The command has no key arguments");
    }
    if !spec.takes(args.len() - 2) {
        return Fault::refuse("ERR Invalid number of arguments specified for command");
    }
    let keys = spec.keys.places(args, 2, spec.flags);
    keys.ok_or(Fault::line("ERR Invalid arguments specified for command"))
}
