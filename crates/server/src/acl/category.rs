//! The ACL categories by name and bit. `command/catalogue.rs` assigns them to
//! commands.

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

pub(crate) const KEYSPACE: Categories = 1;
pub(crate) const READ: Categories = 1 << 1;
pub(crate) const WRITE: Categories = 1 << 2;
pub(crate) const PUBSUB: Categories = 1 << 12;
pub(crate) const ADMIN: Categories = 1 << 13;
pub(crate) const FAST: Categories = 1 << 14;
pub(crate) const SLOW: Categories = 1 << 15;
pub(crate) const BLOCKING: Categories = 1 << 16;
pub(crate) const DANGEROUS: Categories = 1 << 17;
pub(crate) const CONNECTION: Categories = 1 << 18;
pub(crate) const TRANSACTION: Categories = 1 << 19;
pub(crate) const SCRIPTING: Categories = 1 << 20;
pub(crate) const TIMESERIES: Categories = 1 << 21;

/// The category called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<Categories> {
    let at = NAMES
        .iter()
        .position(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some(1 << at)
}

pub(crate) fn names(categories: Categories) -> impl Iterator<Item = &'static str> {
    let known = NAMES.iter().enumerate();
    known
        .filter(move |(at, _)| categories & (1 << at) != 0)
        .map(|(_, name)| *name)
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
