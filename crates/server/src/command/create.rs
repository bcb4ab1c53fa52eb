//! `TS.CREATE key CREATE-OPTS` makes an empty series. Reply: OK.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::series_options::{self, LabelValues};
use super::spec::{Keys, Spec};
use crate::messaging::Class;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.create", |call| apply(call, LabelValues::Filterable))
    .words(
        -2,
        "key [RETENTION ms] [ENCODING COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE bytes] \
             [DUPLICATE_POLICY policy] [IGNORE max-time-diff max-value-diff] \
             [LABELS name value ...]",
    )
    .keys(Keys::ONE)
    .about("Create a new time series");

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
    call.ok()
}
