//! `CONFIG GET pattern...`, `CONFIG SET {name value}...`, `CONFIG RESETSTAT`,
//! `CONFIG REWRITE`, `CONFIG HELP`.
//!
//! Options of the server are parameters by the rows of `options/`; those that
//! only CONFIG has stand in `config/`. CONFIG SET checks all its pairs before it
//! applies the first, so that a wrong one changes nothing.

mod observing;
mod parameters;

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use crate::base::glob::Glob;
use crate::options::{self, Apply, Kind, Row};
use crate::state::Settings;
use crate::state::database::LOADING;
pub(crate) use parameters::first_port;
use parameters::{PARAMETERS, Parameter};
use std::sync::atomic::Ordering;

const SUB: Spec = Spec::of_group("server", &["admin", "noscript", "loading", "stale"]).arity(2);

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &[]).container(
    "config",
    "Reads and changes the configuration.",
    &[
        SUB.named("get", get)
            .words(-3, "pattern [pattern ...]")
            .about("Returns the parameters that match glob patterns."),
        SUB.named("set", set)
            .words(-4, "name value [name value ...]")
            .about("Sets parameters until the server stops."),
        SUB.named("resetstat", reset_statistics)
            .about("Resets the counters of INFO."),
        SUB.named("rewrite", rewrite)
            .about("Not supported: the server does not write its configuration file."),
        SUB.help(),
    ],
)];

/// A parameter and the name it is asked for by.
#[derive(Clone, Copy)]
enum Named {
    /// An option, by its name or another.
    Option(&'static str, &'static Row),
    /// A parameter that only CONFIG has.
    Own(&'static Parameter),
}

/// Names that Redis has for options.
const ALIASES: [(&str, &str); 3] = [
    ("maxmemory", "memory"),
    ("io-threads", "threads"),
    ("loglevel", "log-level"),
];

impl Named {
    fn name(self) -> &'static str {
        match self {
            Self::Option(name, _) => name,
            Self::Own(parameter) => parameter.name,
        }
    }
}

fn parameters() -> impl Iterator<Item = Named> {
    let rows = || options::all().filter(|row| row.is_shown());
    let named = rows().map(|row| Named::Option(row.name(), row));
    let aliases = ALIASES.into_iter().filter_map(move |(alias, name)| {
        let row = rows().find(|row| row.name() == name)?;
        Some(Named::Option(alias, row))
    });
    let own = PARAMETERS.iter().chain(observing::PARAMETERS);
    named.chain(aliases).chain(own.map(Named::Own))
}

/// Patterns of one CONFIG GET: each is compiled.
const PATTERNS_MAX: usize = 256;

fn get(call: &mut Call<'_>) -> Outcome {
    let (args, shared) = (call.args, call.shared);
    if args.len() - 2 > PATTERNS_MAX {
        let text = format!("ERR CONFIG GET takes at most {PATTERNS_MAX} patterns");
        return Fault::refuse(text);
    }
    let globs = args.from(2).map(Glob::ignoring_case);
    let globs = globs.collect::<Result<Vec<_>, _>>()?;
    let is_wanted = |parameter: &Named| {
        let name = parameter.name().as_bytes();
        globs.iter().any(|glob| glob.matches(name))
    };
    // Who may not change the password does not see it.
    let sees_password = call.session.user().may_run("config|set");
    let is_seen = |parameter: &Named| sees_password || parameter.name() != "requirepass";
    let wanted: Vec<_> = parameters().filter(is_wanted).filter(is_seen).collect();
    let mut settings = shared.runtime.current.lock().clone();
    let mut reply = call.reply();
    reply.map(wanted.len());
    for parameter in wanted {
        reply.bulk(parameter.name());
        reply.bulk(match parameter {
            Named::Option(_, row) => row.kind.show(&mut settings),
            Named::Own(own) => (own.get)(shared),
        });
    }
    Ok(())
}

/// A pair of CONFIG SET that was checked.
enum Change {
    Option(&'static Row, Apply, [String; 1]),
    Own(parameters::Change),
}

fn set(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if call.shared.db.is_loading() {
        // What it sets may belong to the database that is being opened.
        return Fault::refuse(LOADING);
    }
    if !args.len().is_multiple_of(2) {
        return Err(Fault::Arity);
    }
    let mut current = call.shared.runtime.current.lock();
    let mut changed = current.clone();
    let mut changes: Vec<(&str, Change)> = Vec::new();
    for at in (2..args.len()).step_by(2) {
        let parameter = find(args.word(at))?;
        let name = parameter.name();
        if changes.iter().any(|(earlier, _)| *earlier == name) {
            return Err(failed(name, "duplicate parameter"));
        }
        let change = read(parameter, args.word(at + 1), &mut changed);
        changes.push((name, change.map_err(|reason| failed(name, &reason))?));
    }
    for (name, change) in &changes {
        if let Change::Option(row, ..) = change
            && let Some(check) = row.check
        {
            check(&changed).map_err(|reason| failed(name, &reason))?;
        }
    }
    for (name, change) in changes {
        match change {
            Change::Option(row, apply, texts) => {
                let applied = apply(call.shared, &changed);
                applied.map_err(|error| failed(name, &error.to_string()))?;
                let put = row.kind.put(&mut current, &texts);
                put.map_err(|reason| failed(name, &reason))?;
            }
            Change::Own(change) => change(call.shared),
        }
    }
    drop(current);
    call.ok()
}

/// Reads one value of CONFIG SET; that of an option goes to `settings`.
fn read(parameter: Named, value: &[u8], settings: &mut Settings) -> Result<Change, String> {
    let immutable = "can't set immutable config";
    let text = std::str::from_utf8(value).map_err(|_| "argument is not UTF-8")?;
    match parameter {
        Named::Option(_, row) => {
            let apply = row.apply.ok_or(immutable)?;
            let text = match row.kind {
                Kind::YesNo(_) if parameters::yes_no(text)? => "on",
                Kind::YesNo(_) => "off",
                _ => text,
            };
            let texts = [text.to_owned()];
            let put = row.kind.put(settings, &texts);
            put.map_err(|reason| named_choices(row, reason))?;
            Ok(Change::Option(row, apply, texts))
        }
        Named::Own(own) => Ok(Change::Own(own.set.ok_or(immutable)?.read(text)?)),
    }
}

/// Names what would do, if the reason does not. Parameters that Redis and RedisTimeSeries have too keep
/// their words.
fn named_choices(row: &Row, reason: String) -> String {
    let is_own = !row.name().starts_with("ts-") && row.name() != "notify-keyspace-events";
    match row.kind {
        Kind::Form { takes, .. } if is_own && !reason.contains(takes) => {
            format!("{reason}; it takes {takes}")
        }
        _ => reason,
    }
}

fn find(name: &[u8]) -> Result<Named, Fault> {
    let is_it = |parameter: &Named| name.eq_ignore_ascii_case(parameter.name().as_bytes());
    parameters().find(is_it).ok_or_else(|| unknown(name))
}

fn failed(name: &str, reason: &str) -> Fault {
    let line = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    Fault::Line(line.into())
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
    call.ok()
}

fn rewrite(_: &mut Call<'_>) -> Outcome {
    Fault::refuse("ERR Latewood does not write its configuration file; change it by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_stands_twice() {
        let mut names: Vec<_> = parameters().map(Named::name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all > 60, "{all}");
    }
}
