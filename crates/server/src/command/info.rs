//! `INFO [section...]`: figures for people and monitoring, `name:value` lines
//! under `# Section` titles.
//!
//! Fields that Redis has too have its names and meanings, as far as they mean
//! something here; `latewood` has what only this server can say. Without a
//! section, and for `default`, all but commandstats, latencystats and stages
//! are given; `all` and `everything` give those too. `docs/operations.md`
//! explains the fields.

mod commands;
mod latewood;
pub(super) mod process;
mod sections;
mod stages;
mod statistics;
#[cfg(test)]
mod tests;

use super::registry::{Action, Keys, Spec};
use super::{Call, Outcome};
use crate::shared::Shared;
use latewood_engine::{DbMemory, Stats};
use std::cell::OnceCell;
use std::fmt::{Display, Write};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "info",
    arity: -1,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    syntax: "[section ...]",
    summary: "Gives the server's figures.",
    action: Action::Apply(apply),
}];

/// Where the sections take their figures from. Those of the engine are asked
/// for at most once a reply, so that its sections agree, and not at all where
/// no section needs them.
struct Source<'a> {
    shared: &'a Shared,
    stats: OnceCell<Stats>,
    memory: OnceCell<DbMemory>,
}

impl<'a> Source<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            stats: OnceCell::new(),
            memory: OnceCell::new(),
        }
    }

    fn stats(&self) -> &Stats {
        self.stats.get_or_init(|| self.shared.db.stats())
    }

    /// May look at every series; only sections about memory want it.
    fn memory(&self) -> &DbMemory {
        self.memory.get_or_init(|| self.shared.db.memory())
    }
}

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
    section("replication", "Replication", sections::replication),
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
    section("cluster", "Cluster", sections::cluster),
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
    let text = report(&Source::new(call.shared), |section| {
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

/// One line. Writing to a String cannot fail.
fn field(text: &mut String, name: &str, value: impl Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

/// A number of bytes, and again for people.
fn bytes_field(text: &mut String, name: &str, bytes: u64) {
    field(text, name, bytes);
    field(text, &format!("{name}_human"), human(bytes));
}

fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G"] {
        if value < 1024.0 {
            return match unit {
                "B" => format!("{bytes}B"),
                _ => format!("{value:.2}{unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.2}T")
}
