//! `TS.RANGE key from to RANGE-OPTS` and `TS.REVRANGE`, the same newest first.
//! Reply: an array of rows, each a timestamp and its values.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::rows::{self, Shape};
use super::spec::{Keys, Spec};
use super::{range_options, work};
use latewood_engine::{RangeQuery, View};

const SYNTAX: &str = "key from to [LATEST] [FILTER_BY_TS ts ...] [FILTER_BY_VALUE min max] \
                      [COUNT n] [[ALIGN start|end|ms] AGGREGATION agg[,agg...] bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]]";

pub(crate) const RANGE: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.range", |call| apply(call, false, Shape::Flat))
    .words(-4, SYNTAX)
    .keys(Keys::ONE)
    .about("Query a range in forward direction");

pub(crate) const REVRANGE: Spec = RANGE
    .named("ts.revrange", |call| apply(call, true, Shape::Flat))
    .about("Query a range in reverse direction");

/// The rows in the order and the shape asked for.
pub(super) fn apply(call: &mut Call<'_>, reverse: bool, shape: Shape) -> Outcome {
    let key = call.args.word(1);
    if !call.shared.db.contains(key) {
        call.shared.events.missed(key);
        return Fault::refuse("ERR TSDB: the key does not exist");
    }
    let query = range_options::parse(call, 2, reverse)?;
    let view = call.shared.db.view(key, &query)?;
    let about = work::of_view(&query, &view);
    if call.leaves(about) {
        let key: Box<[u8]> = key.into();
        return call.finish(about, move |call| write(call, &key, &query, view, shape));
    }
    call.stays(about);
    write(call, key, &query, view, shape)
}

fn write(call: &mut Call<'_>, key: &[u8], query: &RangeQuery, view: View, shape: Shape) -> Outcome {
    let rows = rows::of_view(call.out, call.part(), shape, query, view);
    rows.map_err(|fault| rows::name_key(fault, key))
}
