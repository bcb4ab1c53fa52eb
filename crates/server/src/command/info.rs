//! `INFO [section...]`: figures for people and monitoring, `name:value` lines
//! under `# Section` titles. Sections: server, clients, memory, persistence,
//! stats, cpu, keyspace, latewood; `all`, `default` and `everything` are all.
//!
//! The first seven have fields of the same names as Redis has, as far as they
//! mean something here; `latewood` has what only this server can say.
//! `docs/operations.md` explains the fields.

mod process;
mod sections;

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
type Section = (&'static str, &'static str, fn(&mut String, &Shared, &Stats));

const SECTIONS: &[Section] = &[
    ("server", "Server", sections::server),
    ("clients", "Clients", sections::clients),
    ("memory", "Memory", sections::memory),
    ("persistence", "Persistence", sections::persistence),
    ("stats", "Stats", sections::statistics),
    ("cpu", "CPU", sections::cpu),
    ("keyspace", "Keyspace", sections::keyspace),
    ("latewood", "Latewood", sections::latewood),
];

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_asked = |name: &str| (1..args.len()).any(|i| args.is(i, name));
    let all = args.len() == 1 || is_asked("all") || is_asked("default") || is_asked("everything");
    let wanted: Vec<&Section> = SECTIONS
        .iter()
        .filter(|(name, ..)| all || is_asked(name))
        .collect();
    let mut text = String::new();
    if !wanted.is_empty() {
        let stats = call.shared.db.stats();
        for (_, title, write) in wanted {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str("# ");
            text.push_str(title);
            text.push_str("\r\n");
            write(&mut text, call.shared, &stats);
        }
    }
    call.reply().verbatim(*b"txt", text);
    Ok(())
}
