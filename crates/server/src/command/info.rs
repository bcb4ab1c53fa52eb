//! `INFO [section...]`: statistics, `name:value` lines
//! under `# Section` titles.
//!
//! Fields that Redis has too have its names and meanings, as far as they mean
//! something here; `latewood` has what only this server can say. Without a
//! section, and for `default`, all but commandstats, latencystats and stages
//! are given; `all` and `everything` give those too. `docs/operations.md`
//! explains the fields.

mod commands;
mod latewood;
mod nodes;
mod sections;
mod source;
mod stages;
mod statistics;
#[cfg(test)]
mod tests;

use super::call::{Call, Outcome};
use super::spec::Spec;
use source::Source;
use std::fmt::Write;

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &["loading", "stale"])
    .named("info", apply)
    .words(-1, "[section ...]")
    .about("Returns statistics of the server.")];

/// A section: its name, its title, whether it is given without being named,
/// and what writes it.
struct Section {
    name: &'static str,
    title: &'static str,
    is_default: bool,
    write: fn(&mut String, &Source<'_>),
}

const fn section(
    name: &'static str,
    title: &'static str,
    write: fn(&mut String, &Source<'_>),
) -> Section {
    Section {
        name,
        title,
        is_default: true,
        write,
    }
}

const SECTIONS: &[Section] = &[
    section("server", "Server", sections::server),
    section("clients", "Clients", sections::clients),
    section("memory", "Memory", sections::memory),
    section("persistence", "Persistence", sections::persistence),
    section("stats", "Stats", statistics::statistics),
    section("replication", "Replication", nodes::replication),
    section("cpu", "CPU", sections::cpu),
    section("modules", "Modules", sections::modules),
    Section {
        is_default: false,
        ..section("commandstats", "Commandstats", commands::commands)
    },
    section("errorstats", "Errorstats", commands::errors),
    Section {
        is_default: false,
        ..section("latencystats", "Latencystats", commands::latencies)
    },
    section("cluster", "Cluster", nodes::cluster),
    section("keyspace", "Keyspace", sections::keyspace),
    section("latewood", "Latewood", latewood::latewood),
    Section {
        is_default: false,
        ..section("stages", "Stages", stages::stages)
    },
];

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_asked = |name: &str| (1..args.len()).any(|i| args.is(i, name));
    let all = is_asked("all") || is_asked("everything");
    let default = args.len() == 1 || is_asked("default");
    let text = report(&Source::new(call.shared, call.compatibility()), |section| {
        all || (default && section.is_default) || is_asked(section.name)
    });
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

/// The wanted sections.
fn report(source: &Source<'_>, is_wanted: impl Fn(&Section) -> bool) -> String {
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| is_wanted(section)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {}\r\n", section.title);
        (section.write)(&mut text, source);
    }
    text
}
