//! `RENAME key newkey` and `RENAMENX key newkey`: a series under another key.
//!
//! RENAME replaces what stood there; RENAMENX leaves it and answers 0.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Keys, Run};
use super::spec::Spec;
use crate::messaging::Class;
use latewood_engine::ErrorKind;

const RENAME: Spec = Spec::of_group("keyspace", &["write"])
    .named("rename", rename)
    .words(3, "key newkey")
    .keys(Keys(&[
        Run::at(1, Access::Take),
        Run::at(2, Access::Overwrite),
    ]))
    .about("Renames a series; replaces a series that has the new key.");

pub(crate) const SPECS: &[Spec] = &[
    RENAME,
    RENAME
        .flags(&["write", "fast"])
        .named("renamenx", rename_to_free)
        .keys(Keys(&[
            Run::at(1, Access::Take),
            Run::at(2, Access::Insert),
        ]))
        .about("Renames a series if the new key does not exist."),
];

/// What commands for keys of any type answer where there is none.
pub(crate) const NO_SUCH_KEY: Fault = Fault::line("ERR no such key");

fn rename(call: &mut Call<'_>) -> Outcome {
    apply(call, true)?;
    call.ok()
}

fn rename_to_free(call: &mut Call<'_>) -> Outcome {
    let renamed = apply(call, false)?;
    call.integer(i64::from(renamed))
}

fn apply(call: &mut Call<'_>, replace: bool) -> Result<bool, Fault> {
    let (from, to) = (call.args.word(1), call.args.word(2));
    let renamed = call.shared.db.rename(from, to, replace);
    let (renamed, position) = renamed.map_err(|error| match error.kind() {
        ErrorKind::NoSuchKey => NO_SUCH_KEY,
        _ => error.into(),
    })?;
    call.session.wrote(position);
    if renamed && from != to {
        call.shared.events.created(to);
        call.shared.changed(Class::Generic, "rename_from", from);
        call.shared.changed(Class::Generic, "rename_to", to);
    }
    Ok(renamed)
}
