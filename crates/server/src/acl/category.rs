//! The ACL categories, and which of them a command is in.
//!
//! A category follows from the command's flags and its group, so that no
//! command says the same thing twice. The few that Redis puts elsewhere stand
//! in [`EXCEPTIONS`].

use crate::command::Spec;
use crate::command::registry::Keys;

/// A set of categories: bit `i` is `NAMES[i]`.
pub(crate) type Categories = u32;

/// Every category, in the order of ACL CAT. Those of the other types of Redis
/// are there without commands, so that rules that name them are taken.
pub(crate) const NAMES: [&str; 22] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "timeseries",
];

const KEYSPACE: Categories = 1;
const READ: Categories = 1 << 1;
const WRITE: Categories = 1 << 2;
const PUBSUB: Categories = 1 << 12;
const ADMIN: Categories = 1 << 13;
const FAST: Categories = 1 << 14;
const SLOW: Categories = 1 << 15;
const BLOCKING: Categories = 1 << 16;
const DANGEROUS: Categories = 1 << 17;
const CONNECTION: Categories = 1 << 18;
const TRANSACTION: Categories = 1 << 19;
const SCRIPTING: Categories = 1 << 20;
const TIMESERIES: Categories = 1 << 21;

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

/// The category called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<Categories> {
    let at = NAMES
        .iter()
        .position(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some(1 << at)
}

/// The names of a set of categories.
pub(crate) fn names(categories: Categories) -> impl Iterator<Item = &'static str> {
    let known = NAMES.iter().enumerate();
    known
        .filter(move |(at, _)| categories & (1 << at) != 0)
        .map(|(_, name)| *name)
}

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
        "latewood" if spec.keys != Keys::NONE => TIMESERIES,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_agree() {
        for (name, bit) in [
            ("keyspace", KEYSPACE),
            ("read", READ),
            ("Write", WRITE),
            ("pubsub", PUBSUB),
            ("admin", ADMIN),
            ("fast", FAST),
            ("slow", SLOW),
            ("blocking", BLOCKING),
            ("dangerous", DANGEROUS),
            ("connection", CONNECTION),
            ("transaction", TRANSACTION),
            ("scripting", SCRIPTING),
            ("TIMESERIES", TIMESERIES),
        ] {
            assert_eq!(find(name.as_bytes()), Some(bit), "{name}");
        }
        assert_eq!(find(b"nosuch"), None);
        let both: Vec<_> = names(READ | TIMESERIES).collect();
        assert_eq!(both, ["read", "timeseries"]);
    }
}
