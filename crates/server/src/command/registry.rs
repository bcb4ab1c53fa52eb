//! The commands as data: what dispatch, COMMAND and `docs/commands.md` need.
//!
//! Each command's file holds its own [`Spec`]; this one lists
//! them.

use super::args::Args;
use super::call::Call;
use super::spec::{Spec, Table};
use super::{dispatch, transaction};
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
    super::role::SPECS,
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

/// Whether EXEC has to wait for rows of parked series; its connection is held back then.
pub(crate) fn exec_awaits_rows(shared: &Shared, session: &mut Session) -> bool {
    transaction::awaits_rows(&COMMANDS, shared, session)
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
    use crate::acl::Users;
    use crate::clients::ClientInfo;
    use crate::command::CATALOGUE;
    use crate::command::spec::NAME_BYTES_MAX;
    use crate::command::transaction::LIMITS;
    use crate::messaging::Mailboxes;
    use crate::observe::{Commands, Observe};
    use crate::options::testing::loading;
    use latewood_engine::Durability;
    use latewood_wire::resp::Parser;
    use std::collections::BTreeSet;
    use std::sync::Arc;

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

    #[test]
    fn what_is_served_while_loading_needs_no_data() {
        let users = Users::new(&CATALOGUE);
        let shared = loading(users, Observe::new(all_commands()), Mailboxes::default());
        let info = Arc::new(ClientInfo::new(1, String::new(), String::new()));
        let run = |lines: &[String]| {
            let info = Arc::clone(&info);
            let mut session = Session::new(info, &shared.runtime.users, Durability::Sync);
            let mut out = Vec::new();
            for line in lines {
                let mut parser = Parser::new();
                parser.parse(line.as_bytes(), &LIMITS).unwrap();
                let args = Args::new(parser.command(), line.as_bytes());
                execute(&shared, &mut session, args, &mut out);
                while session.continue_stream(&shared, &mut out) {}
            }
            session.leave(&shared);
            String::from_utf8_lossy(&out).into_owned()
        };
        for spec in COMMANDS.all() {
            for served in std::iter::once(spec).chain(spec.subcommands()) {
                let mut words = vec![spec.name];
                words.extend((spec.name != served.name).then_some(served.name));
                // Not 1: a pause of 1 ms would hold the others.
                words.resize(words.len().max(served.arity.unsigned_abs() as usize), "0");
                run(&[words.join(" ") + "\r\n"]);
            }
        }
        let lines = [
            "WATCH k",
            "MULTI",
            "INFO everything",
            "EXEC",
            "CONFIG GET *",
        ];
        let replies = run(&lines.map(|line| format!("{line}\r\n")));
        assert!(replies.contains("\r\nloading:1\r\n"), "{replies}");
    }
}
