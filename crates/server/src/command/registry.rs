//! The commands as data: what dispatch, COMMAND and `docs/commands.md` need.
//!
//! Each command's file holds its own [`Spec`]; this one lists them. Looking a
//! name up compares it with the few commands of the same length and allocates
//! nothing.

pub(crate) use super::keys::Keys;
use super::{Call, Outcome};
use std::sync::LazyLock;

/// What runs a command.
pub(crate) type Apply = fn(&mut Call<'_>) -> Outcome;

/// One command or subcommand.
pub(crate) struct Spec {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Words with the name: exactly so many, or at least `-arity`.
    pub(crate) arity: i64,
    /// The flags that COMMAND INFO shows.
    pub(crate) flags: &'static [&'static str],
    /// Where the keys stand.
    pub(crate) keys: Keys,
    /// The group in the documentation.
    pub(crate) group: &'static str,
    /// The words after the name.
    pub(crate) syntax: &'static str,
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// What runs it.
    pub(crate) action: Action,
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// By this function.
    Apply(Apply),
    /// By one of its subcommands.
    Container(&'static [Spec]),
    /// By one of its subcommands, or by this function where it stands alone.
    Either(Apply, &'static [Spec]),
}

impl Spec {
    /// Whether a command of `words` words, name included, has the right number.
    pub(crate) fn takes(&self, words: usize) -> bool {
        let words = i64::try_from(words).unwrap_or(i64::MAX);
        if self.arity < 0 {
            words >= -self.arity
        } else {
            words == self.arity
        }
    }

    /// Its subcommands.
    pub(crate) fn subcommands(&self) -> &'static [Self] {
        match self.action {
            Action::Apply(_) => &[],
            Action::Container(subcommands) | Action::Either(_, subcommands) => subcommands,
        }
    }
}

/// Every command, by the file it stands in. A group of the documentation may have several.
pub(crate) static COMMANDS: &[&[Spec]] = &[
    &[
        super::create::SPEC,
        super::alter::SPEC,
        super::add::SPEC,
        super::madd::SPEC,
        super::increment::INCRBY,
        super::increment::DECRBY,
        super::delete::SPEC,
        super::get::SPEC,
        super::range::RANGE,
        super::range::REVRANGE,
        super::nrange::NRANGE,
        super::nrange::NREVRANGE,
        super::mget::SPEC,
        super::mrange::MRANGE,
        super::mrange::MREVRANGE,
        super::query_index::SPEC,
        super::query_labels::SPEC,
        super::series_info::SPEC,
        super::rules::CREATERULE,
        super::rules::DELETERULE,
    ],
    &[super::read::SPEC],
    super::keyspace::SPECS,
    super::rename::SPECS,
    &[super::copy::SPEC],
    super::dump::SPECS,
    super::object::SPECS,
    super::database::SPECS,
    super::expire::SPECS,
    super::scan::SPECS,
    super::connection::SPECS,
    super::auth::SPECS,
    super::acl::SPECS,
    super::cluster::SPECS,
    super::module::SPECS,
    super::client::SPECS,
    super::transaction::SPECS,
    super::pubsub::SPECS,
    super::command_info::SPECS,
    super::config::SPECS,
    super::info::SPECS,
    super::slowlog::SPECS,
    super::latency::SPECS,
    super::memory::SPECS,
    &[super::monitor::SPEC],
    super::time::SPECS,
    super::persistence::SPECS,
    super::latewood::SPECS,
];

/// Every command, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Spec> {
    COMMANDS.iter().copied().flatten()
}

/// The command called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    static BY_LENGTH: LazyLock<[Vec<&'static Spec>; NAME_BYTES_MAX + 1]> = LazyLock::new(|| {
        let mut by_length = [const { Vec::new() }; NAME_BYTES_MAX + 1];
        for spec in all() {
            by_length[spec.name.len()].push(spec);
        }
        by_length
    });
    BY_LENGTH
        .get(name.len())?
        .iter()
        .find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
        .copied()
}

/// The subcommand called `name`, in any case.
pub(crate) fn find_in(subcommands: &'static [Spec], name: &[u8]) -> Option<&'static Spec> {
    subcommands
        .iter()
        .find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}

/// Longest name of a command.
const NAME_BYTES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_lower_case_short_and_unique() {
        let mut names = BTreeSet::new();
        for spec in all() {
            assert!(spec.name.len() <= NAME_BYTES_MAX, "{}", spec.name);
            assert_eq!(spec.name, spec.name.to_ascii_lowercase());
            assert!(names.insert(spec.name), "{} is there twice", spec.name);
        }
    }

    #[test]
    fn every_command_is_found_in_any_case() {
        for spec in all() {
            let upper = spec.name.to_ascii_uppercase();
            let found = find(upper.as_bytes()).unwrap();
            assert_eq!(found.name, spec.name);
        }
        assert!(find(b"get").is_none());
        assert!(find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn arity_counts_the_name() {
        let add = find(b"ts.add").unwrap();
        assert!(!add.takes(3) && add.takes(4) && add.takes(100));
        let echo = find(b"echo").unwrap();
        assert!(!echo.takes(1) && echo.takes(2) && !echo.takes(3));
    }
}
