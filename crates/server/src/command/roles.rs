//! What commands need of a node, and what becomes of them at one that does not own the log.
//!
//! | a command that | at a follower |
//! |---|---|
//! | writes, or watches keys | is sent on to the owner |
//! | reads | is answered where its connection accepts that and the node is fresh; else sent on |
//! | is about files of the owner, or about what is durable | is refused in words |
//! | is about the connection or the process | is run |
//!
//! In MULTI a command is checked as it is queued, and EXEC checks all of them once more: the role
//! may have changed. On a plain server all of this is two loads.
//!
//! Who is sent on sends the command again. So a command that fails as this node loses the log is
//! sent on only where nothing of it was written; else it is told that nobody knows ([`lost`]).
//!
//! Tested by `net/tests/roles.rs` and `net/tests/roles/lost.rs`; `docs/cluster.md` has the table of
//! all commands.

use super::call::Call;
use super::fault::UNKNOWN;
use super::spec::Spec;
use crate::base::slot::slot_of;
use crate::client::{Aim, Need};
use crate::state::Shared;
use latewood_engine::{Error, ErrorKind};

/// Commands and subcommands that only the owner of the log runs. `ACL SAVE` is another, and needs
/// no data.
const OF_OWNER: &[&str] = &[
    "save",
    "bgsave",
    "wait",
    "waitaof",
    "backup",
    "settle",
    "clock",
    "quarantine",
    "merge",
];

/// What a command needs of its node.
pub(super) fn need_of(spec: &Spec) -> Need {
    let has = |flag| spec.flags.contains(&flag);
    // Changes of keys are told where they are written.
    if has("write") || spec.name == "watch" {
        Need::Writes
    } else if has("readonly") {
        Need::Reads
    } else if OF_OWNER.contains(&spec.name) && !has("loading") {
        Need::Owner
    } else {
        Need::Nothing
    }
}

/// What a command needs, and the slot of its first key.
pub(super) fn aim_of(call: &Call<'_>, spec: &Spec) -> Aim {
    let first = spec.keys.first(call.args);
    Aim {
        need: need_of(spec),
        slot: first.map(|at| slot_of(call.args.word(at))),
    }
}

/// Checks that the command is for this node.
///
/// # Errors
/// The line that says where it is to go, or why it cannot.
pub(super) fn require(call: &mut Call<'_>, spec: &Spec) -> Result<(), String> {
    let shared = call.shared;
    // EXEC was checked with all that it runs.
    if shared.node.get().is_none() && shared.lease.get().is_none() || call.session.in_exec() {
        return Ok(());
    }
    let is_exec = spec.name == "exec";
    let aim = if is_exec {
        call.session.transaction_aim()
    } else {
        aim_of(call, spec)
    };
    let slot = aim.slot.unwrap_or(0);
    call.session.begin_read(shared, slot);
    let taken = match aim.need {
        Need::Nothing => Ok(()),
        Need::Reads => shared.takes_reads(call.session.accepts_followers()),
        Need::Writes | Need::Owner => shared.takes_writes(),
    };
    let refused = taken.map_err(|to| match aim.need {
        Need::Owner if !is_exec => of_owner(spec, &to.to_string()),
        _ => to.line(slot),
    });
    if is_exec && refused.is_err() {
        call.session.end_transaction(shared);
        call.session.unwatch(shared);
    }
    refused
}

fn of_owner(spec: &Spec, why: &str) -> String {
    let name = spec.name.to_ascii_uppercase();
    match spec.name {
        "save" | "bgsave" => format!("ERR {name}: checkpoints are saved by the owner; {why}"),
        "wait" | "waitaof" => {
            format!("ERR {name} cannot be used with replica instances; {why}")
        }
        _ => format!("ERR LATEWOOD {name} is for the owner; {why}"),
    }
}

/// What a client is told whose command the engine did not do, or not wholly, because this node does
/// not own the log, as it did when the command was admitted, or because a follower cannot tell; none
/// if that is not why. `is_begun`: the command, or the transaction that it is part of, may have
/// written something.
#[cold]
pub(crate) fn lost(shared: &Shared, error: &Error, slot: u16, is_begun: bool) -> Option<String> {
    let to = shared.takes_writes().err()?;
    match error.kind() {
        ErrorKind::AtOwner => Some(to.line(slot)),
        ErrorKind::Halted if !is_begun => Some(to.line(slot)),
        ErrorKind::Halted | ErrorKind::Unknown => {
            Some(format!("{UNKNOWN}: this node has lost the log; {to}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::keys::Keys;
    use crate::command::registry::COMMANDS;
    use std::fmt::Write;

    /// Set to 1 to write the table instead of comparing it.
    const UPDATE: &str = "UPDATE_DOCS";
    const HEAD: &str = "| at a follower | commands |\n";

    #[test]
    fn the_page_of_the_cluster_has_every_command() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md");
        let mut page = std::fs::read_to_string(path).unwrap();
        let begin = page.find(HEAD).expect("the page has no table of commands");
        let end = page[begin..].find("\n\n").unwrap() + begin + 1;
        if std::env::var_os(UPDATE).is_some() {
            page.replace_range(begin..end, &table());
            std::fs::write(path, &page).unwrap();
        } else {
            assert!(
                page[begin..end] == table(),
                "docs/cluster.md is stale: run the tests once with {UPDATE}=1"
            );
        }
    }

    fn table() -> String {
        let mut table = format!("{HEAD}| --- | --- |\n");
        for (need, words) in [
            (Need::Writes, "sent on to the owner"),
            (
                Need::Reads,
                "answered, if the connection accepts that and the node is fresh; else sent on",
            ),
            (Need::Owner, "refused in words"),
            (Need::Nothing, "run by every node"),
        ] {
            let names = names(need).join(" ");
            writeln!(table, "| {words} | {names} |").unwrap();
        }
        table
    }

    /// The commands with this need; a container once, if all that it holds have it.
    fn names(need: Need) -> Vec<String> {
        let mut names = Vec::new();
        for spec in COMMANDS.all() {
            let name = spec.name.to_ascii_uppercase();
            let subs = spec.subcommands();
            if !subs.is_empty() && subs.iter().any(|sub| need_of(sub) != need_of(&subs[0])) {
                let own = subs.iter().filter(|sub| need_of(sub) == need);
                names.extend(own.map(|sub| format!("`{name} {}`", sub.name.to_ascii_uppercase())));
            } else if need_of(subs.first().unwrap_or(spec)) == need {
                names.push(format!("`{name}`"));
            }
        }
        names
    }

    #[test]
    fn no_command_that_writes_or_reads_is_run_by_every_node() {
        for spec in COMMANDS.all() {
            for spec in std::iter::once(spec).chain(spec.subcommands()) {
                let touches = spec.keys != Keys::NONE && spec.name != "keyslot";
                let need = need_of(spec);
                assert!(!touches || need > Need::Nothing, "{}", spec.name);
            }
        }
    }
}
