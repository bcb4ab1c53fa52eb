//! `TS.CREATE key CREATE-OPTS` makes an empty series. Reply: OK.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::series_options;
use super::series_options::LabelValues;
use super::spec::{Action, Keys, Spec};
use crate::messaging::Class;

pub(crate) const SPEC: Spec = Spec {
    name: "ts.create",
    arity: -2,
    flags: &["write", "denyoom", "module"],
    keys: Keys::ONE,
    group: "timeseries",
    syntax: "key [RETENTION ms] [ENCODING COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE bytes] \
             [DUPLICATE_POLICY policy] [IGNORE max-time-diff max-value-diff] \
             [LABELS name value ...]",
    summary: "Creates an empty series.",
    action: Action::Apply(|call| apply(call, LabelValues::Filterable)),
};

/// The same for labels of such values.
pub(super) fn apply(call: &mut Call<'_>, values: LabelValues) -> Outcome {
    let defaults = call.shared.db.defaults();
    let options = series_options::parse(call.args, 2, values, &defaults.series)?;
    let key = call.args.word(1);
    let created = call.shared.db.create(key, &options);
    let position = created.map_err(|error| Fault::about(error, key))?;
    call.session.wrote(position);
    call.shared.events.created(key);
    call.shared.changed(Class::Module, "ts.create", key);
    call.reply().ok();
    Ok(())
}
