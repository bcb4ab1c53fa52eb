//! `INFO [section...]`: figures for people and monitoring, `name:value` lines
//! under `# Section` titles. Sections: server, clients, memory, persistence,
//! stats, cpu, keyspace, latewood; `all`, `default` and `everything` are all.
//!
//! The first seven have fields of the same names as Redis has, as far as they
//! mean something here; `latewood` has what only this server can say.
//! `docs/operations.md` explains the fields.

mod process;
mod sections;
#[cfg(test)]
mod tests;

use super::registry::{Action, Keys, Spec};
use super::{Call, Outcome};
use crate::shared::Shared;
use latewood_engine::Stats;

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

/// A section: its name, its title and what writes it.
type Section = (&'static str, &'static str, Write);

/// What writes a section. Only some need the engine's figures, which are
/// collected from every shard.
#[derive(Clone, Copy)]
enum Write {
    Server(fn(&mut String, &Shared)),
    Engine(fn(&mut String, &Shared, &Stats)),
}

const SECTIONS: &[Section] = &[
    ("server", "Server", Write::Server(sections::server)),
    ("clients", "Clients", Write::Server(sections::clients)),
    ("memory", "Memory", Write::Engine(sections::memory)),
    (
        "persistence",
        "Persistence",
        Write::Engine(sections::persistence),
    ),
    ("stats", "Stats", Write::Server(sections::statistics)),
    ("cpu", "CPU", Write::Server(sections::cpu)),
    ("keyspace", "Keyspace", Write::Engine(sections::keyspace)),
    ("latewood", "Latewood", Write::Engine(sections::latewood)),
];

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_asked = |name: &str| (1..args.len()).any(|i| args.is(i, name));
    let all = args.len() == 1 || is_asked("all") || is_asked("default") || is_asked("everything");
    let shared = call.shared;
    let text = report(shared, |name| all || is_asked(name), || shared.db.stats());
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

/// The wanted sections. Asks for the engine's figures at most once, so that all
/// sections of a reply agree, and not at all where no section needs them.
fn report(
    shared: &Shared,
    is_wanted: impl Fn(&str) -> bool,
    collect: impl Fn() -> Stats,
) -> String {
    let mut text = String::new();
    let mut stats = None;
    for (_, title, write) in SECTIONS.iter().filter(|(name, ..)| is_wanted(name)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str("# ");
        text.push_str(title);
        text.push_str("\r\n");
        match write {
            Write::Server(write) => write(&mut text, shared),
            Write::Engine(write) => write(&mut text, shared, stats.get_or_insert_with(&collect)),
        }
    }
    text
}
