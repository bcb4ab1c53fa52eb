//! `COPY source destination [DB 0] [REPLACE]`: copies a series.
//!
//! Samples, options, labels and expiry go along, rules do not. The copy is of
//! one moment and appears whole.

use super::args::Args;
use super::call::{Call, Outcome};
use super::database;
use super::fault::Fault;
use super::fault::SYNTAX;
use super::keys::{Access, Keys, Run};
use super::spec::{Action, Spec};
use crate::messaging::Class;
use latewood_engine::ErrorKind;

pub(crate) const SPEC: Spec = Spec {
    name: "copy",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: Keys(&[Run::at(1, Access::Read), Run::at(2, Access::Overwrite)]),
    group: "keyspace",
    syntax: "source destination [DB index] [REPLACE]",
    summary: "Copies a series to another key.",
    action: Action::Apply(copy),
};

fn copy(call: &mut Call<'_>) -> Outcome {
    let replace = parse(call.args)?;
    let (from, to) = (call.args.word(1), call.args.word(2));
    if from == to {
        return Err(database::SAME);
    }
    let shared = call.shared;
    let copied = match shared.db.copy(from, to, replace) {
        Ok((copied, position)) => {
            call.session.wrote(position);
            copied
        }
        Err(error) if error.kind() == ErrorKind::NoSuchKey => {
            shared.events.missed(from);
            false
        }
        Err(error) => {
            let key = if error.is_damage() { from } else { to };
            return Err(Fault::about(error, key));
        }
    };
    if copied {
        shared.events.created(to);
        shared.changed(Class::Generic, "copy_to", to);
    }
    call.reply().integer(i64::from(copied));
    Ok(())
}

/// Whether to replace what is there.
fn parse(args: Args<'_>) -> Result<bool, Fault> {
    let (mut replace, mut at) = (false, 3);
    while at < args.len() {
        if args.is(at, "REPLACE") {
            replace = true;
        } else if args.is(at, "DB")
            && let Some(index) = args.get(at + 1)
        {
            database::check(index)?;
            at += 1;
        } else {
            return Err(SYNTAX);
        }
        at += 1;
    }
    Ok(replace)
}
