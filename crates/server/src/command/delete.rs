//! `TS.DEL key from to` deletes the samples from `from` to `to`, both
//! included; `-` and `+` are the ends. Reply: how many were deleted.

use super::call::{Call, Outcome};
use super::range_options::{from_timestamp, to_timestamp};
use super::spec::{Keys, Spec};
use crate::messaging::Class;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "module"])
    .named("ts.del", apply)
    .words(4, "key from to")
    .keys(Keys::ONE)
    .about("Deletes the samples of a time range, both ends included.");

fn apply(call: &mut Call<'_>) -> Outcome {
    let from = from_timestamp(call.args.word(2))?;
    let to = to_timestamp(call.args.word(3))?;
    let key = call.args.word(1);
    let (deleted, position) = call.shared.db.delete_range(key, from, to)?;
    call.session.wrote(position);
    call.shared.changed(Class::Module, "ts.del", key);
    call.count(deleted)
}
