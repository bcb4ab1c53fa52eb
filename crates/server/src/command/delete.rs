//! `TS.DEL key from to` deletes the samples from `from` to `to`, both
//! included; `-` and `+` are the ends. Reply: how many were deleted.

use super::call::{Call, Outcome};
use super::range_options::{from_timestamp, to_timestamp};
use super::spec::{Action, Keys, Spec};
use crate::messaging::Class;

pub(crate) const SPEC: Spec = Spec {
    name: "ts.del",
    arity: 4,
    flags: &["write", "module"],
    keys: Keys::ONE,
    group: "timeseries",
    syntax: "key from to",
    summary: "Deletes the samples of a time range, both ends included.",
    action: Action::Apply(apply),
};

fn apply(call: &mut Call<'_>) -> Outcome {
    let from = from_timestamp(call.args.word(2))?;
    let to = to_timestamp(call.args.word(3))?;
    let key = call.args.word(1);
    let (deleted, position) = call.shared.db.delete_range(key, from, to)?;
    call.session.wrote(position);
    call.shared.changed(Class::Module, "ts.del", key);
    call.reply()
        .integer(i64::try_from(deleted).unwrap_or(i64::MAX));
    Ok(())
}
