//! The commands as data: what dispatch, COMMAND and `docs/commands.md` need.
//!
//! Each command's file holds its own [`Spec`]; this one lists
//! them.

use super::args::Args;
use super::call::Call;
use super::dispatch;
use super::spec::{Spec, Table};
use crate::client::Session;
use crate::observe::CommandId;
use crate::state::Shared;

/// Every command, by the file it stands in. A group of the documentation may have several.
pub(crate) static COMMANDS: Table = Table::new(&[
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
]);

/// Executes the command `args` of a connection; its reply goes to the end of `out`.
pub(crate) fn execute(shared: &Shared, session: &mut Session, args: Args<'_>, out: &mut Vec<u8>) {
    dispatch::execute(&mut Call {
        commands: &COMMANDS,
        args,
        out,
        session,
        shared,
        cancelled: None,
        rest: None,
    });
}

/// Every command and subcommand with its full name, for the figures of commands.
pub(crate) fn all_commands() -> impl Iterator<Item = (CommandId, String)> {
    COMMANDS.all().flat_map(|spec| {
        let subcommands = spec.subcommands().iter();
        let full = |sub: &'static Spec| (sub.id(), format!("{}|{}", spec.name, sub.name));
        let subcommands: Vec<_> = subcommands.map(full).collect();
        std::iter::once((spec.id(), spec.name.to_owned())).chain(subcommands)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::spec::NAME_BYTES_MAX;
    use crate::observe::Commands;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_lower_case_short_and_unique() {
        let mut names = BTreeSet::new();
        for spec in COMMANDS.all() {
            assert!(spec.name.len() <= NAME_BYTES_MAX, "{}", spec.name);
            assert_eq!(spec.name, spec.name.to_ascii_lowercase());
            assert!(names.insert(spec.name), "{} is there twice", spec.name);
        }
    }

    #[test]
    fn every_command_is_found_in_any_case() {
        for spec in COMMANDS.all() {
            let upper = spec.name.to_ascii_uppercase();
            let found = COMMANDS.find(upper.as_bytes()).unwrap();
            assert_eq!(found.name, spec.name);
        }
        assert!(COMMANDS.find(b"get").is_none());
        assert!(COMMANDS.find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn arity_counts_the_name() {
        let add = COMMANDS.find(b"ts.add").unwrap();
        assert!(!add.takes(3) && add.takes(4) && add.takes(100));
        let echo = COMMANDS.find(b"echo").unwrap();
        assert!(!echo.takes(1) && echo.takes(2) && !echo.takes(3));
    }

    #[test]
    fn every_spec_has_a_row_of_its_own() {
        let commands = Commands::new(all_commands());
        for spec in COMMANDS.all() {
            assert_eq!(commands.row(spec.id()).unwrap().name, spec.name);
            for sub in spec.subcommands() {
                let name = format!("{}|{}", spec.name, sub.name);
                assert_eq!(commands.row(sub.id()).unwrap().name, name);
            }
        }
        assert_eq!(commands.add().name, "ts.add");
        assert_eq!(commands.madd().name, "ts.madd");
    }
}
