//! The registry as users' permissions see it: a number for each command, and its
//! ACL categories.
//!
//! A category follows from the command's flags and its group, so that no
//! command says the same thing twice. The few that Redis puts elsewhere stand
//! in [`EXCEPTIONS`]. Tested by `acl/tests.rs` and `tests/resp/acl.rs`.

use super::registry::COMMANDS;
use super::spec::Spec;
use crate::acl::catalogue::{Catalogue, Entry};
use crate::acl::category::{
    ADMIN, BLOCKING, CONNECTION, Categories, DANGEROUS, FAST, KEYSPACE, PUBSUB, READ, SCRIPTING,
    SLOW, TIMESERIES, TRANSACTION, WRITE,
};
use std::sync::LazyLock;

/// The commands of this server.
pub(crate) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for spec in COMMANDS.all() {
        let first = entries.len();
        let end = first + 1 + spec.subcommands().len();
        entries.push(Entry {
            name: spec.name.to_owned(),
            categories: of(spec, None),
            family: first..end,
        });
        for sub in spec.subcommands() {
            let at = entries.len();
            entries.push(Entry {
                name: format!("{}|{}", spec.name, sub.name),
                categories: of(sub, Some(spec)),
                family: at..at + 1,
            });
        }
    }
    Catalogue::new(entries)
});

/// Categories that follow from neither flags nor group; a container's hold
/// for its subcommands too.
const EXCEPTIONS: &[(&str, Categories)] = &[
    ("command", CONNECTION),
    ("flushall", DANGEROUS),
    ("flushdb", DANGEROUS),
    ("info", DANGEROUS),
    ("keys", DANGEROUS),
    ("lastsave", ADMIN | DANGEROUS),
    ("restore", DANGEROUS),
    ("role", ADMIN | DANGEROUS),
    ("swapdb", DANGEROUS),
    ("wait", CONNECTION),
    ("waitaof", CONNECTION),
];

/// The categories of a command, or of a subcommand of `container`.
pub(crate) fn of(spec: &Spec, container: Option<&Spec>) -> Categories {
    let has = |flag| spec.flags.contains(&flag);
    let mut categories = if has("fast") { FAST } else { SLOW };
    for (flag, implied) in [
        ("write", WRITE),
        ("readonly", READ),
        ("admin", ADMIN | DANGEROUS),
        ("pubsub", PUBSUB),
        ("blocking", BLOCKING),
    ] {
        if has(flag) {
            categories |= implied;
        }
    }
    let is_container = !spec.subcommands().is_empty();
    categories |= match spec.group {
        "timeseries" => TIMESERIES,
        // LATEWOOD ADD, say, does what TS.ADD does.
        "latewood" if !spec.flags.contains(&"admin") => TIMESERIES,
        // The name of a container does nothing by itself.
        _ if is_container => 0,
        "keyspace" | "generic" => KEYSPACE,
        "connection" => CONNECTION,
        "transactions" => TRANSACTION,
        "scripting" => SCRIPTING,
        _ => 0,
    };
    let name = container.map_or(spec.name, |container| container.name);
    for (exception, more) in EXCEPTIONS {
        if name == *exception {
            categories |= more;
        }
    }
    categories
}
