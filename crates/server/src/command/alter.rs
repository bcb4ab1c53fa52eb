//! `TS.ALTER key [RETENTION ms] [CHUNK_SIZE bytes] [DUPLICATE_POLICY policy]
//! [IGNORE max-time-diff max-value-diff] [LABELS [name value ...]]` changes
//! what is named and leaves the rest. Reply: OK.
//!
//! LABELS alone takes all labels away. ENCODING is read and checked, and
//! changes nothing, as in RedisTimeSeries. Options are read before the key is
//! looked up.

use super::call::{Call, Outcome};
use super::series_options::{self, LabelValues};
use super::spec::{Keys, Spec};
use crate::messaging::Class;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.alter", |call| apply(call, LabelValues::Filterable))
    .words(
        -2,
        "key [RETENTION ms] [CHUNK_SIZE bytes] [DUPLICATE_POLICY policy] \
             [IGNORE max-time-diff max-value-diff] [LABELS name value ...]",
    )
    .keys(Keys::ONE)
    .about(
        "Update the retention, chunk size, duplicate policy, and labels of an existing time series",
    );

/// The same for labels of such values.
pub(super) fn apply(call: &mut Call<'_>, values: LabelValues) -> Outcome {
    let given = series_options::Given::parse(call.args, 2, values)?;
    let key = call.args.word(1);
    let position = call
        .shared
        .db
        .alter_with(key, |options| given.set(options))?;
    call.session.wrote(position);
    call.shared.changed(Class::Module, "ts.alter", key);
    call.ok()
}
